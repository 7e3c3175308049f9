#include "brokers/rabbitmq/compat/foreign_consumer.h"

#include <algorithm>
#include <array>
#include <future>
#include <map>
#include <queue>
#include <thread>
#include <unordered_map>
#include <utility>

#include "brokers/rabbitmq/compat/foreign_state.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "platform/clock.h"
#include "platform/local_socket.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

using std::chrono::steady_clock;

constexpr int kEventsARound = 2000;

Error closed() { return {ErrorCode::kUnavailable, "the broker is closed"}; }

class ForeignSubscription : public Subscription {
 public:
  ForeignSubscription(std::function<void(int)> set_credit, std::function<void(std::uint64_t)> set_limit,
                      std::function<void()> end)
      : set_credit_(std::move(set_credit)), set_limit_(std::move(set_limit)), end_(std::move(end)) {}
  ~ForeignSubscription() override { end_(); }
  void set_credit(int credit) override { set_credit_(credit); }
  void set_delivery_limit(std::uint64_t deliveries) override { set_limit_(deliveries); }

 private:
  std::function<void(int)> set_credit_;
  std::function<void(std::uint64_t)> set_limit_;
  std::function<void()> end_;
};

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

}  // namespace

// ---- From any thread.

ForeignConsumer::ForeignConsumer(const Settings& settings, const Dialect& dialect, Publisher& publisher)
    : state_(std::make_shared<State>(settings, dialect, publisher)) {
  State* const state = state_.get();
  state_->thread = std::thread([state] {
    state->thread_id = std::this_thread::get_id();
    state->run();
  });
}

ForeignConsumer::~ForeignConsumer() { close(); }

void ForeignConsumer::close() {
  if (!state_->thread.joinable()) return;
  state_->letters.post([state = state_.get()] { state->stopping = true; });
  state_->thread.join();
}

Result<std::unique_ptr<Subscription>> ForeignConsumer::subscribe(SubscribeOptions options, LeaseSink sink) {
  if (Status valid = check(options, state_->dialect); !valid) return valid.error();
  auto subscriber = std::make_shared<Subscriber>();
  subscriber->credit = options.credit;
  subscriber->options = std::move(options);
  subscriber->sink = std::move(sink);
  auto started = std::make_shared<std::promise<Status>>();
  std::future<Status> answer = started->get_future();
  subscriber->started = [started](Status status) { started->set_value(std::move(status)); };
  if (!state_->letters.post([state = state_, subscriber] { state->add(subscriber); })) return closed();
  // On a thread of the broker nothing may wait.
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
  return std::unique_ptr<Subscription>(new ForeignSubscription(std::move(set_credit), std::move(set_limit), std::move(end)));
}

void ForeignConsumer::extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) {
  const bool posted = state_->letters.post([state = state_, leases = std::move(leases), done] {
    std::vector<Extended> answers;
    for (const LeaseRef& lease : leases) answers.push_back({.lost = !state->extend(lease)});
    done(std::move(answers));
  });
  if (!posted) done(closed());
}

void ForeignConsumer::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
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
  if (!posted) call->done(closed());
}

void ForeignConsumer::send(Send message, std::function<void(Status)> done) {
  auto parcel = std::make_shared<Send>(std::move(message));
  const bool posted = state_->letters.post([state = state_, parcel, done] {
    if (Status ready = state->reach_server(); !ready) return done(ready);
    Result<Publication> publication = state->topology.prepare(*state->connection, std::move(*parcel));
    if (!publication) return done(publication.error());
    publication->done = done;
    std::vector<Publication> one;
    one.push_back(std::move(*publication));
    state->publisher.publish(std::move(one));
  });
  if (!posted) done(closed());
}

void ForeignConsumer::ensure(std::string queue, std::function<void(Status)> done) {
  const bool posted = state_->letters.post([state = state_, queue = std::move(queue), done] {
    if (Status ready = state->reach_server(); !ready) return done(ready);
    done(state->topology.ensure(*state->connection, state->dialect.topology(queue)));
  });
  if (!posted) done(closed());
}

void ForeignConsumer::run(std::function<void()> task) {
  if (!state_->letters.post(task)) task();
}

// ---- The thread.

Time ForeignConsumer::State::now() const {
  return Time(std::chrono::floor<Milliseconds>(std::chrono::microseconds(platform::real_clock().now().wall_us)));
}

void ForeignConsumer::State::run() {
  while (!stopping) step();
  shut_down();
}

