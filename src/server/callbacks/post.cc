#include "server/callbacks/post.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/duration.h"
#include "core/quote.h"
#include "core/retry_decision.h"
#include "platform/fatal.h"
#include "server/callbacks/delivery_request.h"
#include "wire/job_json.h"

namespace bide::server {

namespace {

using std::chrono::steady_clock;

constexpr Milliseconds kWithoutCallback{600'000};  // Until a job that has none is looked at again.
// Of a lease from before a restart: the broker does not know any more for how long it was given, and takes the usual.
constexpr Milliseconds kAdoptedTerm{15'000};

Time wall_now() { return std::chrono::floor<Milliseconds>(std::chrono::system_clock::now()); }

HostLimits limits_of(const CallbackOptions& options) {
  return {options.per_host, options.failures_to_open, options.shortest_pause, options.longest_pause};
}

int most_at_one_place(const CallbackOptions& options) { return std::max(options.per_address, options.per_host); }

std::string result_type(const http_client::HttpAnswer& answer) {
  const std::string_view type = answer.field("content-type");
  const bool fine =
      type.size() <= 255 && std::all_of(type.begin(), type.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  return fine ? std::string(type) : std::string();
}

}  // namespace

Deliverer::Post::Post(CallbackOptions options, WebhookSigner signer, std::shared_ptr<Broker> broker,
                      std::shared_ptr<SentLeases> leases, std::shared_ptr<DeliveryLog> log, DelivererHooks hooks)
    : options_(std::move(options)),
      signer_(std::move(signer)),
      log_(std::move(log)),
      hooks_(std::move(hooks)),
      lasting_leases_(broker->capabilities().lasting_leases),
      book_(lasting_leases_ ? options_.accepted_folder : ""),
      leases_(std::move(leases)),
      broker_(std::move(broker)),
      hosts_(limits_of(options_), options_.hosts) {}

Deliverer::Post::~Post() { stop(Milliseconds(0)); }

Status Deliverer::Post::start() {
  http_client::HttpClientOptions client;
  client.max_per_host = options_.per_host;
  client.max_per_address = most_at_one_place(options_);
  client.address_check = [policy = options_.policy, own = options_.own_listeners](
                             std::string_view host, const http_client::HttpAddress& address) -> Status {
    const IpAddress ip{address.family == http_client::HttpAddress::Family::kIpv6, address.bytes};
    if (own && own->has(ip, address.port)) {
      return Error{ErrorCode::kInvalidArgument,
                   "callback address blocked " + std::string(kOwnListenerRule) + ": " + address.to_string() +
                       " is this server itself"};
    }
    return policy.check_address(host, ip, address.port);
  };
  client_ = std::make_unique<http_client::HttpClient>(std::move(client));
  leases_->listen([weak = weak_from_this()](const LeaseRef& lease, const Status& status) {
    const auto self = weak.lock();
    if (!self) return;
    self->inbox_.post([post = self.get(), key = Key(lease.id, lease.token), status] {
      post->settled_by_receiver(key, status);
    });
  });
  inbox_.post([this] { adopt(); });
  thread_ = std::thread([this] { run(); });
  if (options_.policy.mode() == AddressPolicy::Mode::kOff) return {};

  SubscribeOptions wanted;
  wanted.queues.clear();
  for (const std::string& queue : options_.queues) wanted.queues.push_back({queue, 1});
  wanted.credit = options_.concurrency;
  wanted.lease = options_.lease;
  wanted.worker = "callbacks";
  wanted.outlives_process = true;  // A receiver that answered 202 may settle after a restart.
  auto subscribed = broker_->subscribe(std::move(wanted), [weak = weak_from_this()](std::vector<Lease> leases) {
    const auto self = weak.lock();
    if (!self) return;
    auto shared = std::make_shared<std::vector<Lease>>(std::move(leases));
    self->inbox_.post([post = self.get(), shared] { post->take(std::move(*shared)); });
  });
  if (!subscribed) return subscribed.error();
  leases_->open(std::move(*subscribed), options_.concurrency);
  return {};
}

void Deliverer::Post::begin_stop() {
  if (stopping_.exchange(true)) return;
  inbox_.post([this] { give_back_waiting(); });
}

void Deliverer::Post::stop(Milliseconds grace) {
  if (!thread_.joinable()) return;
  begin_stop();
  inbox_.post([this, until = steady_clock::now() + grace] { finish_until(until); });
  thread_.join();
  leases_->listen(nullptr);
  leases_->close();
  inbox_.close();
  client_.reset();
  broker_.reset();
}

void Deliverer::Post::status(std::function<void(DelivererStatus)> done) {
  inbox_.post([this, done = std::move(done)] {
    DelivererStatus status{.sending = count(HeldDelivery::State::kSending),
                           .accepted = count(HeldDelivery::State::kAccepted),
                           .hosts = hosts_.status(steady_clock::now())};
    for (const HostStatus& host : status.hosts) status.waiting += host.waiting;
    done(std::move(status));
  });
}

void Deliverer::Post::run() {
  Moment next = Moment::max();
  while (true) {
    for (const TaskInbox::Task& task : inbox_.take(next)) task();
    round();
    const Moment now = steady_clock::now();
    if (finishing_ && is_finished(now)) return;
    next = held_.empty() && !finishing_ ? Moment::max() : std::max(next_sweep_, now);
  }
}

void Deliverer::Post::round() {
  const Moment now = steady_clock::now();
  if (now >= next_sweep_) sweep(now);
  send_settlements();
  adjust_credit();
  platform::require(counts_[0] + counts_[1] + counts_[2] + counts_[3] == held_.size(),
                    "every delivery in hand is counted in one state");
  platform::require(count(HeldDelivery::State::kSending) <= static_cast<std::size_t>(options_.concurrency),
                    "no more deliveries are under way than allowed");
}

bool Deliverer::Post::is_finished(Moment now) const {
  return held_.size() == count(HeldDelivery::State::kAccepted) || now >= give_up_at_;
}

// What receivers accepted from the process before us. Some may be settled by now: then the first extension says so.
void Deliverer::Post::adopt() {
  const Moment now = steady_clock::now();
  for (Lease& lease : book_.read()) {
    auto made = std::make_unique<HeldDelivery>(std::move(lease), now, std::min(options_.lease, kAdoptedTerm));
    made->kept = true;
    made->asked = {};
    enter(hold(std::move(made)), HeldDelivery::State::kAccepted);
  }
}

void Deliverer::Post::take(std::vector<Lease> leases) {
  const Moment now = steady_clock::now();
  std::vector<std::string> keys;
  for (Lease& lease : leases) {
    HeldDelivery& held = hold(std::make_unique<HeldDelivery>(std::move(lease), now, options_.lease));
    sort_in(held);
    if (held.state == HeldDelivery::State::kWaiting) keys.push_back(held.url.host_key());
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  for (const std::string& key : keys) pump(key, hosts_.at(key, now));
  look_for_surplus();
}

// Into the line of its host, or away.
void Deliverer::Post::sort_in(HeldDelivery& held) {
  if (stopping_) return settle(held, Returned{.after = {}, .note = "the server is stopping"});
  const std::string_view callback = wire::header_of(held.lease.job, wire::kCallbackHeader);
  if (callback.empty()) {
    return settle(held, Returned{.after = kWithoutCallback,
                                 .note = "the server delivers the jobs of queue " + held.lease.job.queue +
                                         " to their callbacks, and this one has none: cancel it and enqueue it with "
                                         "bide-callback, or in another queue"});
  }
  auto parsed = parse_callback_url(callback);
  const auto* url = std::get_if<CallbackUrl>(&parsed);
  const Status allowed = url != nullptr ? options_.policy.check(*url) : options_.policy.check(callback);
  if (url == nullptr || !allowed) {
    return settle(held, Dead{DeadReason::kRejected, Fault::kFailed, allowed.error().message});
  }
  held.url = *url;
  hosts_.at(url->host_key(), held.received).waiting.push_back(&held);
}

void Deliverer::Post::pump(const std::string& key, Host& host) {
  const Moment now = steady_clock::now();
  while (!stopping_ && !host.waiting.empty() && host.line.may_send(now) && has_place(host.waiting.front()->url)) {
    HeldDelivery& held = *host.waiting.front();
    host.waiting.pop_front();
    send(held, host);
  }
  // The next ones may wait here, so that the host is never idle; the others make room for other hosts.
  const auto may_wait = host.line.is_paused(now) ? 0 : static_cast<std::size_t>(host.line.limit());
  while (host.waiting.size() > may_wait) {
    HeldDelivery& held = *host.waiting.back();
    host.waiting.pop_back();
    const Milliseconds pause = host.line.pause_left(now);
    std::string note = pause.count() > 0 ? "callbacks to " + key + " are paused for " + core::rough_duration(pause) +
                                               (host.last_error.empty() ? "" : ": " + host.last_error)
                                         : key + " takes " + std::to_string(host.line.limit()) +
                                               " callbacks at a time, and this one waits for its turn";
    settle(held, Returned{.after = host.line.book(now), .note = std::move(note)});
  }
}

bool Deliverer::Post::has_place(const CallbackUrl& url) const {
  if (count(HeldDelivery::State::kSending) >= static_cast<std::size_t>(options_.concurrency)) return false;
  const auto found = sites_.find(url.site());
  return found == sites_.end() || found->second < most_at_one_place(options_);
}

void Deliverer::Post::leave_place(const CallbackUrl& url) {
  const auto found = sites_.find(url.site());
  platform::require(found != sites_.end() && found->second > 0, "what is answered was under way to its site");
  if (--found->second == 0) sites_.erase(found);
}

void Deliverer::Post::send(HeldDelivery& held, Host& host) {
  enter(held, HeldDelivery::State::kSending);
  leases_->sent(held.ref());
  ++sites_[held.url.site()];
  held.sent = steady_clock::now();
  held.sent_at = wall_now();
  host.line.sent();
  http_client::HttpRequest request = delivery_request(held.lease, held.url, signer_, options_, held.sent_at);
  const auto left = std::chrono::ceil<Milliseconds>(held.deadline - held.sent);
  request.answer_within = std::clamp(left, Milliseconds(1), request.answer_within);
  held.ticket = client_->send(
      std::move(request),
      later([key = held.key()](Post& post, const http_client::HttpAnswer& answer) { post.take_answer(key, answer); }));
}

void Deliverer::Post::take_answer(const Key& key, const http_client::HttpAnswer& answer) {
  HeldDelivery* const held = find(key);
  if (held == nullptr) return;
  const Moment now = steady_clock::now();
  const Verdict verdict = judge(answer, wall_now(), options_.longest_retry_after);
  const std::string host_key = held->url.host_key();
  Host& host = hosts_.at(host_key, now);
  host.line.answered(verdict.sign, held->sent, now, verdict.not_before);
  host.last_error = verdict.error;
  leave_place(held->url);
  record(*held, answer, verdict);
  if (held->lost) {
    forget(key);
  } else if (verdict.kind == Verdict::Kind::kAccepted) {
    accept(*held);
  } else if (verdict.kind == Verdict::Kind::kDone) {
    settle(*held, Done{.result = answer.body, .content_type = answer.body.empty() ? "" : result_type(answer)});
  } else if (verdict.kind == Verdict::Kind::kDead) {
    settle(*held, Dead{DeadReason::kRejected, Fault::kFailed, verdict.error});
  } else if (verdict.kind == Verdict::Kind::kReturned) {
    const bool stopped = answer.failure == http_client::HttpFailure::kCancelled;
    settle(*held, Returned{.after = stopped ? Milliseconds(0) : host.line.book(now),
                           .note = stopped ? "the server stopped before it was sent" : verdict.error});
  } else if (verdict.kind == Verdict::Kind::kUnanswered && lasting_leases_) {
    // The receiver may be at work on it. The attempt stays charged, and the job comes again when the lease is over.
    forget(key);
  } else if (verdict.kind == Verdict::Kind::kUnanswered) {
    settle(*held, failed(*held, Fault::kLost, verdict.error, {}));
  } else {
    const bool out_of_time = answer.failure == http_client::HttpFailure::kTimedOut && now >= held->deadline;
    settle(*held, failed(*held, out_of_time ? Fault::kTimedOut : Fault::kFailed, verdict.error, verdict.not_before));
  }
  pump(host_key, host);
}

void Deliverer::Post::record(const HeldDelivery& held, const http_client::HttpAnswer& answer, const Verdict& verdict) {
  const Job& job = held.lease.job;
  DeliveryRecord record{.job = job.id,
                        .kind = job.kind,
                        .queue = job.queue,
                        .attempt = held.lease.attempt,
                        .url = held.url.shown(),
                        .at = held.sent_at,
                        .took = answer.took,
                        .status = answer.status,
                        .outcome = verdict.kind,
                        .error = verdict.error,
                        .whole = std::make_shared<const Job>(job)};
  if (hooks_.on_delivery) hooks_.on_delivery(record);
  log_->add(std::move(record));
}

void Deliverer::Post::accept(HeldDelivery& held) {
  enter(held, HeldDelivery::State::kAccepted);
  leases_->accepted(held.ref());
  std::string().swap(held.lease.job.body);
  keep(held);
}

void Deliverer::Post::keep(HeldDelivery& held) {
  Lease lease = held.lease;
  lease.age += std::chrono::floor<Milliseconds>(steady_clock::now() - held.received);
  const Status kept = book_.add(std::move(lease));
  held.kept = true;  // Also when it failed: there may be half of it.
  if (!kept && !std::exchange(unkept_, true)) {
    report("callbacks that were answered 202 are delivered again when the server is restarted: " +
           kept.error().message);
  }
}

// Through the API. It gives no credit since before the broker heard of it.
void Deliverer::Post::settled_by_receiver(const Key& key, const Status& status) {
  HeldDelivery* const held = find(key);
  if (held == nullptr) return;
  const bool is_over =
      status || status.error().code == ErrorCode::kLeaseLost || status.error().code == ErrorCode::kNotFound;
  is_over ? lose(*held) : leases_->not_settled(held->ref());
}

Outcome Deliverer::Post::failed(const HeldDelivery& held, Fault fault, std::string error, Milliseconds not_before) {
  Outcome outcome =
      core::decide_after_fault(held.lease.job.retry, held.lease.counts, fault, std::move(error), random_.next());
  if (auto* retry = std::get_if<RetryAt>(&outcome)) retry->after = std::max(retry->after, not_before);
  return outcome;
}

void Deliverer::Post::report(const std::string& problem) {
  if (hooks_.on_problem) hooks_.on_problem(problem);
}

HeldDelivery* Deliverer::Post::find(const Key& key) {
  const auto found = held_.find(key);
  return found == held_.end() ? nullptr : found->second.get();
}

HeldDelivery& Deliverer::Post::hold(std::unique_ptr<HeldDelivery> held) {
  const auto [at, added] = held_.emplace(held->key(), std::move(held));
  platform::require(added, "a lease is given once");
  ++counts_[static_cast<std::size_t>(at->second->state)];
  return *at->second;
}

void Deliverer::Post::enter(HeldDelivery& held, HeldDelivery::State state) {
  std::size_t& before = counts_[static_cast<std::size_t>(held.state)];
  platform::require(before > 0, "a delivery is counted where it is");
  --before;
  ++counts_[static_cast<std::size_t>(state)];
  held.state = state;
}

void Deliverer::Post::forget(const Key& key) {
  const auto found = held_.find(key);
  if (found == held_.end()) return;
  const HeldDelivery& held = *found->second;
  if (held.kept) book_.remove(held.ref());
  leases_->remove(held.ref());
  std::size_t& before = counts_[static_cast<std::size_t>(held.state)];
  platform::require(before > 0, "a delivery is counted where it is");
  --before;
  held_.erase(found);
}

}  // namespace bide::server
