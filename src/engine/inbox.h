// Inbox: requests from any thread, for the engine's thread to take all at once.
//
// Waiting is by CLOCK_MONOTONIC; whoever waits until a moment of another clock has to be woken when that one jumps.

#pragma once

#include <condition_variable>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "bide/result.h"

namespace bide::engine {

class Ledger;

struct Request {
  std::function<void(Ledger&)> run;            // In the engine's thread, within a step. Empty: nothing.
  std::function<void(const Status&)> finish;   // After that step's commit, or with the error that prevented it.
  bool alone = false;                          // Not while a sync is under way.
};

class Inbox {
 public:
  // False when it is closed: the request was not taken.
  bool post(Request request, std::uint64_t bytes = 0) {
    {
      std::lock_guard lock(mutex_);
      if (closed_) return false;
      requests_.push_back(std::move(request));
      bytes_ += bytes;
      if (!waiting_) return true;
      waiting_ = false;  // One call wakes it; the others need not.
    }
    arrived_.notify_one();
    return true;
  }

  std::uint64_t bytes() const {
    std::lock_guard lock(mutex_);
    return bytes_;
  }

  // Whoever waits in take() stops waiting, now or the next time.
  void wake() {
    {
      std::lock_guard lock(mutex_);
      woken_ = true;
      if (!waiting_) return;
    }
    arrived_.notify_one();
  }

  // Everything there is, waiting for something at most so long (nothing: for ever). `resting`: nothing else is under way
  // while it waits. False: closed and empty.
  bool take(std::vector<Request>& into, std::optional<std::chrono::microseconds> at_most, bool resting) {
    std::unique_lock lock(mutex_);
    if (requests_.empty() && !closed_ && !woken_ && (!at_most || at_most->count() > 0)) {
      waiting_ = true;
      resting_ = resting;
      rested_.notify_all();
      const auto something = [this] { return !requests_.empty() || closed_ || woken_; };
      if (at_most) {
        arrived_.wait_for(lock, *at_most, something);
      } else {
        arrived_.wait(lock, something);
      }
      waiting_ = resting_ = false;
    }
    into.swap(requests_);
    bytes_ = 0;
    woken_ = false;
    return !(closed_ && into.empty());
  }

  // Blocks until whoever takes is resting and nothing has come for it.
  void wait_until_resting() {
    std::unique_lock lock(mutex_);
    rested_.wait(lock, [this] { return is_resting_now(); });
  }
  bool is_resting() const {
    std::lock_guard lock(mutex_);
    return is_resting_now();
  }

  bool is_closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }

  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    arrived_.notify_one();
    rested_.notify_all();
  }

 private:
  bool is_resting_now() const { return closed_ || (resting_ && requests_.empty() && !woken_); }

  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable arrived_;
  std::condition_variable rested_;
  std::vector<Request> requests_;
  std::uint64_t bytes_ = 0;
  bool waiting_ = false;
  bool resting_ = false;
  bool woken_ = false;
  bool closed_ = false;
};

}  // namespace bide::engine
