#include "platform/clock.h"

#include <ctime>

#include "platform/fatal.h"

namespace bide::platform {
namespace {

std::int64_t read_us(clockid_t id) {
  timespec now{};
  require(::clock_gettime(id, &now) == 0, "the system's clocks can be read");
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

class RealClock final : public Clock {
 public:
  // CLOCK_MONOTONIC stands still while the machine sleeps; a lease or a delay must not.
  Instant now() const override { return {.wall_us = read_us(CLOCK_REALTIME), .elapsed_us = read_us(CLOCK_BOOTTIME)}; }
};

}  // namespace

Clock& real_clock() {
  static RealClock clock;
  return clock;
}

}  // namespace bide::platform
