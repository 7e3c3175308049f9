#include "client/pressure_gate.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "core/duration.h"
#include "core/job_ids.h"
#include "platform/clock.h"
#include "platform/random.h"
#include "platform/timer_thread.h"

namespace bide {

struct PressureWatch::State {
  const std::function<void(const Pressure&)> changed;

  std::mutex mutex;  // Guards everything below.
  std::condition_variable returned;
  std::optional<std::thread::id> calling = {};
  Pressure::Level told = Pressure::Level::kOk;
  bool stopped = false;

  explicit State(std::function<void(const Pressure&)> to_call) : changed(std::move(to_call)) {}

  // False: it was stopped.
  bool tell(const Pressure& now) {
    {
      const std::lock_guard lock(mutex);
      if (stopped) return false;
      if (std::exchange(told, now.level) == now.level) return true;
      calling = std::this_thread::get_id();
    }
    changed(now);
    const std::lock_guard lock(mutex);
    calling.reset();
    returned.notify_all();
    return !stopped;
  }

  void stop() {
    std::unique_lock lock(mutex);
    stopped = true;
    returned.wait(lock, [this] { return !calling || *calling == std::this_thread::get_id(); });
  }
};

PressureWatch& PressureWatch::operator=(PressureWatch&& other) noexcept {
  if (this == &other) return *this;
  stop();
  state_ = std::move(other.state_);
  return *this;
}

void PressureWatch::stop() {
  // The callback that stops its own watch is still running: the gate keeps it until it has returned.
  if (const std::shared_ptr<State> state = std::exchange(state_, nullptr)) state->stop();
}

}  // namespace bide

namespace bide::client {

namespace {

using platform::Moment;
using std::chrono::steady_clock;

using EnqueueAnswer = Result<std::vector<Result<Enqueued>>>;

constexpr std::chrono::milliseconds kLookForWaiters{10};
constexpr std::chrono::milliseconds kLookForWatches{100};
constexpr std::size_t kFirstBurst = 16;
constexpr std::size_t kLargestBurst = 4096;

Error closed() { return {ErrorCode::kUnavailable, "the client was closed before the broker took it"}; }

// The broker says that nothing was written, so that it can be asked again.
bool is_refused(const Result<Enqueued>& result) {
  return !result && (result.error().code == ErrorCode::kOverloaded || result.error().code == ErrorCode::kUnavailable);
}

Error under_pressure(const Pressure& pressure) {
  std::string text = "the broker " +
                     std::string(pressure.level == Pressure::Level::kBlocked ? "takes nothing" : "wants less") +
                     (pressure.reason.empty() ? "" : ": " + pressure.reason);
  if (pressure.retry_after > Milliseconds(0)) text += "; try again in " + core::format_duration(pressure.retry_after);
  return {ErrorCode::kOverloaded, std::move(text)};
}

Moment deadline_of(const PressurePolicy& policy) {
  return steady_clock::now() + std::min(policy.at_most, Milliseconds(std::chrono::hours(24 * 365)));
}

std::size_t bytes_of(const std::vector<Job>& jobs) {
  std::size_t bytes = 0;
  for (const Job& job : jobs) bytes += 300 + job.body.size();
  return bytes;
}

// Jobs that are sent until the broker has taken them, or the policy ends it.
struct Passage {
  std::vector<Job> jobs = {};            // Those that are not settled.
  std::vector<std::size_t> places = {};  // Of each among the results.
  std::vector<Result<Enqueued>> results = {};
  PressurePolicy policy = {};
  Moment deadline = {};
  std::size_t bytes = 0;
  std::uint64_t number = 0;  // In the order of the calls.
  Completion<std::vector<Result<Enqueued>>> done = {};

  void end_all(const Error& error) {
    for (const std::size_t place : places) results[place] = error;
    done(std::move(results));
  }
};
using PassagePtr = std::shared_ptr<Passage>;

}  // namespace

struct PressureGate::State : std::enable_shared_from_this<PressureGate::State> {
  struct Waiter {
    PressurePolicy policy;
    Moment deadline;
    std::size_t bytes;
    std::function<void(State&, const Status&)> go_on;
    std::uint64_t number = 0;  // In the order of the calls; 0: not given.
  };
  using Waiters = std::list<Waiter>;

