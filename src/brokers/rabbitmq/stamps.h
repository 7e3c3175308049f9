// Stamps: microseconds of the wall clock that never repeat and never go back within a process. Whatever a stamp was
// seen in (a notice, a message) pushes them on, so that cause comes before effect even where clocks differ a little.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "bide/job.h"
#include "platform/clock.h"

namespace bide::brokers::rabbitmq {

// In the milliseconds of jobs.
inline Time wall_now() {
  return Time(std::chrono::floor<Milliseconds>(std::chrono::microseconds(platform::real_clock().now().wall_us)));
}

// Safe to share between threads.
class Stamps {
 public:
  std::int64_t next() {
    const std::int64_t now = platform::real_clock().now().wall_us;
    std::int64_t last = last_.load(std::memory_order_relaxed);
    std::int64_t stamp = 0;
    do {
      stamp = now > last ? now : last + 1;
    } while (!last_.compare_exchange_weak(last, stamp, std::memory_order_relaxed));
    return stamp;
  }

  // Later ones are greater. What is far in the future is somebody's broken clock, and not followed.
  void saw(std::int64_t stamp) {
    if (stamp > platform::real_clock().now().wall_us + kBelievable) return;
    std::int64_t last = last_.load(std::memory_order_relaxed);
    while (last < stamp && !last_.compare_exchange_weak(last, stamp, std::memory_order_relaxed)) {
    }
  }

 private:
  static constexpr std::int64_t kBelievable = 60'000'000;

  std::atomic<std::int64_t> last_ = 0;
};

}  // namespace bide::brokers::rabbitmq
