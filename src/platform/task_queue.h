// TaskQueue: tasks for one thread, posted by any thread. TaskQueue blocks until there is a task; PollableTaskQueue has
// a descriptor to poll beside sockets. After close() nothing is accepted.

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "platform/local_socket.h"

namespace bide::platform {

using Task = std::function<void()>;

// What both have in common. Safe to share between threads; one of them takes.
class TaskList {
 public:
  // Does not wait.
  std::vector<Task> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(tasks_, {});
  }

  // Returns the tasks that nobody has taken, for the caller to run or to drop.
  std::vector<Task> close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    return std::exchange(tasks_, {});
  }

 protected:
  ~TaskList() = default;

  std::mutex mutex_;  // Guards everything below.
  std::vector<Task> tasks_;
  bool closed_ = false;
};

class TaskQueue : public TaskList {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // False: closed, the task will not run.
  bool post(Task task) {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    tasks_.push_back(std::move(task));
    posted_.notify_one();
    return true;
  }

  // Waits for at least one task, not longer than until the deadline; Deadline::max() waits for ever.
  std::vector<Task> take_until(Deadline deadline) {
    std::unique_lock lock(mutex_);
    const auto any = [this] { return !tasks_.empty(); };
    if (deadline == Deadline::max()) {
      posted_.wait(lock, any);
    } else {
      posted_.wait_until(lock, deadline, any);
    }
    return std::exchange(tasks_, {});
  }

 private:
  std::condition_variable posted_;
};

// Whoever posts holds a share of it: the descriptor is written to after the task may have been taken.
class PollableTaskQueue : public TaskList {
 public:
  // False: closed, the task will not run.
  bool post(Task task) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return false;
      tasks_.push_back(std::move(task));
      if (tasks_.size() > 1) return true;  // The post before this one wakes the thread.
    }
    waker_.wake();
    return true;
  }

  // Readable after the first post. clear_wakeup() before take() makes it wait for the next one.
  int descriptor() const { return waker_.descriptor(); }
  void clear_wakeup() { waker_.clear(); }

 private:
  Waker waker_;
};

}  // namespace bide::platform
