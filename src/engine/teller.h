// Teller: a thread that tells callers what has become durable, one after another in the order in which it is given, so
// that the engine's thread need not: what callers do with an answer is work too.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace bide::engine {

class Teller {
 public:
  Teller() : thread_([this] { run(); }) {}
  // Everything that was given is told.
  ~Teller() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // Waits when callers are so slow that much is still to be told.
  void add(std::function<void()> tell) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return untold_.size() < kMost; });
      untold_.push_back(std::move(tell));
    }
    changed_.notify_all();
  }
  // Whoever adds may then tell something without it, and nothing is told at the same time.
  bool is_idle() const {
    std::lock_guard lock(mutex_);
    return untold_.empty();
  }
  void wait_until_idle() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return untold_.empty(); });
  }
  std::thread::id thread_id() const { return thread_.get_id(); }

 private:
  static constexpr std::size_t kMost = 4;

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !untold_.empty() || stop_; });
      if (untold_.empty()) return;
      {
        const std::function<void()> tell = std::move(untold_.front());
        lock.unlock();
        tell();
      }
      lock.lock();
      untold_.pop_front();
      changed_.notify_all();
    }
  }

  mutable std::mutex mutex_;  // Guards everything below but the thread.
  std::condition_variable changed_;
  std::deque<std::function<void()>> untold_;  // The first one is being told.
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace bide::engine