  std::shared_ptr<Broker> broker;  // Until close(), so that it is not a thread of the broker that ends it.
  std::shared_ptr<Broker> outbox;

  std::mutex mutex;  // Guards everything below.
  std::condition_variable idle;
  int calling = 0;  // Calls into the broker.
  bool is_closed = false;
  std::unique_ptr<platform::TimerThread> timer;  // From the first that waits or watches on.
  std::optional<std::thread::id> timer_thread;
  Waiters waiters;
  std::size_t waiting_bytes = 0;
  std::uint64_t last_number = 0;
  std::size_t burst = kFirstBurst;
  std::vector<std::shared_ptr<PressureWatch::State>> watches;
  core::JobIdSource ids;
  platform::SystemRandom random;

  State(std::shared_ptr<Broker> to, std::shared_ptr<Broker> spill) : broker(std::move(to)), outbox(std::move(spill)) {}

  // False: closed. close() waits for the call.
  template <class Call>
  bool call_broker(Call&& call) {
    {
      const std::lock_guard lock(mutex);
      if (is_closed) return false;
      calling += 1;
    }
    call();
    const std::lock_guard lock(mutex);
    calling -= 1;
    idle.notify_all();
    return true;
  }

  // With the mutex held.
  void look() {
    if (timer == nullptr) {
      timer = std::make_unique<platform::TimerThread>([this](Moment now) { return tick(now); });
    } else {
      timer->wake();
    }
  }

  // ---- Those who wait.

  // Goes on at once when there is no pressure and nobody waits already, otherwise on the gate's thread.
  void admit(Waiter waiter) {
    std::optional<Pressure> now;
    if (!call_broker([&] { now = broker->pressure(); })) return waiter.go_on(*this, closed());
    bool free = now->level < waiter.policy.from;
    if (free) {
      const std::lock_guard lock(mutex);
      free = waiters.empty();
    }
    free ? waiter.go_on(*this, {}) : queue(std::move(waiter));
  }

  // One that was let through before, and was refused, has its place again.
  void queue(Waiter waiter) {
    const bool again = waiter.number != 0;
    std::optional<Error> refusal;
    {
      const std::lock_guard lock(mutex);
      if (is_closed) {
        refusal = closed();
      } else if (!again && waiting_bytes > 0 && waiting_bytes + waiter.bytes > kWaitingBytes) {
        refusal = Error{ErrorCode::kOverloaded, "too much waits for the broker already; try again later"};
      } else {
        waiting_bytes += waiter.bytes;
        auto place = waiters.end();
        if (again) {
          burst = kFirstBurst;
          place = std::find_if(waiters.begin(), waiters.end(),
                               [&](const Waiter& each) { return each.number > waiter.number; });
        } else {
          waiter.number = ++last_number;
        }
        waiters.insert(place, std::move(waiter));
        look();
      }
    }
    if (refusal) waiter.go_on(*this, *refusal);
  }

  std::optional<Moment> tick(Moment now) {
    std::shared_ptr<Broker> asked;
    std::vector<std::shared_ptr<PressureWatch::State>> told;
    {
      const std::lock_guard lock(mutex);
      if (is_closed) return std::nullopt;
      timer_thread = std::this_thread::get_id();
      asked = broker;
      told = watches;
    }
    const Pressure pressure = asked->pressure();
    asked.reset();
    for (const auto& watch : told) {
      if (watch->tell(pressure)) continue;
      const std::lock_guard lock(mutex);
      std::erase(watches, watch);
    }
    told.clear();
    release(pressure, now);
    const std::lock_guard lock(mutex);
    if (is_closed) return std::nullopt;
    if (!waiters.empty()) return now + kLookForWaiters;
    if (!watches.empty()) return now + kLookForWatches;
    return std::nullopt;
  }

