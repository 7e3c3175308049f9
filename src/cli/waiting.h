// Waiting for a job to finish, for `enqueue --wait` and `job wait`.

#pragma once

#include "bide/client.h"
#include "cli/invocation.h"
#include "cli/say.h"

namespace bide::cli {

inline constexpr Flag kWaitFlag = {"--wait", "", "wait until the job is done or dead"};
inline constexpr Flag kTimeoutFlag = {"--timeout", "DURATION", "how long to wait; default: 1m"};

Milliseconds timeout_of(const Invocation& call);
// Prints the result, or with --json everything. 0 done, 1 dead; throws Failure 75 when it was neither in time.
int wait_and_print(const Client& client, JobId id, Milliseconds timeout, bool json,
                   const Warnings* warnings = nullptr);

}  // namespace bide::cli
