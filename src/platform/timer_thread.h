// TimerThread: a thread that calls one function whenever it is due. The function says when that is next; wake() calls it
// earlier.

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace bide::platform {

using Moment = std::chrono::steady_clock::time_point;

class TimerThread {
 public:
  // Returns when to be called next; nothing: not before wake().
  using Tick = std::function<std::optional<Moment>(Moment now)>;

  explicit TimerThread(Tick tick);
  ~TimerThread();  // Waits for a tick under way.

  void wake();

 private:
  void run();

  const Tick tick_;

  std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  bool woken_ = true;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace bide::platform