  void release(const Pressure& pressure, Moment now) {
    Waiters ready;
    Waiters late;
    {
      const std::lock_guard lock(mutex);
      if (pressure.level == Pressure::Level::kBlocked) burst = kFirstBurst;
      for (auto next = waiters.begin(); next != waiters.end();) {
        const auto each = next++;
        const bool may_pass = pressure.level < each->policy.from && ready.size() < burst;
        if (!may_pass && each->deadline > now) continue;
        waiting_bytes -= each->bytes;
        Waiters& to = may_pass ? ready : late;
        to.splice(to.end(), waiters, each);
      }
      if (ready.size() == burst) burst = std::min(2 * burst, kLargestBurst);
    }
    for (Waiter& each : ready) each.go_on(*this, {});
    for (Waiter& each : late) {
      Error error = under_pressure(pressure);
      if (pressure.level < each.policy.from) error = {ErrorCode::kOverloaded, "others wait for the broker already"};
      error.message = "waited " + core::format_duration(each.policy.at_most) + ": " + error.message;
      each.go_on(*this, error);
    }
  }

  // ---- Jobs.

  Waiter waiter_of(const PassagePtr& passage) {
    return {passage->policy, passage->deadline, passage->bytes, [passage](State& state, const Status& status) {
              if (!status) return passage->end_all(status.error());
              state.send(passage);
            }};
  }

  void spill(const PassagePtr& passage) {
    std::vector<Job> jobs = std::move(passage->jobs);
    const bool called = call_broker([&] {
      outbox->enqueue(std::move(jobs), [passage](EnqueueAnswer answer) {
        if (!answer || answer->size() != passage->places.size()) {
          return passage->end_all(answer ? Error{ErrorCode::kUnconfirmed, "the outbox answered too little"}
                                         : answer.error());
        }
        for (std::size_t i = 0; i < answer->size(); ++i) passage->results[passage->places[i]] = std::move((*answer)[i]);
        passage->done(std::move(passage->results));
      });
    });
    if (!called) passage->end_all(closed());
  }

  void send(const PassagePtr& passage) {
    std::vector<Job> jobs = passage->jobs;
    const bool called = call_broker([&] {
      broker->enqueue(std::move(jobs), [weak = weak_from_this(), passage](EnqueueAnswer answer) {
        take_answer(*passage, std::move(answer));
        if (passage->jobs.empty()) return passage->done(std::move(passage->results));
        const std::shared_ptr<State> state = weak.lock();
        if (!state) return passage->done(std::move(passage->results));
        if (passage->policy.action == OnPressure::kSpill) return state->spill(passage);
        if (steady_clock::now() >= passage->deadline) return passage->done(std::move(passage->results));
        Waiter again = state->waiter_of(passage);
        again.number = passage->number;
        state->queue(std::move(again));
      });
    });
    if (!called) passage->end_all(closed());
  }

  // Keeps the jobs that can be sent again.
  static void take_answer(Passage& passage, EnqueueAnswer answer) {
    std::vector<Job> again;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < passage.places.size(); ++i) {
      Result<Enqueued>& result = passage.results[passage.places[i]];
      if (!answer)
        result = answer.error();
      else if (i < answer->size())
        result = std::move((*answer)[i]);
      else
        result = Error{ErrorCode::kUnconfirmed, "the broker answered too little"};
      if (!is_refused(result)) continue;
      again.push_back(std::move(passage.jobs[i]));
      places.push_back(passage.places[i]);
    }
    passage.jobs = std::move(again);
    passage.places = std::move(places);
    passage.bytes = bytes_of(passage.jobs);
  }

  // What is sent twice is one job where the broker knows ids. The number is the caller's place among those who wait.
  std::uint64_t give_ids(std::vector<Job>& jobs) {
    const std::lock_guard lock(mutex);
    const std::int64_t now_ms = platform::real_clock().now().wall_us / 1000;
    for (Job& job : jobs) {
      if (job.id.is_nil()) job.id = ids.next(now_ms, random.next());
    }
    return ++last_number;
  }

  // What a policy says without waiting: an error, or that it can go on.
  Status check(const PressurePolicy& policy) {
    if (policy.at_most < Milliseconds(0)) {
      return Error{ErrorCode::kInvalidArgument, "pressure: the time to wait must not be negative"};
    }
    if (policy.action == OnPressure::kSpill && outbox == nullptr) {
      return Error{
          ErrorCode::kInvalidArgument,
          "pressure: there is no outbox to spill into; add outbox=DIRECTORY&outbox_use=spill to the broker's URL"};
    }
    return {};
  }
};

