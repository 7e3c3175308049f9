// CompletionThread: runs completions in order on a thread of its own, so that what callers do in them does not hold up the
// engine's thread.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace bide::engine {

class CompletionThread {
 public:
  CompletionThread() : thread_([this] { run(); }) {}
  // Everything that was added has run.
  ~CompletionThread() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // Backpressure: blocks while kMaxQueued completions are waiting or running.
  void add(std::function<void()> completion) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return queued_.size() < kMaxQueued; });
      queued_.push_back(std::move(completion));
    }
    changed_.notify_all();
  }
  // Lets the adding thread run a completion itself: completions never run concurrently.
  bool is_idle() const {
    std::lock_guard lock(mutex_);
    return queued_.empty();
  }
  void wait_until_idle() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return queued_.empty(); });
  }
  std::thread::id thread_id() const { return thread_.get_id(); }

 private:
  static constexpr std::size_t kMaxQueued = 4;

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !queued_.empty() || stop_; });
      if (queued_.empty()) return;
      {
        const std::function<void()> completion = std::move(queued_.front());
        lock.unlock();
        completion();
      }
      lock.lock();
      queued_.pop_front();
      changed_.notify_all();
    }
  }

  mutable std::mutex mutex_;  // Guards everything below but the thread.
  std::condition_variable changed_;
  std::deque<std::function<void()>> queued_;  // The first one is running.
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace bide::engine
