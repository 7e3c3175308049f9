#include "brokers/rabbitmq/consumer.h"

#include <algorithm>
#include <array>
#include <future>
#include <utility>

#include "brokers/rabbitmq/consumer_state.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "platform/clock.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

// So that letters and timers get their turn while the server sends without a pause.
constexpr int kEventsARound = 2000;
constexpr Milliseconds kAcksArrive{100};

Status check(const SubscribeOptions& options) {
  const auto wrong = [](std::string text) { return Error{ErrorCode::kInvalidArgument, std::move(text)}; };
  if (options.queues.empty()) return wrong("queues: at least one is needed");
  for (const QueueShare& share : options.queues) {
    if (!core::is_name(share.name)) return wrong("queue " + core::quoted(share.name) + " is not a valid name");
    if (share.weight < 1 || share.weight > 1000) return wrong("weight of queue " + share.name + ": 1 to 1000");
  }
  if (options.credit < 0 || options.credit > 1'000'000) return wrong("credit: 0 to 1000000");
  if (options.lease < Milliseconds(100) || options.lease > std::chrono::hours(24)) return wrong("lease: 100ms to 24h");
  return {};
}

class ConsumerSubscription : public Subscription {
 public:
  ConsumerSubscription(std::function<void(int)> set_credit, std::function<void(std::uint64_t)> set_limit,
                       std::function<void()> end)
      : set_credit_(std::move(set_credit)), set_limit_(std::move(set_limit)), end_(std::move(end)) {}
  ~ConsumerSubscription() override { end_(); }
  void set_credit(int credit) override { set_credit_(credit); }
  void set_delivery_limit(std::uint64_t deliveries) override { set_limit_(deliveries); }

 private:
  std::function<void(int)> set_credit_;
  std::function<void(std::uint64_t)> set_limit_;
  std::function<void()> end_;
};

}  // namespace

Consumer::State::State(const Settings& given, Publisher& publishes, Stamps& stamp_source,
                       std::function<void(const std::string&)> finds_lost)
    : settings(given),
      names(given.prefix),
      publisher(publishes),
      stamps(stamp_source),
      find_lost(std::move(finds_lost)),
      declared(settings, kDeclaringChannel),
      caught_up(!given.notices) {}

// ---- From any thread.

Consumer::Consumer(const Settings& settings, Publisher& publisher, Stamps& stamps,
                   std::function<void(const std::string&)> find_lost)
    : state_(std::make_shared<State>(settings, publisher, stamps, std::move(find_lost))) {
  State* const state = state_.get();
  state_->thread = std::thread([state] { state->run(); });
  state_->thread_id = state_->thread.get_id();
}

Consumer::~Consumer() { close(); }

void Consumer::close() {
  if (!state_->thread.joinable()) return;
  state_->letters.post([state = state_.get()] { state->stopping = true; });
  state_->thread.join();
}

Result<std::unique_ptr<Subscription>> Consumer::subscribe(SubscribeOptions options, LeaseSink sink) {
  if (Status valid = check(options); !valid) return valid.error();
  auto subscriber = std::make_shared<Subscriber>();
  subscriber->credit = options.credit;
  subscriber->options = std::move(options);
  subscriber->sink = std::move(sink);
  auto started = std::make_shared<std::promise<Status>>();
  std::future<Status> answer = started->get_future();
  subscriber->started = [started](Status status) { started->set_value(std::move(status)); };
  if (!state_->letters.post([state = state_, subscriber] { state->add(subscriber); })) {
    return Error{ErrorCode::kUnavailable, "the broker is closed"};
  }
  // On a thread of the broker nothing may wait; mistakes then show as pressure.
  if (!state_->on_thread() && answer.wait_for(state_->settings.patience) == std::future_status::ready) {
    const Status status = answer.get();
    // What may pass is tried again; the rest would be refused for ever.
    if (!status && status.error().code != ErrorCode::kUnavailable && status.error().code != ErrorCode::kBusy) {
      state_->letters.post([state = state_, subscriber] { state->end(subscriber); });
      return status.error();
    }
  }
  auto set_credit = [state = state_, subscriber](int credit) {
    state->letters.post([state, subscriber, credit] { state->set_credit(subscriber, credit); });
  };
  auto set_limit = [state = state_, subscriber](std::uint64_t deliveries) {
    state->letters.post([state, subscriber, deliveries] { state->set_delivery_limit(subscriber, deliveries); });
  };
  auto end = [state = state_, subscriber] {
    if (state->on_thread()) return state->end(subscriber);
    auto ended = std::make_shared<std::promise<void>>();
    std::future<void> done = ended->get_future();
    const bool posted = state->letters.post([state, subscriber, ended] {
      state->end(subscriber);
      ended->set_value();
    });
    if (posted) done.wait();
  };
  return std::unique_ptr<Subscription>(new ConsumerSubscription(std::move(set_credit), std::move(set_limit), std::move(end)));
}

