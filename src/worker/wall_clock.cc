#include "worker/wall_clock.h"

#include <utility>

namespace bide::worker {

namespace {

thread_local const platform::Clock* clock_of_thread = nullptr;

}  // namespace

Time wall_now() {
  const platform::Clock& clock = clock_of_thread != nullptr ? *clock_of_thread : platform::real_clock();
  return std::chrono::floor<Milliseconds>(
      std::chrono::sys_time<std::chrono::microseconds>(std::chrono::microseconds(clock.now().wall_us)));
}

ClockScope::ClockScope(const platform::Clock& clock) : before_(std::exchange(clock_of_thread, &clock)) {}

ClockScope::~ClockScope() { clock_of_thread = before_; }

}  // namespace bide::worker
