// VirtualClock: time that passes only when a test says so. Safe to share between threads.

#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "platform/clock.h"
#include "platform/fatal.h"

namespace bide::support {

class VirtualClock final : public platform::Clock {
 public:
  // A day in 2024, so that wall time cannot be mistaken for elapsed time.
  explicit VirtualClock(platform::Instant start = {.wall_us = 1'704'067'200'000'000, .elapsed_us = 1'000'000'000})
      : now_(start) {}

  platform::Instant now() const override {
    const std::lock_guard lock(mutex_);
    return now_;
  }

  std::string boot() const override {
    const std::lock_guard lock(mutex_);
    return "boot " + std::to_string(boots_);
  }
  // The machine was started anew: elapsed times of before mean nothing any more.
  void reboot() {
    const std::lock_guard lock(mutex_);
    ++boots_;
  }

  // Time passes, by both clocks. A bare number is milliseconds.
  void advance(std::int64_t ms) { advance(std::chrono::milliseconds(ms)); }
  void advance(std::chrono::microseconds time) {
    platform::require(time.count() >= 0, "elapsed time never goes back");
    const std::lock_guard lock(mutex_);
    now_.wall_us += time.count();
    now_.elapsed_us += time.count();
  }

  // Somebody sets the wall clock; no time passes. May be negative.
  void step_wall(std::int64_t ms) { step_wall(std::chrono::milliseconds(ms)); }
  void step_wall(std::chrono::microseconds time) {
    const std::lock_guard lock(mutex_);
    now_.wall_us += time.count();
  }

 private:
  mutable std::mutex mutex_;  // Guards everything below: the two are read together.
  platform::Instant now_;
  int boots_ = 1;
};

}  // namespace bide::support
