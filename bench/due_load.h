// DueLoad: jobs with random delays, enqueued at a steady pace while others arrive, and how late each of them arrives.

#pragma once

#include <cstdint>
#include <vector>

#include "bide/broker.h"
#include "bide/result.h"

namespace bide::bench {

struct DueLoadOptions {
  int per_second = 500;
  Milliseconds longest_delay{10'000};
  int warm_up_seconds = 0;  // Of the same load, not counted: whatever is made at the first use is there afterwards.
  int seconds = 10;
};

struct DueLoad {
  // From the moment of the call plus the delay to the sink, each job once.
  std::vector<double> late_ms = {};
  std::uint64_t early = 0;
};

// kUnavailable: a job did not arrive in a minute.
Result<DueLoad> measure_due_load(Broker& broker, const char* queue, const DueLoadOptions& options);

}  // namespace bide::bench
