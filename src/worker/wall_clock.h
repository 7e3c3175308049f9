// The wall clock as handlers meet it: the real one, or one that the test kit moves.

#pragma once

#include "bide/job.h"
#include "platform/clock.h"

namespace bide::worker {

Time wall_now();

// While it lives, wall_now() on this thread is told by another clock.
class ClockScope {
 public:
  explicit ClockScope(const platform::Clock& clock);
  ~ClockScope();
  ClockScope(const ClockScope&) = delete;
  ClockScope& operator=(const ClockScope&) = delete;

 private:
  const platform::Clock* before_;
};

}  // namespace bide::worker
