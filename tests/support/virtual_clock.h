// VirtualClock: time that passes only when a test says so; whoever sleeps by it is woken then. Safe to share between
// threads.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "platform/clock.h"
#include "platform/clock_watchers.h"
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
    {
      const std::lock_guard lock(mutex_);
      now_.wall_us += time.count();
      now_.elapsed_us += time.count();
    }
    watchers_.call();
  }

  // Somebody sets the wall clock; no time passes. May be negative.
  void step_wall(std::int64_t ms) { step_wall(std::chrono::milliseconds(ms)); }
  void step_wall(std::chrono::microseconds time) {
    {
      const std::lock_guard lock(mutex_);
      now_.wall_us += time.count();
    }
    watchers_.call();
  }

  std::shared_ptr<void> watch(std::function<void()> jumped) const override { return watchers_.add(std::move(jumped)); }

 private:
  platform::ClockWatchers watchers_;
  mutable std::mutex mutex_;  // Guards everything below: the two are read together.
  platform::Instant now_;
  int boots_ = 1;
};

}  // namespace bide::support
