// Committer: a thread that writes and syncs, so that the engine's thread does not wait for the disk.

#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "bide/result.h"

namespace bide::engine {

class Committer {
 public:
  // `finished` runs in the committer's thread after each commit.
  explicit Committer(std::function<void()> finished) : finished_(std::move(finished)), thread_([this] { run(); }) {}
  ~Committer() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // One at a time: the result of the last one must have been taken. `afterwards` runs after the result is known.
  void start(std::function<Status()> commit, std::function<void()> afterwards) {
    {
      std::lock_guard lock(mutex_);
      commit_ = std::move(commit);
      afterwards_ = std::move(afterwards);
      outcome_.reset();
    }
    changed_.notify_all();
  }
  // `afterwards` has run too. The last result must have been taken.
  void wait_until_idle() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !commit_ && !busy_; });
  }
  bool is_done() const {
    std::lock_guard lock(mutex_);
    return outcome_.has_value();
  }
  // Waits for the commit and takes its result.
  Status wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return outcome_.has_value(); });
    return *std::exchange(outcome_, std::nullopt);
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return commit_ || stop_; });
      if (!commit_) return;
      busy_ = true;
      const std::function<Status()> commit = std::exchange(commit_, nullptr);
      std::function<void()> afterwards = std::exchange(afterwards_, nullptr);
      lock.unlock();
      Status outcome = commit();
      lock.lock();
      outcome_ = std::move(outcome);
      changed_.notify_all();
      lock.unlock();
      finished_();
      afterwards();
      afterwards = nullptr;  // With what it holds, outside of the lock.
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  const std::function<void()> finished_;
  mutable std::mutex mutex_;  // Guards everything below but the thread.
  std::condition_variable changed_;
  std::function<Status()> commit_;
  std::function<void()> afterwards_;
  std::optional<Status> outcome_;
  bool busy_ = false;
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace bide::engine
