// Replaying many dead jobs: with canaries first, spread over time.

#pragma once

#include <vector>

#include "bide/client.h"
#include "cli/invocation.h"

namespace bide::cli {

struct ReplayPlan {
  bool keep_attempts = false;
  int rate = 0;            // A second; 0: all at once.
  std::size_t canary = 0;  // So many first; the rest only when none of them dies again.
  Milliseconds timeout{30'000};
};

int replay_jobs(Client& client, const Invocation& call, const std::vector<JobInfo>& jobs, const ReplayPlan& plan);
// What would be replayed, by kind.
int print_plan(const Invocation& call, const std::vector<JobInfo>& jobs);

}  // namespace bide::cli
