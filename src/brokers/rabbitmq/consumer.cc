#include "brokers/rabbitmq/consumer.h"

#include <algorithm>
#include <array>
#include <future>
#include <utility>

#include "brokers/rabbitmq/consumer_state.h"
#include "platform/clock.h"
#include "platform/local_socket.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

// So that tasks and timers get their turn while the server sends without a pause.
constexpr int kEventsARound = 2000;

Status check(const SubscribeOptions& options, const Dialect& dialect) {
  const auto wrong = [](std::string text) { return Error{ErrorCode::kInvalidArgument, std::move(text)}; };
  if (options.queues.empty()) return wrong("queues: at least one is needed");
  for (const QueueShare& share : options.queues) {
    if (Status known = dialect.check_queue(share.name); !known) return known;
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

Consumer::State::State(const Settings& given, Dialect& meaning, Publisher& publishes, Stamps& stamp_source,
                       std::function<void(const std::string&)> finds_lost)
    : settings(given),
      dialect(meaning),
      publisher(publishes),
      stamps(stamp_source),
      find_lost(std::move(finds_lost)),
      consumer_timeout(given.consumer_timeout),
      settled(stamp_source),
      log(settings, publishes, stamp_source, timers, tasks) {}

// ---- From any thread.

Consumer::Consumer(const Settings& settings, Dialect& dialect, Publisher& publisher, Stamps& stamps,
                   std::function<void(const std::string&)> find_lost)
    : state_(std::make_shared<State>(settings, dialect, publisher, stamps, std::move(find_lost))) {
  State* const state = state_.get();
  state_->thread = std::thread([state] { state->run(); });
  state_->thread_id = state_->thread.get_id();
}

Consumer::~Consumer() { close(); }

void Consumer::close() {
  if (!state_->thread.joinable()) return;
  state_->tasks->post([state = state_.get()] { state->stopping = true; });
  state_->thread.join();
}

Result<std::unique_ptr<Subscription>> Consumer::subscribe(SubscribeOptions options, LeaseSink sink) {
  if (Status valid = check(options, state_->dialect); !valid) return valid.error();
  auto subscriber = std::make_shared<Subscriber>();
  subscriber->credit = options.credit;
  subscriber->options = std::move(options);
  subscriber->sink = std::move(sink);
  auto started = std::make_shared<std::promise<Status>>();
  std::future<Status> answer = started->get_future();
  subscriber->started = [started](Status status) { started->set_value(std::move(status)); };
  if (!state_->tasks->post([state = state_, subscriber] { state->add(subscriber); })) {
    return closed();
  }
  // On a thread of the broker nothing may wait; mistakes then show as pressure.
  if (!state_->on_thread() && answer.wait_for(state_->settings.patience) == std::future_status::ready) {
    const Status status = answer.get();
    // What may pass is tried again; the rest would be refused for ever.
    if (!status && status.error().code != ErrorCode::kUnavailable && status.error().code != ErrorCode::kBusy) {
      state_->tasks->post([state = state_, subscriber] { state->end(subscriber); });
      return status.error();
    }
  }
  auto set_credit = [state = state_, subscriber](int credit) {
    state->tasks->post([state, subscriber, credit] { state->set_limits(*subscriber, credit, std::nullopt); });
  };
  auto set_limit = [state = state_, subscriber](std::uint64_t deliveries) {
    state->tasks->post([state, subscriber, deliveries] { state->set_limits(*subscriber, std::nullopt, deliveries); });
  };
  auto end = [state = state_, subscriber] {
    if (state->on_thread()) return state->end(subscriber);
    auto ended = std::make_shared<std::promise<void>>();
    std::future<void> done = ended->get_future();
    const bool posted = state->tasks->post([state, subscriber, ended] {
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
  if (!state_->tasks->post(std::move(call))) done(closed());
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
  const bool posted = state_->tasks->post([state = state_, call] {
    if (call->missing == 0) return call->done(std::vector<Status>());
    for (std::size_t i = 0; i < call->settlements.size(); ++i) {
      state->settle(std::move(call->settlements[i]), [call, i](Status status) {
        call->answers[i] = std::move(status);
        if (--call->missing == 0) call->done(std::move(call->answers));
      });
    }
  });
  if (!posted) call->done(closed());
}

void Consumer::tell(std::vector<Notice> notices, std::function<void()> done) {
  const bool posted = state_->tasks->post([state = state_, notices = std::move(notices), done] {
    for (const Notice& notice : notices) state->log.add(notice);
    done();
  });
  if (!posted) done();
}

void Consumer::ask_board(std::function<void(Result<const NoticeBoard*>)> question) {
  const bool posted = state_->tasks->post([state = state_, question] {
    state->wanted = true;
    state->log.ask(question);
  });
  if (!posted) question(closed());
}

void Consumer::is_running(JobId id, std::function<void(bool)> answer) {
  const bool posted = state_->tasks->post([state = state_, id, answer] { answer(state->leases.contains(id)); });
  if (!posted) answer(false);
}

Consumer::Stats Consumer::stats() const {
  std::lock_guard lock(state_->stats_mutex);
  return state_->stats;
}

// ---- The consumer's thread.

void Consumer::State::run() {
  while (!stopping) step();
  shut_down();
}

void Consumer::State::step() {
  for (const platform::Task& task : tasks->take()) task();
  if (connection == nullptr && wanted && !stopping && steady_clock::now() >= next_connect) connect();
  if (connection != nullptr) take_events();
  Steady next = run_timers();
  if (connection != nullptr) {
    tend_sources();
    choose();
    check_chosen();
  }
  hand_out();
  if (connection != nullptr) flush_acks();
  answer_settled();
  if (connection != nullptr) next = std::min(next, close_channels());
  if (stopping || (connection != nullptr && connection->has_buffered_input())) return;

  const bool idle = connection == nullptr && !wanted && next == Steady::max();
  if (connection == nullptr && wanted) next = std::min(next, next_connect);
  Milliseconds longest = std::clamp(settings.heartbeat / 3, Milliseconds(50), Milliseconds(250));
  if (next != Steady::max()) {
    const auto until = std::chrono::ceil<Milliseconds>(next - steady_clock::now());
    longest = std::clamp(until, Milliseconds(0), longest);
  }
  wait_for_work(longest, idle);
}

void Consumer::State::wait_for_work(Milliseconds longest, bool idle) {
  std::array<platform::Readiness, 2> ready = {platform::Readiness{tasks->descriptor(), true, false}, {}};
  if (connection != nullptr) ready[1] = {connection->descriptor(), true, false};
  platform::wait_ready(std::span(ready.data(), connection != nullptr ? 2 : 1),
                       idle ? std::nullopt : std::optional(longest));
  if (ready[0].read) tasks->clear_wakeup();
}

void Consumer::State::connect() {
  Result<std::unique_ptr<Connection>> opened =
      Connection::open(settings, "consumer", next_host++, ConnectionUse::kReading);
  if (!opened) return lose(opened.error());
  connection = std::move(*opened);
  dialect.reconnected();
  count<&Stats::connections>();
  if (Status status = log.start(*connection); !status) return lose(status.error());
  backoff.reset();
  trouble.clear();
}

// Everything that was out belongs to the server again.
void Consumer::State::lose(const Error& error) {
  const bool was_connected = connection != nullptr;
  connection.reset();
  trouble = error.message;
  next_connect = steady_clock::now() + backoff.next();
  if (was_connected) write_interrupted(nullptr);
  for (const auto& [channel, source] : std::exchange(sources, {})) source->clear();
  for (const auto& subscriber : subscribers) {
    for (const auto& source : subscriber->sources) source->next_try = {};
    if (subscriber->started) std::exchange(subscriber->started, nullptr)(error);
  }
  forget_deliveries(nullptr);
  log.stop(error);
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
    if (delivery->channel >= kFirstSource) return take_delivery(std::move(*delivery));
    if (Status taken = log.take(*delivery); !taken) lose(taken.error());
    return;
  }
  if (std::holds_alternative<GetEmpty>(event)) {
    for (JobDelivery& delivery : std::exchange(checking, {})) judge(std::move(delivery));
    return log.queue_is_empty();
  }
  if (const ConsumerCancelled* cancelled = std::get_if<ConsumerCancelled>(&event)) {
    const auto found = sources.find(cancelled->channel);
    if (found != sources.end() && found->second->consumers.cancelled(cancelled->consumer) > 0) {
      const std::shared_ptr<Source> source = found->second;
      // The queue is gone, or has a new leader. Made again, or found again, after a moment.
      dialect.forget();
      look_for_lost(source->queue);
      source->next_try = steady_clock::now() + source->backoff.next();
      if (!source->consumers.any()) retire(source);
    }
    return;
  }
  if (const ConsumerStarted* started = std::get_if<ConsumerStarted>(&event)) {
    const auto found = sources.find(started->channel);
    if (found != sources.end()) take_started(std::shared_ptr(found->second));
    return;
  }
  if (const ConsumerEnded* ended = std::get_if<ConsumerEnded>(&event)) {
    const auto found = sources.find(ended->channel);
    if (found != sources.end() && found->second->cancelling > 0) found->second->cancelling -= 1;
    return;
  }
  if (const ChannelClosed* channel = std::get_if<ChannelClosed>(&event)) {
    const auto found = sources.find(channel->channel);
    if (found != sources.end()) return take_closed(std::shared_ptr(found->second), channel->error);
    if (channel->channel == NoticeLog::kQueueChannel) return lose(channel->error);
    if (channel->channel == NoticeLog::kLogChannel) return log.log_is_closed();
    dialect.channel_closed(channel->channel);
    dialect.forget();
  }
}

Steady Consumer::State::run_timers() {
  expire_leases();
  hold_long_leases();
  copies.find_stalled(steady_clock::now());
  look_at_doubtful();
  Steady next = std::min({timers.run_due(), leases.next_deadline(), copies.next()});
  if (!doubtful.empty()) next = std::min(next, doubtful.front().first);
  return next;
}

void Consumer::State::hand_out() {
  // A sink may end its own subscription, which changes the list.
  const std::vector<std::shared_ptr<Subscriber>> all = subscribers;
  for (const auto& subscriber : all) {
    if (subscriber->granted.empty() || subscriber->ended) continue;
    subscriber->sink(std::exchange(subscriber->granted, {}));
  }
}

// Leases that are out are given back, uncharged, as far as the server can be reached in time.
void Consumer::State::shut_down() {
  const std::vector<std::shared_ptr<Subscriber>> all = subscribers;
  for (const auto& subscriber : all) end(subscriber);
  const auto out = leases.which([](const HeldLease& lease) { return lease.state == HeldLease::State::kOut; });
  for (const JobId& id : out) {
    if (!leases.contains(id)) continue;  // The connection was lost meanwhile.
    JobDelivery delivery = std::move(leases.find(id)->delivery);
    release(id);
    put_back(std::move(delivery));
  }
  spare_unjudged();
  const Steady deadline = steady_clock::now() + settings.patience;
  while (steady_clock::now() < deadline) {
    for (const platform::Task& task : tasks->take()) task();
    if (connection != nullptr) take_events();
    if (connection != nullptr) flush_acks();
    answer_settled();
    if (!leases.any_settling() && !is_cancelling() && (replacing == 0 || connection == nullptr)) break;
    wait_for_work(Milliseconds(50));
  }
  await_acks();
  connection.reset();
  for (const auto& [channel, source] : std::exchange(sources, {})) source->clear();  // Nothing can be written any more.
  for (const platform::Task& task : tasks->close()) task();
  answer_settled();
  // Whoever still waits is told.
  for (const JobId& id : leases.which([](const HeldLease&) { return true; })) {
    for (const auto& answer : std::exchange(leases.find(id)->waiting, {})) {
      answer(Error{ErrorCode::kUnconfirmed, "the broker was closed before the server had confirmed"});
    }
  }
  log.refuse_questions(closed());
}

}  // namespace bide::brokers::rabbitmq
