// RetryPolicy: how often a job is tried and how long it waits in between. Data, carried by the job.
//
//   exponential(1s,2,1h,x25)        the n-th retry waits 1s * 2^n (n from 0), at most 1h; 25 attempts in all
//   steps(10s,100s,1h,2h,10h)       one attempt more than there are steps; with xN at the end the last step repeats
//   fixed(30s,x5)                   30s between attempts, 5 attempts
//   none                            one attempt
//
// Every form but `none` may end in `,jitter=0.2` inside its brackets: each wait is lengthened by up to that fraction of
// itself, at random. Parts at the end may be left out: exponential, exponential(1s,x5), fixed(30s).

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bide/result.h"

namespace bide {

struct RetryPolicy {
  enum class Shape : std::uint8_t { kNone, kFixed, kSteps, kExponential };

  static constexpr std::uint32_t kMaxAttemptsLimit = 10'000;
  static constexpr std::size_t kMaxSteps = 100;

  Shape shape = Shape::kExponential;
  std::uint32_t max_attempts = 25;  // 1 to kMaxAttemptsLimit.
  double factor = 2.0;              // exponential: 1 to 100.
  double jitter = 0.0;              // 0 to 1.
  std::chrono::milliseconds cap = std::chrono::hours(1);  // exponential: the longest wait; not less than the base.
  std::chrono::milliseconds wait = std::chrono::seconds(1);  // fixed: every wait; exponential: the first one.
  std::vector<std::chrono::milliseconds> waits = {};  // steps: one by one. Like every wait, at most Limits::kDelay.

  static RetryPolicy exponential(std::chrono::milliseconds base = std::chrono::seconds(1), double factor = 2.0,
                                 std::chrono::milliseconds cap = std::chrono::hours(1),
                                 std::uint32_t max_attempts = 25);
  static RetryPolicy steps(std::vector<std::chrono::milliseconds> steps);
  static RetryPolicy fixed(std::chrono::milliseconds wait, std::uint32_t max_attempts = 25);
  static RetryPolicy none();

  // The text above. kInvalidArgument names the part that is wrong and its range.
  static Result<RetryPolicy> parse(std::string_view text);
  std::string to_string() const;  // parse(to_string()) gives the same policy.

  // kInvalidArgument when a field is out of its range, or set though the shape has no use for it.
  Status validate() const;

  friend bool operator==(const RetryPolicy&, const RetryPolicy&) = default;
};

}  // namespace bide
