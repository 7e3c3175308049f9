// Clock: wall time and elapsed time. The wall clock may be stepped at any moment; elapsed time only goes forward.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace bide::platform {

struct Instant {
  std::int64_t wall_us = 0;     // Since 1970, UTC.
  std::int64_t elapsed_us = 0;  // Since some moment before the process started; counts time asleep; never goes back.
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() const = 0;
  // Names the boot of the machine. Elapsed times of the same boot can be compared. Empty: unknown.
  virtual std::string boot() const { return {}; }
  // Calls `jumped` when a clock jumps: the machine was suspended, the wall clock was set, a test moved its clock. A thread that
  // sleeps until a time of this clock must then compute its wait again. On any thread; must not block. Destroying the result
  // ends the watch.
  [[nodiscard]] virtual std::shared_ptr<void> watch(std::function<void()> jumped) const = 0;
};

Clock& real_clock();

// Elapsed time of the real clock in milliseconds, for timeouts. Not a time of day.
inline std::int64_t now_ms() { return real_clock().now().elapsed_us / 1000; }

}  // namespace bide::platform
