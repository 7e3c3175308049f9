#include "core/queue_rules.h"

#include <functional>
#include <string>

#include <gtest/gtest.h>

namespace bide::core {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr std::int64_t kStart = 1'700'000'000'000;

std::uint64_t started_within(const RateLimit& limit, std::int64_t ms, std::int64_t step_ms) {
  TokenBucket bucket;
  std::uint64_t started = 0;
  for (std::int64_t now = kStart; now < kStart + ms; now += step_ms) {
    const std::uint64_t some = bucket.tokens(limit, now);
    bucket.take(limit, now, some);
    started += some;
  }
  return started;
}

std::string refusal(const std::function<void(QueueRules&)>& change) {
  QueueRules rules{.queue = "mail"};
  change(rules);
  const Status valid = validate(rules);
  return valid ? "" : valid.error().message;
}

TEST(QueueRulesTest, TheMessageOfARefusalNamesTheFieldAndWhatIsAllowed) {
  EXPECT_EQ(refusal([](QueueRules&) {}), "");
  EXPECT_EQ(refusal([](QueueRules& r) { r.rate = {.count = 10}; }), "");
  EXPECT_NE(refusal([](QueueRules& r) { r.queue = "no such name"; }).find("queue name"), std::string::npos);
  EXPECT_EQ(refusal([](QueueRules& r) { r.rate = {.count = 1, .burst = 0}; }),
            "rate.burst 0 is out of range; allowed: 1 to 1000000");
  EXPECT_EQ(refusal([](QueueRules& r) { r.group_rate = {.count = 1, .period = Milliseconds(0)}; }),
            "group_rate.period 0 ms is out of range; allowed: 1ms to 31d");
  EXPECT_EQ(refusal([](QueueRules& r) { r.ageing = Milliseconds(-1); }),
            "ageing -1 ms is out of range; allowed: 0 to 100 years");
  EXPECT_NE(refusal([](QueueRules& r) { r.weights = {{"a", 2}}; }).find("fair"), std::string::npos);
  EXPECT_EQ(refusal([](QueueRules& r) {
              r.fair = true;
              r.weights = {{"a", 101}};
            }),
            "weight 101 of group 'a' is out of range; allowed: 1 to 100");
  EXPECT_EQ(refusal([](QueueRules& r) {
              r.fair = true;
              r.weights = {{"a", 1}, {"a", 2}};
            }),
            "weights: group 'a' is given twice");
}

TEST(QueueRulesTest, ABucketIsFullAtFirstAndThenGivesTheRate) {
  const RateLimit limit{.count = 10, .period = seconds(1), .burst = 4};
  EXPECT_EQ(TokenBucket().tokens(limit, kStart), 4u);
  EXPECT_EQ(started_within(limit, 10'000, 1), 4u + 99);
}

TEST(QueueRulesTest, NoMoreThanBurstAndRateStartInAnyTimeHoweverOftenOneLooks) {
  for (const std::uint32_t count : {1u, 3u, 7u, 50u, 333u, 1000u, 100'000u}) {
    for (const std::int64_t step_ms : {1, 3, 19, 250}) {
      const RateLimit limit{.count = count, .period = seconds(1), .burst = 5};
      constexpr std::int64_t kMs = 10'000;
      EXPECT_LE(started_within(limit, kMs, step_ms), burst_of(limit) + count * kMs / 1000) << count << " " << step_ms;
    }
  }
}

TEST(QueueRulesTest, AHighRateIsReachedThoughTimersHaveMilliseconds) {
  const RateLimit limit{.count = 100'000, .period = seconds(1)};
  EXPECT_EQ(burst_of(limit), 2000u);
  EXPECT_GE(started_within(limit, 10'000, 15), 990'000u);
}

TEST(QueueRulesTest, TheNextTokenIsThereWhenItIsSaidToBe) {
  const RateLimit limit{.count = 3, .period = seconds(1), .burst = 2};
  TokenBucket bucket;
  bucket.take(limit, kStart, 2);
  const std::int64_t next = bucket.next_ms(limit, kStart, 0);
  EXPECT_EQ(next, kStart + 334);
  EXPECT_EQ(bucket.tokens(limit, next - 1), 0u);
  EXPECT_EQ(bucket.tokens(limit, next), 1u);
  EXPECT_EQ(bucket.next_ms(limit, kStart, 1), kStart + 667);
}

TEST(QueueRulesTest, ABucketThatWasEmptyUnderASlowerRateIsEmptyUnderTheNewOneAndNotMore) {
  TokenBucket bucket;
  bucket.take({.count = 1, .period = hours(1), .burst = 10}, kStart, 10);
  const RateLimit quick{.count = 10, .period = seconds(1), .burst = 2};
  EXPECT_EQ(bucket.tokens(quick, kStart), 0u);
  EXPECT_EQ(bucket.next_ms(quick, kStart, 0), kStart + 100);
}

TEST(QueueRulesTest, ALargeBurstOfASlowRateIsCutAndStaysALimit) {
  const RateLimit slow{.count = 1, .period = kLongestPeriod, .burst = kHighestCount};
  TokenBucket bucket;
  const std::uint64_t burst = bucket.tokens(slow, kStart);
  EXPECT_GT(burst, 100u);
  bucket.take(slow, kStart, burst);
  EXPECT_EQ(bucket.tokens(slow, kStart + 1000), 0u);
}

}  // namespace
}  // namespace bide::core
