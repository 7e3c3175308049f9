// QueueRules: limits of a queue, for all workers together, and of each group (Job::group) in it. Data in the broker, changed
// while it runs; enforced where leases are granted, so no job is handed out and given back.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bide/job.h"

namespace bide {

// So many starts in any period, evenly. A token bucket: after a pause up to `burst` start at once. A rate of more than 50 a second
// comes in portions of 20 ms: its burst is at least what comes in that time.
struct RateLimit {
  std::uint32_t count = 0;  // 0: no limit. At most a million.
  Milliseconds period{1000};  // At most 31 days.
  std::uint32_t burst = 1;

  friend bool operator==(const RateLimit&, const RateLimit&) = default;
};

// 0 is always: no limit.
struct QueueRules {
  std::string queue = {};

  std::uint32_t at_once = 0;  // Jobs running.
  RateLimit rate = {};
  std::uint32_t group_at_once = 0;  // The same for each group. A job without a group has none of these.
  RateLimit group_rate = {};

  bool fair = false;  // Groups take turns, instead of jobs in the order in which they are due.
  std::vector<std::pair<std::string, int>> weights = {};  // Turns of a group, 1 to 100. Others: 1.
  Milliseconds ageing{0};  // Each such time of waiting counts as one priority higher.

  // Beyond these, enqueuing is kOverloaded.
  std::uint64_t most_jobs = 0;   // Waiting, now or for their time.
  std::uint64_t most_bytes = 0;  // Of their bodies.
  Milliseconds oldest{0};        // The longest waiting job that could run is so old.

  friend bool operator==(const QueueRules&, const QueueRules&) = default;
};

}  // namespace bide