void ForeignConsumer::State::step() {
  for (const Letterbox::Letter& letter : letters.take()) letter();
  if (connection == nullptr && wanted && !stopping && steady_clock::now() >= next_connect) connect();
  if (connection != nullptr) take_events();
  const Steady next_timer = run_timers();
  if (connection != nullptr) tend_sources();
  if (connection != nullptr) choose();
  hand_out();
  if (stopping) return;

  Milliseconds longest = std::clamp(settings.heartbeat / 3, Milliseconds(50), Milliseconds(250));
  const auto until = [](Steady time) {
    return std::clamp(std::chrono::ceil<Milliseconds>(time - steady_clock::now()), Milliseconds(0),
                      Milliseconds(60'000));
  };
  if (next_timer != Steady::max()) longest = std::min(longest, until(next_timer));
  if (connection == nullptr && wanted) longest = std::min(longest, until(next_connect));
  if (connection != nullptr && connection->has_buffered_input()) return;
  std::array<platform::Readiness, 2> ready = {platform::Readiness{letters.descriptor(), true, false}, {}};
  if (connection != nullptr) ready[1] = {connection->descriptor(), true, false};
  const bool idle = connection == nullptr && !wanted && next_timer == Steady::max();
  platform::wait_ready(std::span(ready.data(), connection != nullptr ? 2 : 1),
                       idle ? std::nullopt : std::optional(longest));
  if (ready[0].read) letters.woken();
}

void ForeignConsumer::State::connect() {
  topology.forget();
  Result<std::unique_ptr<Connection>> opened =
      Connection::open(settings, "compat consumer", next_host++, ConnectionUse::kReading);
  if (!opened) return lose(opened.error());
  connection = std::move(*opened);
  backoff.reset();
  trouble.clear();
}

Status ForeignConsumer::State::reach_server() {
  wanted = true;
  if (connection == nullptr && steady_clock::now() >= next_connect) connect();
  if (connection == nullptr) return Error{ErrorCode::kUnavailable, trouble};
  if (!connection->alive()) {
    const Error gone{ErrorCode::kUnavailable, "the connection was lost"};
    lose(gone);
    return gone;
  }
  return {};
}

// Everything that was out belongs to the server again.
void ForeignConsumer::State::lose(const Error& error) {
  connection.reset();
  trouble = error.message;
  next_connect = steady_clock::now() + backoff.next();
  const std::map<ChannelNumber, std::shared_ptr<Source>> all = sources;
  for (const auto& [channel, source] : all) lose_channel(source);
  for (const auto& subscriber : subscribers) {
    for (const auto& source : subscriber->sources) source->next_try = {};
    if (subscriber->started) std::exchange(subscriber->started, nullptr)(error);
  }
}

void ForeignConsumer::State::take_events() {
  for (int i = 0; i < kEventsARound && connection != nullptr; ++i) {
    Result<std::optional<Event>> event = connection->next_event();
    if (!event) return lose(event.error());
    if (!event->has_value()) return;
    take_event(std::move(**event));
  }
}

void ForeignConsumer::State::take_event(Event event) {
  if (Delivery* delivery = std::get_if<Delivery>(&event)) return take_delivery(std::move(*delivery));
  if (const ConsumerCancelled* cancelled = std::get_if<ConsumerCancelled>(&event)) {
    const auto found = sources.find(cancelled->channel);
    if (found == sources.end() || found->second->tag != cancelled->consumer) return;
    // The queue is gone, or has a new leader. Made again, or found again, after a moment.
    topology.forget();
    found->second->tag.clear();
    found->second->next_try = steady_clock::now() + found->second->backoff.next();
    return;
  }
  if (const ChannelClosed* channel = std::get_if<ChannelClosed>(&event)) {
    const auto found = sources.find(channel->channel);
    if (found != sources.end()) {
      lose_channel(found->second);
    } else {
      topology.forget();
    }
  }
}

Steady ForeignConsumer::State::run_timers() {
  expire_leases();
  while (!timers.empty() && timers.top().when <= steady_clock::now()) {
    const std::function<void()> run_now = timers.top().run;
    timers.pop();
    run_now();
  }
  Steady next = timers.empty() ? Steady::max() : timers.top().when;
  if (!deadlines.empty()) next = std::min(next, deadlines.top().when);
  return next;
}

void ForeignConsumer::State::after(Milliseconds wait, std::function<void()> task) {
  timers.push({steady_clock::now() + wait, std::move(task)});
}

void ForeignConsumer::State::hand_out() {
  // A sink may end its own subscription, which changes the list.
  const std::vector<std::shared_ptr<Subscriber>> all = subscribers;
  for (const auto& subscriber : all) {
    if (subscriber->granted.empty() || subscriber->ended) continue;
    subscriber->sink(std::exchange(subscriber->granted, {}));
  }
}

// Closing the connection gives back whatever is out.
void ForeignConsumer::State::shut_down() {
  const std::vector<std::shared_ptr<Subscriber>> all = subscribers;
  for (const auto& subscriber : all) end(subscriber);
  const Steady deadline = steady_clock::now() + settings.patience;
  const auto settling = [this] {
    return replacing > 0 || std::any_of(held.begin(), held.end(),
                                        [](const auto& entry) { return entry.second.state == Held::State::kSettling; });
  };
  while (settling() && connection != nullptr && steady_clock::now() < deadline) {
    std::array<platform::Readiness, 2> ready = {platform::Readiness{letters.descriptor(), true, false},
                                                {connection->descriptor(), true, false}};
    platform::wait_ready(ready, Milliseconds(50));
    if (ready[0].read) letters.woken();
    for (const Letterbox::Letter& letter : letters.take()) letter();
    if (connection != nullptr) take_events();
  }
  connection.reset();
  sources.clear();
  held.clear();
  // Whoever still waits is told: without a connection every call ends at once.
  wanted = false;
  next_connect = Steady::max();
  trouble = closed().message;
  for (const Letterbox::Letter& letter : letters.close()) letter();
}

}  // namespace bide::brokers::rabbitmq::compat
