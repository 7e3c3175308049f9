// DrainRate: how fast jobs have been leaving lately, and so how long it takes until there is room for some more.

#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <mutex>

#include "bide/job.h"

namespace bide::core {

// Safe to share between threads.
class DrainRate {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  // Told when nothing has left yet, and the most that is ever told.
  static constexpr Milliseconds kUnknown{5'000};
  static constexpr Milliseconds kLongest{300'000};

  void drained(std::uint64_t jobs, Moment now) {
    std::lock_guard lock(mutex_);
    fade(now);
    weight_ += static_cast<double>(jobs);
  }

  // Until so many more have left.
  Milliseconds time_to_drain(std::uint64_t jobs, Moment now) const {
    std::lock_guard lock(mutex_);
    fade(now);
    const double rate = weight_ / kMemorySeconds;  // In jobs a second.
    if (rate < 1e-3) return kUnknown;
    const double seconds = static_cast<double>(std::max<std::uint64_t>(jobs, 1)) / rate;
    return std::clamp(Milliseconds(static_cast<std::int64_t>(std::min(seconds * 1000, 1e9))), Milliseconds(1),
                      kLongest);
  }

 private:
  static constexpr double kMemorySeconds = 10;

  // An exponential mean: a job that left t seconds ago counts exp(-t/10).
  void fade(Moment now) const {
    const double seconds = std::chrono::duration<double>(now - last_).count();
    if (seconds <= 0) return;
    weight_ *= std::exp(-seconds / kMemorySeconds);
    last_ = now;
  }

  mutable std::mutex mutex_;  // Guards everything below.
  mutable Moment last_ = {};
  mutable double weight_ = 0;
};

}  // namespace bide::core
