// What becomes of a job after an attempt that did not end well: again at some time, or dead. Every broker and the
// worker ask here, so that a policy means the same everywhere.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "bide/job.h"
#include "bide/lease.h"
#include "bide/retry_policy.h"

namespace bide::core {

// A job that killed its worker so often is dead, whatever its policy: it would take the next one down as well.
inline constexpr std::uint32_t kMaxCrashes = 3;

// The wait before the n-th retry, n from 0. Lengthened by jitter, never shortened, and not limited by the cap after
// that. `policy` is valid.
Milliseconds wait_before_retry(const RetryPolicy& policy, std::uint64_t n, std::uint64_t random);

// After a crash nobody knows which of the jobs that ran in the process was to blame. A random wait, longer each time,
// parts them, so that the one that kills does not have the same company again. `crashes` is from 1.
Milliseconds longest_wait_after_crash(std::uint64_t crashes);
Milliseconds wait_after_crash(std::uint64_t crashes, std::uint64_t random);

// One more crash and it is poison. Two such jobs must not run in one process at the same time, as far as the broker can
// see to it: the one that kills would take the other with it for good.
bool is_last_chance(const AttemptCounts& counts, std::uint32_t max_crashes = kMaxCrashes);

// A crash in its next attempt would be its last fault: it would be dead, as poison or as exhausted.
bool would_die_by_crash(const RetryPolicy& policy, const AttemptCounts& before, std::uint32_t max_crashes = kMaxCrashes);

// RetryAt or Dead. `before` counts the earlier faults, without this one; `policy` is valid.
//
// - A crash that is the max_crashes-th: Dead as poison; the error says how often and keeps the text it was given.
// - No attempt left, counting faults of every kind: Dead as exhausted.
// - Lost: again at once, since the job itself may be well.
// - Crashed: likewise, but after a random wait; see above.
// - Failed or timed out: again after the policy's wait, which grows with faults of every kind.
Outcome decide_after_fault(const RetryPolicy& policy, const AttemptCounts& before, Fault fault, std::string error,
                           std::uint64_t random, std::uint32_t max_crashes = kMaxCrashes);

// What a retry policy may be: shared by its parser and by RetryPolicy::validate(). In the order of RetryPolicy::Shape.
inline constexpr std::array<std::string_view, 4> kRetryPolicyNames = {"none", "fixed", "steps", "exponential"};

// The end of a message about a policy that is none of these.
inline constexpr std::string_view kRetryPolicyForms =
    "; allowed: exponential(1s,2,1h,x25), steps(10s,100s,1h), fixed(30s,x5) or none; all but none may end in jitter, "
    "such as fixed(30s,x5,jitter=0.2)";

// What is wrong with the policy; empty when nothing is. Fields that a shape does not use must be as its factory leaves
// them: otherwise the text of a policy would not be the whole policy, and a mistake would pass unseen.
std::string retry_policy_problem(const RetryPolicy& policy);

}  // namespace bide::core
