// Coroutines: handlers that wait without a thread, and calls that are awaited.
//
//   worker.handle("follow", [](const bide::Job& job, bide::Context& context) -> bide::Task<> {
//     const bide::RequestOptions soon{.timeout = 2s};
//     while (true) {
//       const auto state = co_await context.request_awaitable<std::string>("state", job.body, soon);
//       if (state && *state == "ready") co_return;
//       if (!co_await context.sleep(10s)) co_return;   // Asked to stop.
//     }
//   });
//
//   const auto id = co_await client.enqueue_awaitable("resize", png);   // A Result, as everywhere.
//
// Within a handler a coroutine goes on on a thread of its worker, not always the same one. Elsewhere bide::run() runs a
// task on the thread that calls it; a coroutine of another library goes on on the thread that brings the result, which
// must not be blocked. What a coroutine was given by reference must live until it ends: give it values.

#pragma once

#include <atomic>
#include <condition_variable>
#include <coroutine>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <variant>

#include "bide/broker.h"
#include "bide/job.h"
#include "bide/result.h"

// GCC destroys a temporary of an aggregate (options, a struct as a body) that is made within a co_await expression at
// another place than it was made: undefined behaviour, seen with GCC 12. There such a thing must be a variable;
// whatever takes one here refuses a temporary.
#if defined(__GNUC__) && !defined(__clang__)
#define BIDE_NO_AGGREGATES_IN_CO_AWAIT 1
#endif

namespace bide {

namespace coroutine {

template <class Given>
#ifdef BIDE_NO_AGGREGATES_IN_CO_AWAIT
inline constexpr bool kMayBeAwaitedWith =
    std::is_lvalue_reference_v<Given> || !std::is_aggregate_v<std::remove_cvref_t<Given>>;
#else
inline constexpr bool kMayBeAwaitedWith = true;
#endif

}  // namespace coroutine

// Where coroutines go on when they have waited. resume_later() may come from any thread, and must not run them itself.
class Resumer {
 public:
  virtual ~Resumer() = default;
  virtual void resume_later(std::coroutine_handle<> waiting) = 0;
};

namespace coroutine {

// Of a coroutine that waits; null for those of other libraries.
template <class Promise>
std::shared_ptr<Resumer> resumer_of(std::coroutine_handle<Promise> waiting) {
  if constexpr (requires { std::shared_ptr<Resumer>(waiting.promise().resumer); })
    return waiting.promise().resumer;
  else
    return nullptr;
}

// What a coroutine waits for: something that happens once, perhaps before it has begun to wait.
struct Wait {
  std::shared_ptr<Resumer> resumer = {};
  std::coroutine_handle<> waiting = {};

  // By the coroutine, when all is prepared. True: it must be suspended, and may go on elsewhere already.
  bool begin() { return phase_.exchange(Phase::kSuspended) != Phase::kOver; }
  // By the one who has something for it.
  void end() {
    if (phase_.exchange(Phase::kOver) != Phase::kSuspended) return;
    if (resumer)
      resumer->resume_later(waiting);
    else
      waiting.resume();
  }

 private:
  enum class Phase { kPreparing, kSuspended, kOver };
  std::atomic<Phase> phase_ = Phase::kPreparing;
};

struct PromiseState {
  std::shared_ptr<Resumer> resumer = {};
  std::coroutine_handle<> continuation = {};
  // Of a task that nobody awaits. It must not destroy the task.
  std::function<void()> on_end = {};
  // The second of two, the task that ends and its parent that has begun to wait, goes on with the parent. Handing
  // control over by a handle instead would need tail calls, which compilers make only when they optimise: the stack of
  // a loop would grow.
  std::atomic<bool> met = false;

  struct Final {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      PromiseState& promise = ended.promise();
      if (const std::coroutine_handle<> parent = promise.continuation) {
        if (promise.met.exchange(true)) parent.resume();
        return;
      }
      // Whoever is told may destroy the task.
      const std::function<void()> told = std::move(promise.on_end);
      if (told) told();
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  Final final_suspend() const noexcept { return {}; }
};

template <class T>
struct Promise : PromiseState {
  std::variant<std::monostate, T, std::exception_ptr> result = {};

  template <class U>
  void return_value(U&& value) {
    result.template emplace<1>(std::forward<U>(value));
  }
  void unhandled_exception() { result.template emplace<2>(std::current_exception()); }
  T take() {
    if (result.index() == 2) std::rethrow_exception(std::get<2>(result));
    return std::move(std::get<1>(result));
  }
};

template <>
struct Promise<void> : PromiseState {
  std::exception_ptr thrown = {};

