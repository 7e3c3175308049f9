// TimerThread: a thread that calls one function whenever it is due. The function says when that is next; wake() calls it
// earlier. DelayedTasks: tasks that each run once, after a delay, on such a thread.

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
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

// Safe to use from any thread.
class DelayedTasks {
 public:
  DelayedTasks();
  ~DelayedTasks() { stop(); }
  DelayedTasks(const DelayedTasks&) = delete;
  DelayedTasks& operator=(const DelayedTasks&) = delete;

  // The task must not block. After stop() it runs at once, on the calling thread.
  void after(std::chrono::milliseconds delay, std::function<void()> task);

  // Runs what is still waiting. Not to be called from a task.
  void stop();

 private:
  std::optional<Moment> run_until(Moment now);

  std::mutex mutex_;  // Guards the next two.
  std::multimap<Moment, std::function<void()>> waiting_;
  bool stopping_ = false;

  std::unique_ptr<TimerThread> timer_;  // Until stop().
};

}  // namespace bide::platform
