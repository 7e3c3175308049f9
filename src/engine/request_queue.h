// RequestQueue: requests from any thread, taken all at once by the engine's thread.
//
// take() waits on CLOCK_MONOTONIC. A deadline on another clock needs a wake() when that clock jumps.

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "bide/result.h"

namespace bide::engine {

class Ledger;

struct Request {
  std::function<void(Ledger&)> run;           // On the engine's thread, within a step. Empty: nothing.
  std::function<void(const Status&)> finish;  // After that step's commit, or with the error that prevented it.
  bool alone = false;                         // Not while a commit is under way.
};

class RequestQueue {
 public:
  // False when it is closed: the request was not taken.
  bool post(Request request, std::uint64_t bytes = 0) {
    {
      std::lock_guard lock(mutex_);
      if (closed_) return false;
      requests_.push_back(std::move(request));
      bytes_ += bytes;
      if (!waiting_) return true;
      waiting_ = false;  // One notification is enough.
    }
    arrived_.notify_one();
    return true;
  }

  std::uint64_t bytes() const {
    std::lock_guard lock(mutex_);
    return bytes_;
  }

  // Makes the present or next take() return at once.
  void wake() {
    {
      std::lock_guard lock(mutex_);
      woken_ = true;
      if (!waiting_) return;
    }
    arrived_.notify_one();
  }

  // Takes all requests, waiting at most so long for the first (nothing: without limit). `idle`: the caller has nothing
  // else under way. False: closed and empty.
  bool take(std::vector<Request>& into, std::optional<std::chrono::microseconds> at_most, bool idle) {
    std::unique_lock lock(mutex_);
    if (requests_.empty() && !closed_ && !woken_ && (!at_most || at_most->count() > 0)) {
      waiting_ = true;
      idle_ = idle;
      became_idle_.notify_all();
      const auto something = [this] { return !requests_.empty() || closed_ || woken_; };
      if (at_most) {
        arrived_.wait_for(lock, *at_most, something);
      } else {
        arrived_.wait(lock, something);
      }
      waiting_ = idle_ = false;
    }
    into.swap(requests_);
    bytes_ = 0;
    woken_ = false;
    return !(closed_ && into.empty());
  }

  // Blocks until the taker waits idle and there is no request.
  void wait_until_idle() {
    std::unique_lock lock(mutex_);
    became_idle_.wait(lock, [this] { return is_idle_now(); });
  }
  bool is_idle() const {
    std::lock_guard lock(mutex_);
    return is_idle_now();
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
    became_idle_.notify_all();
  }

 private:
  bool is_idle_now() const { return closed_ || (idle_ && requests_.empty() && !woken_); }

  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable arrived_;
  std::condition_variable became_idle_;
  std::vector<Request> requests_;
  std::uint64_t bytes_ = 0;
  bool waiting_ = false;
  bool idle_ = false;
  bool woken_ = false;
  bool closed_ = false;
};

}  // namespace bide::engine
