#include "core/retry_decision.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace bide::core {
namespace {

// Without jitter.
Milliseconds scheduled_wait(const RetryPolicy& policy, std::uint64_t n) {
  if (policy.waits.empty()) return Milliseconds(0);
  if (policy.shape != RetryPolicy::Shape::kExponential) {
    return policy.waits[std::min<std::uint64_t>(n, policy.waits.size() - 1)];
  }
  const Milliseconds base = policy.waits.front();
  if (base == Milliseconds(0)) return base;
  // Compared before it is made whole again: the power may be infinite.
  const double wait = static_cast<double>(base.count()) * std::pow(policy.factor, static_cast<double>(n));
  if (!(wait < static_cast<double>(policy.cap.count()))) return policy.cap;
  return Milliseconds(std::llround(wait));
}

std::string poison_text(std::uint64_t crashes, const std::string& error) {
  const std::string text = "killed its worker " + std::to_string(crashes) + (crashes == 1 ? " time" : " times");
  return error.empty() ? text : text + "; the last time: " + error;
}

}  // namespace

Milliseconds wait_before_retry(const RetryPolicy& policy, std::uint64_t n, std::uint64_t random) {
  const Milliseconds wait = scheduled_wait(policy, n);
  // In [0, 1): the 53 bits that a double holds exactly.
  const double share = static_cast<double>(random >> 11) * 0x1p-53;
  const double longer = static_cast<double>(wait.count()) * policy.jitter * share;
  return wait + Milliseconds(static_cast<std::int64_t>(longer));
}

Outcome decide_after_fault(const RetryPolicy& policy, const AttemptCounts& before, Fault fault, std::string error,
                           std::uint64_t random, std::uint32_t max_crashes) {
  // Wider than the counters, so that not even absurd counts wrap around to a fresh budget.
  const std::uint64_t earlier = std::uint64_t{before.failed} + before.timed_out + before.lost + before.crashed;

  if (fault == Fault::kCrashed) {
    const std::uint64_t crashes = std::uint64_t{before.crashed} + 1;
    if (crashes >= max_crashes) return Dead{DeadReason::kPoison, fault, poison_text(crashes, error)};
  }
  if (earlier + 1 >= policy.max_attempts) return Dead{DeadReason::kExhausted, fault, std::move(error)};

  const bool job_may_be_well = fault == Fault::kLost || fault == Fault::kCrashed;
  const Milliseconds after = job_may_be_well ? Milliseconds(0) : wait_before_retry(policy, earlier, random);
  return RetryAt{.after = after, .fault = fault, .error = std::move(error)};
}

}  // namespace bide::core
