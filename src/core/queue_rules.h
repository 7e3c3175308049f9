// Rules of a queue: what they may be, and the token bucket behind a rate.

#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

#include "bide/queue_rules.h"
#include "bide/result.h"

namespace bide::core {

inline constexpr std::size_t kMostWeights = 1000;
inline constexpr int kMostTurns = 100;  // Of a group.
inline constexpr Milliseconds kLongestPeriod = std::chrono::hours(24 * 31);
inline constexpr std::uint32_t kHighestCount = 1'000'000;

// kInvalidArgument: the message names the field. Default rules, but for the name of the queue, are valid.
Status validate(const QueueRules& rules);
// False: it is as if the queue had none.
bool has_any(const QueueRules& rules);
// Whether it matters which group a job is of.
inline bool tells_groups_apart(const QueueRules& rules) {
  return rules.group_at_once != 0 || rules.group_rate.count != 0 || rules.fair;
}
// The turns of a group.
int weight_of(const QueueRules& rules, std::string_view group);

// A timer is late by up to a millisecond, so a rate is only reached in portions: the burst is at least what the rate brings in
// this time.
inline constexpr Milliseconds kPortion{20};
std::uint32_t burst_of(const RateLimit& limit);
// From one start to the next, in nanoseconds, rounded up.
std::int64_t interval_ns(const RateLimit& limit);

// Tokens come one every interval; a start takes one. Its only state is when it will be full again. Times are in milliseconds on
// any clock that goes forward only; `limit` may change between calls.
class TokenBucket {
 public:
  TokenBucket() = default;
  explicit TokenBucket(std::int64_t full_at_ns) : full_at_ns_(full_at_ns) {}

  bool is_full(std::int64_t now_ms) const { return full_at_ns_ <= now_ms * kNsInMs; }
  std::uint64_t tokens(const RateLimit& limit, std::int64_t now_ms) const;
  void take(const RateLimit& limit, std::int64_t now_ms, std::uint64_t count);
  // When there will be more than `taken` tokens.
  std::int64_t next_ms(const RateLimit& limit, std::int64_t now_ms, std::uint64_t taken) const;

  std::int64_t full_at_ns() const { return full_at_ns_; }

 private:
  static constexpr std::int64_t kNsInMs = 1'000'000;

  // Never further away than an empty bucket takes to be full: the limit may have been another one.
  std::int64_t full_at(const RateLimit& limit, std::int64_t now_ms) const;

  std::int64_t full_at_ns_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace bide::core
