// TaskThread: runs what takes long, one task after the other, so that a thread on which others wait need not. It is started
// with the first task. Its priority is that of the others: they wait for it where it holds a lock, as that of the memory.

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

  // Once it is stopped: at once, on the caller's own thread.
  void run(std::function<void()> task);
  // When everything that was given has been done. Neither may be called by a task.
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
