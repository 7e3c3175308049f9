// Clock: what time it is, twice. The wall clock may be stepped by anybody at any moment; elapsed time may not.

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
  // Elapsed times that were read with the same name, which is not empty, can be compared: it is that of the boot of the
  // machine. Empty: nothing is known.
  virtual std::string boot() const { return {}; }
  // Calls `jumped` when time has moved otherwise than by passing while this process looked on: the machine has slept,
  // the wall clock was set, a test has moved its clock. Whoever sleeps for a span of time, until something that this clock
  // tells, has to look again. On any thread; must not block. Not called any more when what is returned is destroyed.
  [[nodiscard]] virtual std::shared_ptr<void> watch(std::function<void()> jumped) const = 0;
};

Clock& real_clock();

}  // namespace bide::platform