void Consumer::extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) {
  auto call = [state = state_, leases = std::move(leases), done] {
    std::vector<Extended> answers;
    answers.reserve(leases.size());
    for (const LeaseRef& lease : leases) answers.push_back(state->extend(lease));
    done(std::move(answers));
  };
  if (!state_->letters.post(std::move(call))) done(Error{ErrorCode::kUnavailable, "the broker is closed"});
}

void Consumer::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  struct Call {
    std::vector<Settlement> settlements;
    std::vector<Status> answers;
    std::size_t missing = 0;
    Completion<std::vector<Status>> done;
  };
  auto call = std::make_shared<Call>();
  call->answers.resize(settlements.size());
  call->missing = settlements.size();
  call->settlements = std::move(settlements);
  call->done = std::move(done);
  const bool posted = state_->letters.post([state = state_, call] {
    if (call->missing == 0) return call->done(std::vector<Status>());
    for (std::size_t i = 0; i < call->settlements.size(); ++i) {
      state->settle(std::move(call->settlements[i]), [call, i](Status status) {
        call->answers[i] = std::move(status);
        if (--call->missing == 0) call->done(std::move(call->answers));
      });
    }
  });
  if (!posted) call->done(Error{ErrorCode::kUnavailable, "the broker is closed"});
}

void Consumer::tell(std::vector<Notice> notices, std::function<void()> done) {
  const bool posted = state_->letters.post([state = state_, notices = std::move(notices), done] {
    for (const Notice& notice : notices) state->apply(notice);
    done();
  });
  if (!posted) done();
}

void Consumer::ask_board(std::function<void(Result<const NoticeBoard*>)> question) {
  const bool posted = state_->letters.post([state = state_, question] {
    state->wanted = true;
    state->questions.push_back(question);
  });
  if (!posted) question(Error{ErrorCode::kUnavailable, "the broker is closed"});
}

void Consumer::is_running(JobId id, std::function<void(bool)> answer) {
  const bool posted = state_->letters.post([state = state_, id, answer] { answer(state->held.contains(id)); });
  if (!posted) answer(false);
}

Consumer::Stats Consumer::stats() const {
  std::lock_guard lock(state_->stats_mutex);
  return state_->stats;
}

// ---- The consumer's thread.

Time Consumer::State::now() const {
  return Time(std::chrono::floor<Milliseconds>(std::chrono::microseconds(platform::real_clock().now().wall_us)));
}

void Consumer::State::run() {
  while (!stopping) step();
  shut_down();
}

