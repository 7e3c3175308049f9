#include "core/retry_decision.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace bide::core {
namespace {

// Without jitter.
Milliseconds scheduled_wait(const RetryPolicy& policy, std::uint64_t n) {
  if (policy.shape == RetryPolicy::Shape::kNone) return Milliseconds(0);
  if (policy.shape == RetryPolicy::Shape::kFixed) return policy.wait;
  if (policy.shape == RetryPolicy::Shape::kSteps) {
    return policy.waits.empty() ? Milliseconds(0) : policy.waits[std::min<std::uint64_t>(n, policy.waits.size() - 1)];
  }
  const Milliseconds base = policy.wait;
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

// In [0, 1): the 53 bits that a double holds exactly.
double share(std::uint64_t random) { return static_cast<double>(random >> 11) * 0x1p-53; }

// Wider than the counters, so that not even absurd counts wrap around to a fresh budget.
std::uint64_t faults(const AttemptCounts& counts) {
  return std::uint64_t{counts.failed} + counts.timed_out + counts.lost + counts.crashed;
}

constexpr Milliseconds kFirstCrashWait{1'000};
constexpr Milliseconds kLongestCrashWait{30'000};

}  // namespace

Milliseconds wait_before_retry(const RetryPolicy& policy, std::uint64_t n, std::uint64_t random) {
  const Milliseconds wait = scheduled_wait(policy, n);
  const double longer = static_cast<double>(wait.count()) * policy.jitter * share(random);
  return wait + Milliseconds(static_cast<std::int64_t>(longer));
}

Milliseconds longest_wait_after_crash(std::uint64_t crashes) {
  Milliseconds longest = kFirstCrashWait;
  for (std::uint64_t n = 1; n < crashes && longest < kLongestCrashWait; ++n) longest *= 4;
  return std::min(longest, kLongestCrashWait);
}

Milliseconds wait_after_crash(std::uint64_t crashes, std::uint64_t random) {
  const Milliseconds longest = longest_wait_after_crash(crashes);
  return Milliseconds(static_cast<std::int64_t>(static_cast<double>(longest.count() + 1) * share(random)));
}

bool is_last_chance(const AttemptCounts& counts, std::uint32_t max_crashes) {
  return counts.crashed > 0 && std::uint64_t{counts.crashed} + 1 >= max_crashes;
}

bool would_die_by_crash(const RetryPolicy& policy, const AttemptCounts& before, std::uint32_t max_crashes) {
  return std::uint64_t{before.crashed} + 1 >= max_crashes || faults(before) + 1 >= policy.max_attempts;
}

Outcome decide_after_fault(const RetryPolicy& policy, const AttemptCounts& before, Fault fault, std::string error,
                           std::uint64_t random, std::uint32_t max_crashes) {
  const std::uint64_t earlier = faults(before);

  if (fault == Fault::kCrashed) {
    const std::uint64_t crashes = std::uint64_t{before.crashed} + 1;
    if (crashes >= max_crashes) return Dead{DeadReason::kPoison, fault, poison_text(crashes, error)};
  }
  if (earlier + 1 >= policy.max_attempts) return Dead{DeadReason::kExhausted, fault, std::move(error)};

  const auto wait = [&] {
    if (fault == Fault::kLost) return Milliseconds(0);
    if (fault == Fault::kCrashed) return wait_after_crash(std::uint64_t{before.crashed} + 1, random);
    return wait_before_retry(policy, earlier, random);
  };
  return RetryAt{.after = wait(), .fault = fault, .error = std::move(error)};
}

}  // namespace bide::core
