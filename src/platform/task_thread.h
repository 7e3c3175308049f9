// TaskThread: runs long tasks one after another on a thread of its own, which starts with the first task. It has normal
// priority: other threads wait for locks that it holds, for example the allocator's.

#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace bide::platform {

// Safe to share between threads.
class TaskThread {
 public:
  TaskThread() = default;
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // After stop(): runs the task at once, on the caller's thread.
  void run(std::function<void()> task);
  // Both return when all tasks have run. Neither may be called by a task.
  void stop();
  void wait_until_idle();
  // Whether the caller is a task.
  bool is_own_thread();

 private:
  void work();

  std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool is_busy_ = false;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace bide::platform
