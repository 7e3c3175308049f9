// TaskInbox: what other threads want done by the one that owns everything.

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace bide::server {

// Safe to share between threads; one of them takes.
class TaskInbox {
 public:
  using Task = std::function<void()>;

  // Dropped once closed.
  void post(Task task) {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    tasks_.push_back(std::move(task));
    arrived_.notify_one();
  }

  // Waits for at least one, not longer than `until`.
  std::vector<Task> take(std::chrono::steady_clock::time_point until) {
    std::unique_lock lock(mutex_);
    const auto any = [this] { return !tasks_.empty(); };
    if (until == std::chrono::steady_clock::time_point::max()) {
      arrived_.wait(lock, any);
    } else {
      arrived_.wait_until(lock, until, any);
    }
    return std::exchange(tasks_, {});
  }

  void close() {
    std::vector<Task> dropped;  // Freed after the lock.
    std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(tasks_);
  }

 private:
  std::mutex mutex_;  // Guards everything below.
  std::condition_variable arrived_;
  std::vector<Task> tasks_;
  bool closed_ = false;
};

}  // namespace bide::server
