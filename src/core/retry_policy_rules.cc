#include "core/retry_decision.h"

#include <algorithm>

#include "bide/job.h"
#include "core/duration.h"
#include "core/number_text.h"

namespace bide::core {
namespace {

using Shape = RetryPolicy::Shape;

// As the factories leave them.
constexpr double kUnusedFactor = 2;
constexpr Milliseconds kUnusedCap = std::chrono::hours(1);
constexpr Milliseconds kUnusedWait = std::chrono::seconds(1);

bool is_wait(Milliseconds wait) { return wait >= Milliseconds(0) && wait <= Limits::kDelay; }

std::string not_a_wait(const std::string& what, Milliseconds wait) {
  return what + " is " + format_duration(wait) + "; allowed: 0 to " + format_duration(Limits::kDelay) + " (100 years)";
}

std::string name_of(const RetryPolicy& policy) {
  return std::string(kRetryPolicyNames[static_cast<std::size_t>(policy.shape)]);
}

std::string steps_problem(const RetryPolicy& policy) {
  const std::size_t count = policy.waits.size();
  if (policy.shape != Shape::kSteps) {
    return count == 0 ? std::string() : name_of(policy) + " has no steps; leave them empty";
  }
  if (policy.wait != kUnusedWait) return "steps has no single wait; leave it at " + format_duration(kUnusedWait);
  if (count == 0) return "there are no steps; give 1 to 100, such as steps(10s,100s,1h)";
  if (count <= RetryPolicy::kMaxSteps) return {};
  return "there are " + std::to_string(count) + " steps; allowed: 1 to " + std::to_string(RetryPolicy::kMaxSteps);
}

std::string waits_problem(const RetryPolicy& policy) {
  if (!is_wait(policy.wait)) return not_a_wait(policy.shape == Shape::kFixed ? "the wait" : "the base", policy.wait);
  const auto wrong = std::find_if_not(policy.waits.begin(), policy.waits.end(), is_wait);
  if (wrong == policy.waits.end()) return {};
  return not_a_wait("step " + std::to_string(wrong - policy.waits.begin() + 1), *wrong);
}

std::string growth_problem(const RetryPolicy& policy) {
  if (policy.shape != Shape::kExponential) {
    if (policy.factor != kUnusedFactor) {
      return name_of(policy) + " has no factor; leave it at " + format_number(kUnusedFactor);
    }
    if (policy.cap != kUnusedCap) return name_of(policy) + " has no cap; leave it at " + format_duration(kUnusedCap);
    return {};
  }
  // Written so that a factor which is not a number is out of range too.
  if (!(policy.factor >= 1 && policy.factor <= 100)) {
    return "the factor is " + format_number(policy.factor) + "; allowed: 1 to 100";
  }
  if (!is_wait(policy.cap)) return not_a_wait("the cap", policy.cap);
  if (policy.cap >= policy.wait) return {};
  const std::string base = format_duration(policy.wait);
  return "the cap of " + format_duration(policy.cap) + " is shorter than the base of " + base +
         "; give a cap of at least the base, such as exponential(" + base + "," + format_number(policy.factor) + "," +
         base + ")";
}

}  // namespace

std::string retry_policy_problem(const RetryPolicy& policy) {
  static const RetryPolicy usual;
  if (policy == usual) return {};
  if (policy.shape > Shape::kExponential) return "the shape is unknown" + std::string(kRetryPolicyForms);
  if (policy.shape == Shape::kNone) {
    if (policy == RetryPolicy::none()) return {};
    return "none is one attempt without waits; make it with RetryPolicy::none()";
  }
  if (policy.max_attempts < 1 || policy.max_attempts > RetryPolicy::kMaxAttemptsLimit) {
    return "max_attempts is " + std::to_string(policy.max_attempts) + "; allowed: 1 to " +
           std::to_string(RetryPolicy::kMaxAttemptsLimit);
  }
  if (!(policy.jitter >= 0 && policy.jitter <= 1)) {
    return "jitter is " + format_number(policy.jitter) + "; allowed: 0 to 1";
  }
  std::string problem = steps_problem(policy);
  if (problem.empty()) problem = waits_problem(policy);
  if (problem.empty()) problem = growth_problem(policy);
  return problem;
}

}  // namespace bide::core
