// TaskQueue: tasks for one thread from others, with a descriptor to poll. Whoever posts may outlive the thread.
//
// TaskThread: runs one task after another on a thread of its own, which starts with the first.

#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
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

class TaskThread {
 public:
  ~TaskThread() { close(); }

  // False when it is closed: the task will not run.
  bool post(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    tasks_.push_back(std::move(task));
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    arrived_.notify_one();
    return true;
  }

  // What was posted is still done.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    arrived_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      arrived_.wait(lock, [this] { return closed_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;  // Guards everything below.
  std::condition_variable arrived_;
  std::deque<std::function<void()>> tasks_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace bide::brokers::rabbitmq
