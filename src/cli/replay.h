// Replaying many dead jobs: with canaries first, at a rate, and with an eye on what becomes of them.
//
// A replayed job has failed again when it is dead again, or waits for another attempt after a fault. The replay stops
// when a canary fails, and, while it goes on at a rate, when at least kFewestFailures and more than `stop_at` of the
// jobs that have come to an end or failed have failed. What has not been replayed by then stays dead.

#pragma once

#include <vector>

#include "bide/client.h"
#include "cli/invocation.h"

namespace bide::cli {

inline constexpr std::size_t kFewestFailures = 5;

struct ReplayPlan {
  bool keep_attempts = false;
  int rate = 0;                  // A second; 0: all at once, and nobody looks at what becomes of them.
  std::size_t canary = 0;        // So many first; the rest only when none of them fails again.
  int stop_at = 20;              // Percent.
  Milliseconds timeout{30'000};  // For the canaries.
};

// Throws Failure: 1 too many fail again, 75 the canaries came to no end in time.
int replay_jobs(Client& client, const Invocation& call, const std::vector<JobInfo>& jobs, const ReplayPlan& plan);
// What would be replayed, by kind.
int print_plan(const Invocation& call, const std::vector<JobInfo>& jobs);

}  // namespace bide::cli
