#include "server/callbacks/delivery_loop.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/broker_answers.h"
#include "core/duration.h"
#include "core/quote.h"
#include "core/retry_decision.h"
#include "platform/fatal.h"
#include "server/callbacks/delivery_request.h"
#include "server/callbacks/delivery_result.h"
#include "wire/job_json.h"

namespace bide::server {

namespace {

using std::chrono::steady_clock;

using http_client::HttpAnswer;
using http_client::HttpFailure;
using Kind = DeliveryResult::Kind;

constexpr Milliseconds kWithoutCallback{600'000};  // Until a job without a callback is leased again.
// After a restart the broker does not know for how long a lease was given, and takes its default.
constexpr Milliseconds kLoadedLeaseTime{15'000};

Time wall_now() { return std::chrono::floor<Milliseconds>(std::chrono::system_clock::now()); }

HostLimits limits_of(const CallbackOptions& options) {
  return {options.per_host, options.failures_to_open, options.shortest_pause, options.longest_pause};
}

int most_per_site(const CallbackOptions& options) { return std::max(options.per_address, options.per_host); }

std::string result_type(const HttpAnswer& answer) {
  const std::string_view type = answer.field("content-type");
  const bool fine =
      type.size() <= 255 && std::all_of(type.begin(), type.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  return fine ? std::string(type) : std::string();
}

}  // namespace

DeliveryLoop::DeliveryLoop(CallbackOptions options, WebhookSigner signer, std::shared_ptr<Broker> broker,
                           std::shared_ptr<SentLeases> leases, std::shared_ptr<DeliveryLog> log, DeliveryHooks hooks)
    : options_(std::move(options)),
      signer_(std::move(signer)),
      log_(std::move(log)),
      hooks_(std::move(hooks)),
      lasting_leases_(broker->capabilities().lasting_leases),
      pending_(lasting_leases_ ? options_.accepted_folder : ""),
      leases_(std::move(leases)),
      broker_(std::move(broker)),
      hosts_(limits_of(options_), options_.hosts) {}

Result<std::shared_ptr<DeliveryLoop>> DeliveryLoop::start(CallbackOptions options, std::shared_ptr<Broker> broker,
                                                          std::shared_ptr<SentLeases> leases,
                                                          std::shared_ptr<DeliveryLog> log, DeliveryHooks hooks) {
  if (Status valid = validate(options); !valid) return valid.error();
  auto signer = WebhookSigner::make(options.secrets, options.secrets_by_host);
  if (!signer) return signer.error();
  const std::shared_ptr<DeliveryLoop> loop(new DeliveryLoop(std::move(options), std::move(*signer), std::move(broker),
                                                            std::move(leases), std::move(log), std::move(hooks)));
  if (Status subscribed = loop->subscribe(); !subscribed) {
    loop->stop(Milliseconds(0));
    return subscribed.error();
  }
  return loop;
}

Status DeliveryLoop::subscribe() {
  http_client::HttpClientOptions client;
  client.max_per_host = options_.per_host;
  client.max_per_address = most_per_site(options_);
  client.address_check = [policy = options_.policy, own = options_.own_listeners](
                             std::string_view host, const http_client::HttpAddress& address) -> Status {
    const IpAddress ip{address.family == http_client::HttpAddress::Family::kIpv6, address.bytes};
    if (own && own->has(ip, address.port)) {
      return Error{ErrorCode::kInvalidArgument, "callback address blocked " + std::string(kOwnListenerRule) + ": " +
                                                    address.to_string() + " is this server itself"};
    }
    return policy.check_address(host, ip, address.port);
  };
  client_ = std::make_unique<http_client::HttpClient>(std::move(client));
  leases_->set_on_settled([weak = weak_from_this()](const LeaseRef& lease, const Status& status) {
    const auto self = weak.lock();
    if (!self) return;
    self->tasks_.post(
        [loop = self.get(), key = Key(lease.id, lease.token), status] { loop->on_settled_by_receiver(key, status); });
  });
  tasks_.post([this] { load_pending(); });
  thread_ = std::thread([this] { run(); });
  if (options_.policy.mode() == AddressPolicy::Mode::kOff) return {};

  SubscribeOptions wanted;
  wanted.queues.clear();
  for (const std::string& queue : options_.queues) wanted.queues.push_back({queue, 1});
  wanted.credit = options_.concurrency;
  wanted.lease = options_.lease;
  wanted.worker = "callbacks";
  wanted.outlives_process = true;  // A receiver that answered 202 may settle after a restart.
  auto subscribed = broker_->subscribe(std::move(wanted), posted([](DeliveryLoop& loop, std::vector<Lease> leases) {
                                         loop.on_leases(std::move(leases));
                                       }));
  if (!subscribed) return subscribed.error();
  leases_->open(std::move(*subscribed), options_.concurrency);
  return {};
}

void DeliveryLoop::begin_stop() {
  if (stopping_.exchange(true)) return;
  tasks_.post([this] { return_waiting(); });
}

void DeliveryLoop::stop(Milliseconds grace) {
  if (!thread_.joinable()) return;
  begin_stop();
  tasks_.post([this, until = steady_clock::now() + grace] { finish_until(until); });
  thread_.join();
  leases_->set_on_settled(nullptr);
  leases_->close();
  tasks_.close();
  client_.reset();
  broker_.reset();
}

void DeliveryLoop::status(std::function<void(DeliveryStatus)> done) {
  tasks_.post([this, done = std::move(done)] {
    DeliveryStatus status{.sending = count(State::kSending),
                          .accepted = count(State::kAccepted),
                          .hosts = hosts_.status(steady_clock::now())};
    for (const HostStatus& host : status.hosts) status.waiting += host.waiting;
    done(std::move(status));
  });
}

void DeliveryLoop::run() {
  Moment next = Moment::max();
  while (true) {
    for (const platform::Task& task : tasks_.take_until(next)) task();
    Moment now = steady_clock::now();
    if (now >= next_sweep_) sweep(now);
    send_settlements();
    const bool accepted_enough = count(State::kAccepted) >= static_cast<std::size_t>(options_.accepted);
    leases_->set_room(accepted_enough ? 0 : options_.concurrency);
    platform::require(counts_[0] + counts_[1] + counts_[2] + counts_[3] == deliveries_.size(),
                      "every delivery in hand is counted in one state");
    platform::require(count(State::kSending) <= static_cast<std::size_t>(options_.concurrency),
                      "no more deliveries are under way than allowed");
    now = steady_clock::now();
    if (finishing_ && (deliveries_.size() == count(State::kAccepted) || now >= give_up_at_)) return;
    next = deliveries_.empty() && !finishing_ ? Moment::max() : std::max(next_sweep_, now);
  }
}

// Some may be settled by now: the answer to the first extend says so.
void DeliveryLoop::load_pending() {
  const Moment now = steady_clock::now();
  for (Lease& lease : pending_.read()) {
    auto made = std::make_unique<Delivery>(std::move(lease), now, std::min(options_.lease, kLoadedLeaseTime));
    made->stored = true;
    made->extend_sent = {};
    enter(add(std::move(made)), State::kAccepted);
  }
}

void DeliveryLoop::on_leases(std::vector<Lease> leases) {
  const Moment now = steady_clock::now();
  std::vector<std::string> keys;
  for (Lease& lease : leases) {
    Delivery& delivery = add(std::make_unique<Delivery>(std::move(lease), now, options_.lease));
    queue_or_settle(delivery);
    if (delivery.state == State::kWaiting) keys.push_back(delivery.url.host_key());
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  for (const std::string& key : keys) send_waiting(key, hosts_.at(key, now));
  find_ended_elsewhere();
}

void DeliveryLoop::queue_or_settle(Delivery& delivery) {
  if (stopping_) return settle(delivery, Returned{.after = {}, .note = "the server is stopping"});
  const std::string_view callback = wire::header_of(delivery.lease.job, wire::kCallbackHeader);
  if (callback.empty()) {
    return settle(delivery,
                  Returned{.after = kWithoutCallback,
                           .note = "the server delivers the jobs of queue " + delivery.lease.job.queue +
                                   " to their callbacks, and this one has none: cancel it and enqueue it with "
                                   "bide-callback, or in another queue"});
  }
  auto parsed = parse_callback_url(callback);
  const auto* url = std::get_if<CallbackUrl>(&parsed);
  const Status allowed = url != nullptr ? options_.policy.check(*url) : options_.policy.check(callback);
  if (url == nullptr || !allowed) {
    return settle(delivery, Dead{DeadReason::kRejected, Fault::kFailed, allowed.error().message});
  }
  delivery.url = *url;
  hosts_.at(url->host_key(), delivery.received).waiting.push_back(&delivery);
}

void DeliveryLoop::send_waiting(const std::string& key, Host& host) {
  const Moment now = steady_clock::now();
  while (!stopping_ && !host.waiting.empty() && host.limiter.may_send(now) && may_send_to(host.waiting.front()->url)) {
    Delivery& delivery = *host.waiting.front();
    host.waiting.pop_front();
    send(delivery, host);
  }
  // As many as its limit may wait, so that the host is never idle; the others make room for other hosts.
  const auto may_wait = host.limiter.is_paused(now) ? 0 : static_cast<std::size_t>(host.limiter.limit());
  while (host.waiting.size() > may_wait) {
    Delivery& delivery = *host.waiting.back();
    host.waiting.pop_back();
    const Milliseconds pause = host.limiter.pause_left(now);
    std::string note = pause.count() > 0 ? "callbacks to " + key + " are paused for " + core::rough_duration(pause) +
                                               (host.last_error.empty() ? "" : ": " + host.last_error)
                                         : key + " takes " + std::to_string(host.limiter.limit()) +
                                               " callbacks at a time, and this one waits for its turn";
    settle(delivery, Returned{.after = host.limiter.next_slot(now), .note = std::move(note)});
  }
}

bool DeliveryLoop::may_send_to(const CallbackUrl& url) const {
  if (count(State::kSending) >= static_cast<std::size_t>(options_.concurrency)) return false;
  const auto found = sites_.find(url.site());
  return found == sites_.end() || found->second < most_per_site(options_);
}

void DeliveryLoop::send(Delivery& delivery, Host& host) {
  enter(delivery, State::kSending);
  leases_->sent(delivery.ref());
  ++sites_[delivery.url.site()];
  delivery.sent = steady_clock::now();
  delivery.sent_at = wall_now();
  host.limiter.sent();
  http_client::HttpRequest request =
      delivery_request(delivery.lease, delivery.url, signer_, options_, delivery.sent_at);
  const auto left = std::chrono::ceil<Milliseconds>(delivery.deadline - delivery.sent);
  request.answer_within = std::clamp(left, Milliseconds(1), request.answer_within);
  delivery.ticket = client_->send(
      std::move(request),
      posted([key = delivery.key()](DeliveryLoop& loop, const HttpAnswer& answer) { loop.on_answer(key, answer); }));
}

void DeliveryLoop::on_answer(const Key& key, const HttpAnswer& answer) {
  Delivery* const delivery = find(key);
  if (delivery == nullptr) return;
  const Moment now = steady_clock::now();
  const DeliveryResult result = result_of(answer, wall_now(), options_.longest_retry_after);
  const std::string host_key = delivery->url.host_key();
  Host& host = hosts_.at(host_key, now);
  host.limiter.answered(result.health, delivery->sent, now, result.not_before);
  host.last_error = result.error;
  const auto site = sites_.find(delivery->url.site());
  platform::require(site != sites_.end() && site->second > 0, "what is answered was under way to its site");
  if (--site->second == 0) sites_.erase(site);
  record(*delivery, answer, result);
  if (delivery->lost) {
    remove(key);
  } else if (result.kind == Kind::kAccepted) {
    accept(*delivery);
  } else if (result.kind == Kind::kDone) {
    settle(*delivery, Done{.result = answer.body, .content_type = answer.body.empty() ? "" : result_type(answer)});
  } else if (result.kind == Kind::kDead) {
    settle(*delivery, Dead{DeadReason::kRejected, Fault::kFailed, result.error});
  } else if (result.kind == Kind::kReturned) {
    const bool stopped = answer.failure == HttpFailure::kCancelled;
    settle(*delivery, Returned{.after = stopped ? Milliseconds(0) : host.limiter.next_slot(now),
                               .note = stopped ? "the server stopped before it was sent" : result.error});
  } else if (result.kind == Kind::kUnanswered && lasting_leases_) {
    // The receiver may be working on it: the attempt stays charged, and the job is due again when the lease runs out.
    remove(key);
  } else if (result.kind == Kind::kUnanswered) {
    settle(*delivery, failed(*delivery, Fault::kLost, result.error, {}));
  } else {
    const bool out_of_time = answer.failure == HttpFailure::kTimedOut && now >= delivery->deadline;
    settle(*delivery,
           failed(*delivery, out_of_time ? Fault::kTimedOut : Fault::kFailed, result.error, result.not_before));
  }
  send_waiting(host_key, host);
}

void DeliveryLoop::record(const Delivery& delivery, const HttpAnswer& answer, const DeliveryResult& result) {
  const Job& job = delivery.lease.job;
  DeliveryRecord record{.job = job.id,
                        .kind = job.kind,
                        .queue = job.queue,
                        .attempt = delivery.lease.attempt,
                        .url = delivery.url.shown(),
                        .at = delivery.sent_at,
                        .took = answer.took,
                        .status = answer.status,
                        .outcome = result.kind,
                        .error = result.error,
                        .whole = std::make_shared<const Job>(job)};
  if (hooks_.on_delivery) hooks_.on_delivery(record);
  log_->add(std::move(record));
}

void DeliveryLoop::accept(Delivery& delivery) {
  enter(delivery, State::kAccepted);
  leases_->accepted(delivery.ref());
  std::string().swap(delivery.lease.job.body);
  Lease lease = delivery.lease;
  lease.age += std::chrono::floor<Milliseconds>(steady_clock::now() - delivery.received);
  const Status stored = pending_.add(std::move(lease));
  delivery.stored = true;  // Also when it failed: a part may be on disk.
  if (!stored && !std::exchange(reported_unstored_, true)) {
    report("callbacks that were answered 202 are delivered again when the server is restarted: " +
           stored.error().message);
  }
}

void DeliveryLoop::on_settled_by_receiver(const Key& key, const Status& status) {
  Delivery* const delivery = find(key);
  if (delivery == nullptr) return;
  core::ends_lease(status) ? lose(*delivery) : leases_->not_settled(delivery->ref());
}

Outcome DeliveryLoop::failed(const Delivery& delivery, Fault fault, std::string error, Milliseconds not_before) {
  Outcome outcome = core::decide_after_fault(delivery.lease.job.retry, delivery.lease.counts, fault, std::move(error),
                                             random_.next());
  if (auto* retry = std::get_if<RetryAt>(&outcome)) retry->after = std::max(retry->after, not_before);
  return outcome;
}

void DeliveryLoop::report(const std::string& problem) {
  if (hooks_.on_problem) hooks_.on_problem(problem);
}

Delivery* DeliveryLoop::find(const Key& key) {
  const auto found = deliveries_.find(key);
  return found == deliveries_.end() ? nullptr : found->second.get();
}

Delivery& DeliveryLoop::add(std::unique_ptr<Delivery> delivery) {
  const auto [at, added] = deliveries_.emplace(delivery->key(), std::move(delivery));
  platform::require(added, "a lease is given once");
  ++count(at->second->state);
  return *at->second;
}

void DeliveryLoop::enter(Delivery& delivery, State state) {
  platform::require(count(delivery.state) > 0, "a delivery is counted where it is");
  --count(delivery.state);
  ++count(state);
  delivery.state = state;
}

void DeliveryLoop::remove(const Key& key) {
  const auto found = deliveries_.find(key);
  if (found == deliveries_.end()) return;
  const Delivery& delivery = *found->second;
  if (delivery.stored) pending_.remove(delivery.ref());
  leases_->remove(delivery.ref());
  platform::require(count(delivery.state) > 0, "a delivery is counted where it is");
  --count(delivery.state);
  deliveries_.erase(found);
}

}  // namespace bide::server
