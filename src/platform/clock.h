// Clock: what time it is, twice. The wall clock may be stepped by anybody at any moment; elapsed time may not.

#pragma once

#include <chrono>
#include <cstdint>
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
};

Clock& real_clock();

}  // namespace bide::platform
