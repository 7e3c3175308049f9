// WorkerState: what is behind a Worker; the clock of its handlers, and the signals that stop it.

#pragma once

#include <semaphore.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "bide/client.h"
#include "bide/job.h"
#include "bide/worker.h"
#include "platform/clock.h"
#include "worker/attempt_runner.h"
#include "worker/handler_threads.h"

namespace bide::worker {

inline thread_local const platform::Clock* clock_of_thread = nullptr;

// The wall clock as handlers meet it: the real one, or one that the test kit moves.
inline Time wall_now() {
  const platform::Clock& clock = clock_of_thread != nullptr ? *clock_of_thread : platform::real_clock();
  return std::chrono::floor<Milliseconds>(
      std::chrono::sys_time<std::chrono::microseconds>(std::chrono::microseconds(clock.now().wall_us)));
}

// While it lives, wall_now() on this thread is told by another clock.
class ClockScope {
 public:
  explicit ClockScope(const platform::Clock& clock) : before_(std::exchange(clock_of_thread, &clock)) {}
  ~ClockScope() { clock_of_thread = before_; }
  ClockScope(const ClockScope&) = delete;
  ClockScope& operator=(const ClockScope&) = delete;

 private:
  const platform::Clock* before_;
};

// SIGTERM and SIGINT as calls on an ordinary thread, for as long as it lives. Several may live beside one
// another; each is told. What was installed for the signals before is put back with the last of them.
class SignalWatch {
 public:
  // `told` runs on a thread of the watch, with 1 for the first signal, 2 for the second, and so on.
  explicit SignalWatch(std::function<void(int count)> told);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  std::function<void(int)> told_;
  sem_t* arrived_ = nullptr;  // Posted to by the signal handler; not ours to free.
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

struct WorkerState {
  WorkerState(Client given, Setup first) : client(std::move(given)), setup(std::move(first)) {}

  Client client;
  Setup setup;  // Does not change while there are threads.

  std::mutex mutex;  // Guards everything below.
  std::condition_variable changed;
  std::shared_ptr<HandlerThreads> threads;  // Null: not running.
  WorkerStats last_stats;                   // Of the threads before.
  std::optional<Error> failure;             // The broker refuses the worker.
  bool in_run = false;                      // run() waits, and tells about the failure.
  bool stop_requested = false;              // A stop that comes before run() ends it at once.
};

}  // namespace bide::worker