  void return_void() {}
  void unhandled_exception() { thrown = std::current_exception(); }
  void take() {
    if (thrown) std::rethrow_exception(thrown);
  }
};

}  // namespace coroutine

// A coroutine that begins when it is awaited, once. Destroyed with this.
template <class T = void>
class [[nodiscard]] Task {
 public:
  struct promise_type : coroutine::Promise<T> {
    Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
  };
  using Handle = std::coroutine_handle<promise_type>;

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      if (handle_) handle_.destroy();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  struct Awaiter {
    Handle handle;
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> parent) {
      coroutine::PromiseState& promise = handle.promise();
      promise.resumer = coroutine::resumer_of(parent);
      promise.continuation = parent;
      handle.resume();
      return !promise.met.exchange(true);
    }
    T await_resume() { return handle.promise().take(); }
  };
  Awaiter operator co_await() && noexcept { return {handle_}; }

  // For those who run tasks instead of awaiting them: the coroutine at its beginning, which is to be resumed once, and
  // what it came to when `on_end` has been called, on whichever thread it ended.
  std::coroutine_handle<> prepare(std::shared_ptr<Resumer> resumer, std::function<void()> on_end) {
    handle_.promise().resumer = std::move(resumer);
    handle_.promise().on_end = std::move(on_end);
    return handle_;
  }
  T take() { return handle_.promise().take(); }

 private:
  explicit Task(Handle handle) : handle_(handle) {}

  Handle handle_;
};

template <class T>
inline constexpr bool kIsTask = false;
template <class T>
inline constexpr bool kIsTask<Task<T>> = true;

// A call with a completion, begun when it is awaited: co_await gives its Result<T>.
template <class T>
class [[nodiscard]] Awaitable {
 public:
  using Start = std::function<void(Completion<T>)>;
  explicit Awaitable(Start start) : start_(std::move(start)) {}

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> waiting) {
    const auto arrival = std::make_shared<Arrival>();
    arrival->resumer = coroutine::resumer_of(waiting);
    arrival->waiting = waiting;
    arrival_ = arrival;
    const Start start = std::move(start_);
    start([arrival](Result<T> result) {
      arrival->result.emplace(std::move(result));
      arrival->end();
    });
    return arrival->begin();
  }
  Result<T> await_resume() { return std::move(*arrival_->result); }

 private:
  struct Arrival : coroutine::Wait {
    std::optional<Result<T>> result = {};
  };

  Start start_;
  std::shared_ptr<Arrival> arrival_ = {};
};

// Waits without a thread. co_await gives true when the time is over, and false when a stop was requested before.
class [[nodiscard]] Sleep {
 public:
  explicit Sleep(Milliseconds time, std::stop_token stop = {}) : time_(time), stop_(std::move(stop)) {}
  Sleep(const Sleep&) = delete;
  Sleep& operator=(const Sleep&) = delete;

  bool await_ready() const noexcept { return time_ <= Milliseconds(0) || stop_.stop_requested(); }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> waiting) {
    return begin(coroutine::resumer_of(waiting), waiting);
  }
  bool await_resume();

 private:
  struct Alarm;
  struct Stopper {
    std::shared_ptr<Alarm> alarm;
    void operator()() const;
  };
  bool begin(std::shared_ptr<Resumer> resumer, std::coroutine_handle<> waiting);

  Milliseconds time_;
  std::stop_token stop_;
  std::shared_ptr<Alarm> alarm_ = {};
  std::optional<std::stop_callback<Stopper>> on_stop_ = {};
};

inline Sleep sleep(Milliseconds time, std::stop_token stop = {}) { return Sleep(time, std::move(stop)); }

// Runs a task, and what it awaits, on this thread until it has ended.
template <class T>
T run(Task<T> task) {
  struct Loop : Resumer {
    std::mutex mutex;  // Guards everything below.
    std::condition_variable changed;
    std::deque<std::coroutine_handle<>> ready;
    bool ended = false;

    void resume_later(std::coroutine_handle<> waiting) override {
      const std::lock_guard lock(mutex);
      ready.push_back(waiting);
      changed.notify_one();
    }
  };
  const auto loop = std::make_shared<Loop>();
  loop->ready.push_back(task.prepare(loop, [raw = loop.get()] {
    const std::lock_guard lock(raw->mutex);
    raw->ended = true;
    raw->changed.notify_one();
  }));
  std::unique_lock lock(loop->mutex);
  while (!loop->ended) {
    loop->changed.wait(lock, [&] { return loop->ended || !loop->ready.empty(); });
    if (loop->ready.empty()) continue;
    const std::coroutine_handle<> next = loop->ready.front();
    loop->ready.pop_front();
    lock.unlock();
    next.resume();
    lock.lock();
  }
  lock.unlock();
  return task.take();
}

}  // namespace bide