PressureGate::PressureGate(std::shared_ptr<Broker> broker, std::shared_ptr<Broker> outbox)
    : state_(std::make_shared<State>(std::move(broker), std::move(outbox))) {}

PressureGate::~PressureGate() { close(); }

void PressureGate::enqueue(std::vector<Job> jobs, const PressurePolicy& policy,
                           Completion<std::vector<Result<Enqueued>>> done) {
  if (const Status valid = state_->check(policy); !valid) return done(valid.error());
  std::optional<Pressure> now;
  if (policy.action == OnPressure::kFail || policy.action == OnPressure::kSpill) {
    if (!state_->call_broker([&] { now = state_->broker->pressure(); })) return done(closed());
  }
  const bool pressed = now && now->level >= policy.from;
  if (policy.action == OnPressure::kFail && pressed) return done(under_pressure(*now));
  if (policy.action == OnPressure::kIgnore || policy.action == OnPressure::kFail) {
    const bool called = state_->call_broker([&] { state_->broker->enqueue(std::move(jobs), done); });
    if (!called) done(closed());
    return;
  }
  const auto passage = std::make_shared<Passage>();
  passage->number = state_->give_ids(jobs);
  passage->jobs = std::move(jobs);
  passage->policy = policy;
  passage->deadline = deadline_of(policy);
  passage->bytes = bytes_of(passage->jobs);
  passage->done = std::move(done);
  for (std::size_t i = 0; i < passage->jobs.size(); ++i) {
    passage->places.push_back(i);
    passage->results.push_back(Enqueued{passage->jobs[i].id});
  }
  if (policy.action == OnPressure::kWait) return state_->admit(state_->waiter_of(passage));
  pressed ? state_->spill(passage) : state_->send(passage);
}

void PressureGate::publish(std::vector<Job> events, const PressurePolicy& policy,
                           Completion<std::vector<Result<Published>>> done) {
  if (policy.action == OnPressure::kSpill) {
    return done(Error{ErrorCode::kInvalidArgument, "pressure: an outbox keeps no events; they cannot be spilled"});
  }
  if (const Status valid = state_->check(policy); !valid) return done(valid.error());
  const auto shared = std::make_shared<std::vector<Job>>(std::move(events));
  const auto go_on = [shared, done](State& state, const Status& status) {
    if (!status) return done(status.error());
    if (!state.call_broker([&] { state.broker->publish(std::move(*shared), done); })) done(closed());
  };
  if (policy.action == OnPressure::kIgnore) return go_on(*state_, {});
  if (policy.action == OnPressure::kFail) {
    std::optional<Pressure> now;
    if (!state_->call_broker([&] { now = state_->broker->pressure(); })) return done(closed());
    return now->level >= policy.from ? done(under_pressure(*now)) : go_on(*state_, {});
  }
  state_->admit({policy, deadline_of(policy), bytes_of(*shared), go_on});
}

PressureWatch PressureGate::watch(std::function<void(const Pressure&)> changed) {
  auto watch = std::make_shared<PressureWatch::State>(std::move(changed));
  const std::lock_guard lock(state_->mutex);
  if (!state_->is_closed) {
    state_->watches.push_back(watch);
    state_->look();
  }
  return PressureWatch(std::move(watch));
}

void PressureGate::close() {
  State::Waiters left;
  std::unique_ptr<platform::TimerThread> timer;
  std::shared_ptr<Broker> broker;
  std::shared_ptr<Broker> outbox;
  bool on_timer = false;
  {
    std::unique_lock lock(state_->mutex);
    if (std::exchange(state_->is_closed, true)) return;
    state_->idle.wait(lock, [&] { return state_->calling == 0; });
    left.swap(state_->waiters);
    timer.swap(state_->timer);
    broker.swap(state_->broker);
    outbox.swap(state_->outbox);
    state_->watches.clear();
    on_timer = state_->timer_thread == std::this_thread::get_id();
  }
  // A callback that closes the client runs on the thread that would be waited for.
  if (on_timer) {
    std::thread([timer = std::move(timer), state = state_]() mutable { timer.reset(); }).detach();
  } else {
    timer.reset();
  }
  for (State::Waiter& each : left) each.go_on(*state_, closed());
}

}  // namespace bide::client
