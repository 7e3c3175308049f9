// TaskQueue: tasks for one thread from others, with a descriptor to poll. Whoever posts may outlive the thread.

#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "platform/local_socket.h"

namespace bide::brokers::rabbitmq {

class TaskQueue {
 public:
  using Task = std::function<void()>;

  // False when it is closed: the task was not taken.
  bool post(Task task) {
    {
      std::lock_guard lock(mutex_);
      if (closed_) return false;
      tasks_.push_back(std::move(task));
      if (tasks_.size() > 1) return true;  // Whoever posted the first has woken it.
    }
    waker_.wake();
    return true;
  }

  std::vector<Task> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(tasks_, {});
  }

  // Returns what nobody has taken.
  std::vector<Task> close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    return std::exchange(tasks_, {});
  }

  // Of the thread that takes: after waiting for the descriptor.
  void woken() { waker_.clear(); }
  int descriptor() const { return waker_.descriptor(); }

 private:
  platform::Waker waker_;

  std::mutex mutex_;  // Guards everything below.
  std::vector<Task> tasks_;
  bool closed_ = false;
};

}  // namespace bide::brokers::rabbitmq
