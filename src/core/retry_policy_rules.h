// What a retry policy may be: shared by its parser and by RetryPolicy::validate().

#pragma once

#include <array>
#include <string>
#include <string_view>

#include "bide/retry_policy.h"

namespace bide::core {

// In the order of RetryPolicy::Shape.
inline constexpr std::array<std::string_view, 4> kRetryPolicyNames = {"none", "fixed", "steps", "exponential"};

// The end of a message about a policy that is none of these.
inline constexpr std::string_view kRetryPolicyForms =
    "; allowed: exponential(1s,2,1h,x25), steps(10s,100s,1h), fixed(30s,x5) or none; all but none may end in jitter, "
    "such as fixed(30s,x5,jitter=0.2)";

// What is wrong with the policy; empty when nothing is. Fields that a shape does not use must be as its factory leaves
// them: otherwise the text of a policy would not be the whole policy, and a mistake would pass unseen.
std::string retry_policy_problem(const RetryPolicy& policy);

}  // namespace bide::core
