#include "bide/retry_policy.h"

#include "core/duration.h"
#include "core/number_text.h"
#include "core/retry_decision.h"

namespace bide {

using core::format_duration;
using core::format_number;

RetryPolicy RetryPolicy::exponential(std::chrono::milliseconds base, double factor, std::chrono::milliseconds cap,
                                     std::uint32_t max_attempts) {
  RetryPolicy policy;
  policy.shape = Shape::kExponential;
  policy.max_attempts = max_attempts;
  policy.factor = factor;
  policy.cap = cap;
  policy.wait = base;
  return policy;
}

RetryPolicy RetryPolicy::steps(std::vector<std::chrono::milliseconds> steps) {
  RetryPolicy policy;
  policy.shape = Shape::kSteps;
  policy.max_attempts = static_cast<std::uint32_t>(steps.size()) + 1;
  policy.waits = std::move(steps);
  return policy;
}

RetryPolicy RetryPolicy::fixed(std::chrono::milliseconds wait, std::uint32_t max_attempts) {
  RetryPolicy policy;
  policy.shape = Shape::kFixed;
  policy.max_attempts = max_attempts;
  policy.wait = wait;
  return policy;
}

RetryPolicy RetryPolicy::none() {
  RetryPolicy policy;
  policy.shape = Shape::kNone;
  policy.max_attempts = 1;
  return policy;
}

std::string RetryPolicy::to_string() const {
  if (shape == Shape::kNone) return "none";
  std::string text = shape == Shape::kExponential ? "exponential(" : shape == Shape::kSteps ? "steps(" : "fixed(";
  if (shape != Shape::kSteps) text += format_duration(wait) + ",";
  for (const std::chrono::milliseconds step : waits) text += format_duration(step) + ",";
  if (shape == Shape::kExponential) text += format_number(factor) + "," + format_duration(cap) + ",";
  if (shape != Shape::kSteps || max_attempts != waits.size() + 1) text += "x" + std::to_string(max_attempts) + ",";
  if (jitter != 0) text += "jitter=" + format_number(jitter) + ",";
  if (text.ends_with(',')) text.pop_back();
  return text + ")";
}

Status RetryPolicy::validate() const {
  const std::string wrong = core::retry_policy_problem(*this);
  if (wrong.empty()) return {};
  return Error{ErrorCode::kInvalidArgument, "invalid retry policy: " + wrong};
}

}  // namespace bide