void Consumer::State::step() {
  for (const Letterbox::Letter& letter : letters.take()) letter();
  if (connection == nullptr && wanted && !stopping && steady_clock::now() >= next_connect) connect();
  if (connection != nullptr) take_events();
  const Steady next_timer = run_timers();
  if (connection != nullptr) {
    tend_sources();
    choose();
    ask_if_needed();
  }
  hand_out();
  if (connection != nullptr) flush_acks();
  answer_settled();
  if (stopping) return;

  Milliseconds longest = std::max(Milliseconds(50), std::min(settings.heartbeat / 3, Milliseconds(250)));
  const auto until = [](Steady time) {
    return std::clamp(std::chrono::ceil<Milliseconds>(time - steady_clock::now()), Milliseconds(0),
                      Milliseconds(60'000));
  };
  if (next_timer != Steady::max()) longest = std::min(longest, until(next_timer));
  if (connection == nullptr && wanted) longest = std::min(longest, until(next_connect));
  if (connection != nullptr && connection->has_buffered_input()) return;
  std::array<platform::Readiness, 2> ready = {platform::Readiness{letters.descriptor(), true, false}, {}};
  if (connection != nullptr) ready[1] = {connection->descriptor(), true, false};
  const std::optional<Milliseconds> wait =
      connection == nullptr && !wanted && next_timer == Steady::max() ? std::nullopt : std::optional(longest);
  platform::wait_ready(std::span(ready.data(), connection != nullptr ? 2 : 1), wait);
  if (ready[0].read) letters.woken();
}

void Consumer::State::connect() {
  Result<std::unique_ptr<Connection>> opened =
      Connection::open(settings, "consumer", next_host++, ConnectionUse::kReading);
  if (!opened) return lose(opened.error());
  connection = std::move(*opened);
  declared.reconnected();
  count<&Stats::connections>();
  if (settings.notices) {
    if (Status status = start_reading(); !status) return lose(status.error());
  }
  backoff.reset();
  trouble.clear();
}

// Everything that was out belongs to the server again.
void Consumer::State::lose(const Error& error) {
  const bool was_connected = connection != nullptr;
  connection.reset();
  trouble = error.message;
  next_connect = steady_clock::now() + backoff.next();
  if (was_connected) spare_what_was_out();
  doubtful.clear();
  for (auto& [channel, source] : sources) source->open = false;
  for (const auto& subscriber : subscribers) {
    for (const auto& source : subscriber->sources) {
      source->open = false;
      source->consumers.clear();
      source->buffer.clear();
      source->acks.clear();
      source->next_try = {};
    }
    if (subscriber->started) std::exchange(subscriber->started, nullptr)(error);
  }
  sources.clear();
  for (auto entry = held.begin(); entry != held.end();) {
    const auto lost = entry++;
    // One that is being settled waits for its confirms, to say how it ended.
    if (lost->second.state == Held::State::kOut) release(lost);
  }
  for (const std::vector<Parcel>* parcels : {&to_check, &checking}) {
    for (const Parcel& parcel : *parcels) parcel.source->owner->out -= 1;
  }
  to_check.clear();
  checking.clear();
  asking = false;
  caught_up = !settings.notices;
  memory_open = false;
  for (auto* list : {&questions, &asked}) {
    for (const auto& question : std::exchange(*list, {})) question(error);
  }
}

void Consumer::State::take_events() {
  for (int i = 0; i < kEventsARound && connection != nullptr; ++i) {
    Result<std::optional<Event>> event = connection->next_event();
    if (!event) return lose(event.error());
    if (!event->has_value()) return;
    take_event(std::move(**event));
  }
}

void Consumer::State::take_event(Event event) {
  if (Delivery* delivery = std::get_if<Delivery>(&event)) {
    if (delivery->channel == kNewsChannel) return take_news(*delivery);
    if (delivery->channel == kMemoryChannel) return take_memory(*delivery);
    return take_delivery(std::move(*delivery));
  }
  if (std::holds_alternative<GetEmpty>(event)) return news_are_read();
  if (const ConsumerCancelled* cancelled = std::get_if<ConsumerCancelled>(&event)) {
    const auto found = sources.find(cancelled->channel);
    if (found != sources.end() && found->second->consumers.cancelled(cancelled->consumer) > 0) {
      // The queue is gone, or has a new leader. Made again, or found again, after a moment.
      declared.forget();
      look_for_lost(found->second->queue);
      found->second->next_try = steady_clock::now() + found->second->backoff.next();
    }
    return;
  }
  if (const ChannelClosed* closed = std::get_if<ChannelClosed>(&event)) {
    const auto found = sources.find(closed->channel);
    if (found != sources.end()) return lose_channel(found->second);
    if (closed->channel == kNewsChannel) return lose(closed->error);
    if (closed->channel == kMemoryChannel) return memory_is_closed();
    if (closed->channel == kDeclaringChannel) declared.forget();
  }
}

Steady Consumer::State::run_timers() {
  expire_leases();
  find_stalled();
  look_at_doubtful();
  while (!timers.empty() && timers.top().when <= steady_clock::now()) {
    const std::function<void()> run = timers.top().run;
    timers.pop();
    run();
  }
  Steady next = timers.empty() ? Steady::max() : timers.top().when;
  if (!deadlines.empty()) next = std::min(next, deadlines.top().when);
  if (!doubtful.empty()) next = std::min(next, doubtful.front().first);
  if (!recent.empty()) next = std::min(next, recent.front()->stalled_from);
  return next;
}

void Consumer::State::after(Milliseconds wait, std::function<void()> run) {
  timers.push({steady_clock::now() + wait, std::move(run)});
}

void Consumer::State::flush_acks() {
  for (auto entry = sources.begin(); entry != sources.end();) {
    const std::shared_ptr<Source> source = (entry++)->second;
    if (!source->open || !source->acks.has_settled()) continue;
    for (const AckBook::Ack& ack : source->acks.flush()) {
      if (Status sent = connection->ack(source->channel, ack.tag, ack.multiple); !sent) return lose(sent.error());
    }
    source->last_ack = steady_clock::now();
    close_when_empty(source);
    if (connection == nullptr) return;
  }
}

void Consumer::State::hand_out() {
  // A sink may end its own subscription, which changes the list.
  const std::vector<std::shared_ptr<Subscriber>> all = subscribers;
  for (const auto& subscriber : all) {
    if (subscriber->granted.empty() || subscriber->ended) continue;
    subscriber->sink(std::exchange(subscriber->granted, {}));
  }
}

// The server passes acknowledgements on to a quorum queue in its own time; those that it still holds when the
// connection ends are lost, and their jobs would run again. Nothing tells when it is done, but it takes milliseconds.
void Consumer::State::await_acks() {
  Steady last = {};
  for (const auto& [channel, source] : sources) last = std::max(last, source->last_ack);
  while (connection != nullptr && steady_clock::now() - last < kAcksArrive) {
    take_events();
    platform::wait_ready({}, Milliseconds(10));
  }
}

// Leases that are out are given back, uncharged, as far as the server can be reached in time.
void Consumer::State::shut_down() {
  const std::vector<std::shared_ptr<Subscriber>> all = subscribers;
  for (const auto& subscriber : all) end(subscriber);
  if (connection != nullptr) {
    for (auto entry = held.begin(); entry != held.end();) {
      const auto given = entry++;
      if (given->second.state != Held::State::kOut) continue;
      Parcel parcel = std::move(given->second.parcel);
      release(given);
      if (valid(parcel)) put_back(std::move(parcel), Milliseconds(0), std::nullopt);
    }
  }
  const Steady deadline = steady_clock::now() + settings.patience;
  const auto settling = [this] {
    return std::any_of(held.begin(), held.end(),
                       [](const auto& entry) { return entry.second.state == Held::State::kSettling; });
  };
  while ((replacing > 0 || settling()) && steady_clock::now() < deadline) {
    for (const Letterbox::Letter& letter : letters.take()) letter();
    if (connection == nullptr && !settling()) break;
    if (connection != nullptr) take_events();
    if (connection != nullptr) flush_acks();
    answer_settled();
    std::array<platform::Readiness, 2> ready = {platform::Readiness{letters.descriptor(), true, false}, {}};
    if (connection != nullptr) ready[1] = {connection->descriptor(), true, false};
    if (replacing == 0 && !settling()) break;
    platform::wait_ready(std::span(ready.data(), connection != nullptr ? 2 : 1), Milliseconds(50));
    if (ready[0].read) letters.woken();
  }
  if (connection != nullptr) flush_acks();
  answer_settled();
  await_acks();
  connection.reset();
  // Whoever still waits is told.
  for (auto& [id, entry] : held) {
    for (const auto& answer : std::exchange(entry.waiting, {})) {
      answer(Error{ErrorCode::kUnconfirmed, "the broker was closed before the server had confirmed"});
    }
  }
  for (const Letterbox::Letter& letter : letters.close()) letter();
  for (auto* list : {&questions, &asked}) {
    for (const auto& question : std::exchange(*list, {})) {
      question(Error{ErrorCode::kUnavailable, "the broker is closed"});
    }
  }
}

}  // namespace bide::brokers::rabbitmq
