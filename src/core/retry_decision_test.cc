#include "core/retry_decision.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <variant>

namespace bide::core {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kNoLuck = std::numeric_limits<std::uint64_t>::max();  // The longest jitter.

RetryPolicy with_jitter(RetryPolicy policy, double jitter) {
  policy.jitter = jitter;
  return policy;
}

Outcome decide(const RetryPolicy& policy, const AttemptCounts& before, Fault fault) {
  return decide_after_fault(policy, before, fault, "boom", 0);
}

Milliseconds retry_after(const Outcome& outcome) {
  const auto* retry = std::get_if<RetryAt>(&outcome);
  EXPECT_NE(retry, nullptr) << "the outcome is not RetryAt";
  return retry ? retry->after : Milliseconds(-1);
}

Dead dead(const Outcome& outcome) {
  const auto* dead = std::get_if<Dead>(&outcome);
  EXPECT_NE(dead, nullptr) << "the outcome is not Dead";
  return dead ? *dead : Dead{DeadReason::kExpired, Fault::kFailed, "not dead"};
}

TEST(WaitBeforeRetry, ExponentialGrowsByItsFactorUpToItsCap) {
  const RetryPolicy policy = RetryPolicy::exponential(1s, 2, 1h);
  EXPECT_EQ(wait_before_retry(policy, 0, 0), 1s);
  EXPECT_EQ(wait_before_retry(policy, 1, 0), 2s);
  EXPECT_EQ(wait_before_retry(policy, 11, 0), 2048s);
  EXPECT_EQ(wait_before_retry(policy, 12, 0), 1h);
  EXPECT_EQ(wait_before_retry(policy, 1'000'000, 0), 1h);
  EXPECT_EQ(wait_before_retry(RetryPolicy::exponential(100ms, 1.5), 2, 0), 225ms);
  EXPECT_EQ(wait_before_retry(RetryPolicy::exponential(5s, 1), 9999, 0), 5s);
  EXPECT_EQ(wait_before_retry(RetryPolicy::exponential(0s, 100), 9999, kNoLuck), 0s);
}

TEST(WaitBeforeRetry, StepsAreTakenInOrderAndTheLastRepeats) {
  const RetryPolicy policy = RetryPolicy::steps({10s, 100s, 1h});
  EXPECT_EQ(wait_before_retry(policy, 0, 0), 10s);
  EXPECT_EQ(wait_before_retry(policy, 1, 0), 100s);
  EXPECT_EQ(wait_before_retry(policy, 2, 0), 1h);
  EXPECT_EQ(wait_before_retry(policy, 3, 0), 1h);
  EXPECT_EQ(wait_before_retry(policy, kNoLuck, 0), 1h);
}

TEST(WaitBeforeRetry, FixedIsAlwaysTheSameAndNoneDoesNotWait) {
  EXPECT_EQ(wait_before_retry(RetryPolicy::fixed(30s), 0, kNoLuck), 30s);
  EXPECT_EQ(wait_before_retry(RetryPolicy::fixed(30s), 24, kNoLuck), 30s);
  EXPECT_EQ(wait_before_retry(RetryPolicy::none(), 0, kNoLuck), 0s);
}

TEST(WaitBeforeRetry, JitterLengthensByUpToItsFraction) {
  const RetryPolicy policy = with_jitter(RetryPolicy::fixed(10s), 0.5);
  EXPECT_EQ(wait_before_retry(policy, 0, 0), 10s);
  EXPECT_EQ(wait_before_retry(policy, 0, std::uint64_t{1} << 63), 12'500ms);
  EXPECT_EQ(wait_before_retry(policy, 0, kNoLuck), 14'999ms);
}

TEST(RetryDecision, AFailureWaitsAsThePolicySaysAndKeepsItsError) {
  const Outcome outcome = decide_after_fault(RetryPolicy::fixed(30s), {}, Fault::kTimedOut, "too slow", 0);
  EXPECT_EQ(retry_after(outcome), 30s);
  EXPECT_EQ(std::get<RetryAt>(outcome).fault, Fault::kTimedOut);
  EXPECT_EQ(std::get<RetryAt>(outcome).error, "too slow");
  EXPECT_FALSE(std::get<RetryAt>(outcome).body);
}

TEST(RetryDecision, EarlierFaultsOfEveryKindLengthenTheWait) {
  const RetryPolicy policy = RetryPolicy::exponential(1s, 2, 1h);
  EXPECT_EQ(retry_after(decide(policy, {}, Fault::kFailed)), 1s);
  EXPECT_EQ(retry_after(decide(policy, {.failed = 1}, Fault::kFailed)), 2s);
  EXPECT_EQ(retry_after(decide(policy, {.failed = 1, .timed_out = 1, .lost = 1, .crashed = 1}, Fault::kFailed)), 16s);
}

TEST(RetryDecision, TheLastAttemptIsExhaustedAndTheOneBeforeIsNot) {
  const RetryPolicy policy = RetryPolicy::steps({10s, 100s});
  EXPECT_EQ(retry_after(decide(policy, {.failed = 1}, Fault::kFailed)), 100s);
  const Dead last = dead(decide(policy, {.failed = 2}, Fault::kFailed));
  EXPECT_EQ(last.reason, DeadReason::kExhausted);
  EXPECT_EQ(last.fault, Fault::kFailed);
  EXPECT_EQ(last.error, "boom");
}

TEST(RetryDecision, NoneIsExhaustedAfterOneFaultOfAnyKind) {
  for (const Fault fault : {Fault::kFailed, Fault::kTimedOut, Fault::kLost, Fault::kCrashed}) {
    EXPECT_EQ(dead(decide(RetryPolicy::none(), {}, fault)).reason, DeadReason::kExhausted) << to_string(fault);
  }
}

TEST(RetryDecision, LostAttemptsRunAgainAtOnceButUseUpTheBudget) {
  const RetryPolicy policy = RetryPolicy::fixed(30s, 3);
  EXPECT_EQ(retry_after(decide(policy, {}, Fault::kLost)), 0s);
  EXPECT_EQ(retry_after(decide(policy, {.lost = 1}, Fault::kLost)), 0s);
  const Dead last = dead(decide(policy, {.lost = 2}, Fault::kLost));
  EXPECT_EQ(last.reason, DeadReason::kExhausted);
  EXPECT_EQ(last.fault, Fault::kLost);
}

TEST(RetryDecision, CrashedAttemptsWaitForARandomTimeThatGrowsWithEachCrash) {
  const RetryPolicy policy = RetryPolicy::fixed(30s, 100);
  const auto wait = [&](std::uint32_t crashed, std::uint64_t random) {
    return retry_after(decide_after_fault(policy, {.failed = 7, .crashed = crashed}, Fault::kCrashed, "", random, 100));
  };
  EXPECT_EQ(wait(0, 0), 0s);
  EXPECT_EQ(wait(0, std::uint64_t{1} << 63), 500ms);
  EXPECT_EQ(wait(0, kNoLuck), 1s);
  EXPECT_EQ(wait(1, 0), 0s);
  EXPECT_EQ(wait(1, kNoLuck), 4s);
  EXPECT_EQ(wait(2, kNoLuck), 16s);
  EXPECT_EQ(wait(3, kNoLuck), 30s);
  EXPECT_EQ(wait(90, kNoLuck), 30s);
}

TEST(RetryDecision, TheLastChanceIsTheAttemptBeforeTheCrashThatWouldBePoison) {
  EXPECT_FALSE(is_last_chance({}));
  EXPECT_FALSE(is_last_chance({.failed = 5, .timed_out = 5, .lost = 5, .crashed = 1}));
  EXPECT_TRUE(is_last_chance({.crashed = 2}));
  EXPECT_TRUE(is_last_chance({.crashed = 1}, 2));
  // Otherwise no two jobs could ever run together.
  EXPECT_FALSE(is_last_chance({}, 1));
}

TEST(RetryDecision, ACrashWouldKillWhatHasNoAttemptLeft) {
  EXPECT_TRUE(would_die_by_crash(RetryPolicy::none(), {}));
  EXPECT_FALSE(would_die_by_crash(RetryPolicy::fixed(30s, 3), {.failed = 1}));
  EXPECT_TRUE(would_die_by_crash(RetryPolicy::fixed(30s, 3), {.failed = 1, .lost = 1}));
  EXPECT_TRUE(would_die_by_crash(RetryPolicy::fixed(30s, 100), {.crashed = 2}));
  EXPECT_FALSE(would_die_by_crash(RetryPolicy::fixed(30s, 100), {.crashed = 1}));
}

TEST(RetryDecision, AJobThatKilledItsWorkerThreeTimesIsPoison) {
  const RetryPolicy policy = RetryPolicy::fixed(30s, 100);
  EXPECT_LE(retry_after(decide(policy, {.crashed = 1}, Fault::kCrashed)), longest_wait_after_crash(2));
  const Dead poison = dead(decide(policy, {.crashed = 2}, Fault::kCrashed));
  EXPECT_EQ(poison.reason, DeadReason::kPoison);
  EXPECT_EQ(poison.fault, Fault::kCrashed);
  EXPECT_EQ(poison.error, "killed its worker 3 times; the last time: boom");
  EXPECT_EQ(dead(decide_after_fault(policy, {.crashed = 2}, Fault::kCrashed, "", 0)).error,
            "killed its worker 3 times");
}

TEST(RetryDecision, PoisonIsTheReasonEvenOnTheLastAttempt) {
  EXPECT_EQ(dead(decide(RetryPolicy::fixed(1s, 3), {.crashed = 2}, Fault::kCrashed)).reason, DeadReason::kPoison);
}

TEST(RetryDecision, OtherFaultsAfterCrashesAreNotPoison) {
  EXPECT_EQ(retry_after(decide(RetryPolicy::fixed(1s, 100), {.crashed = 2}, Fault::kFailed)), 1s);
}

TEST(RetryDecision, TheLimitOfCrashesCanBeChosen) {
  const RetryPolicy policy = RetryPolicy::fixed(30s, 100);
  EXPECT_EQ(dead(decide_after_fault(policy, {}, Fault::kCrashed, "", 0, 1)).error, "killed its worker 1 time");
  EXPECT_TRUE(std::holds_alternative<RetryAt>(decide_after_fault(policy, {.crashed = 8}, Fault::kCrashed, "", 0, 10)));
}

TEST(RetryDecision, AbsurdCountsNeverGiveAFreshBudget) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  const AttemptCounts counts{.failed = kMost, .timed_out = 1, .lost = 0, .crashed = kMost};
  EXPECT_EQ(dead(decide(RetryPolicy::fixed(1s), counts, Fault::kFailed)).reason, DeadReason::kExhausted);
  EXPECT_EQ(dead(decide(RetryPolicy::fixed(1s), counts, Fault::kCrashed)).reason, DeadReason::kPoison);
}

RC_GTEST_PROP(RetryDecisionProperty, WaitsStayBetweenThePlainWaitAndItsJitterForEveryValidPolicy,
              (std::uint64_t random)) {
  constexpr std::int64_t kHundredYears = Milliseconds(Limits::kDelay).count();
  const auto base = *rc::gen::inRange<std::int64_t>(0, kHundredYears + 1);
  const auto cap = *rc::gen::inRange<std::int64_t>(base, kHundredYears + 1);
  const auto factor = static_cast<double>(*rc::gen::inRange(100, 10'001)) / 100;
  const auto jitter = static_cast<double>(*rc::gen::inRange(0, 1001)) / 1000;
  const auto n = *rc::gen::inRange<std::uint64_t>(0, RetryPolicy::kMaxAttemptsLimit);
  const RetryPolicy plain = RetryPolicy::exponential(Milliseconds(base), factor, Milliseconds(cap));
  RC_ASSERT(plain.validate().has_value());

  const Milliseconds wait = wait_before_retry(plain, n, random);
  RC_ASSERT(wait.count() >= base && wait.count() <= cap);
  RC_ASSERT(wait_before_retry(plain, n + 1, random) >= wait);
  const Milliseconds longer = wait_before_retry(with_jitter(plain, jitter), n, random);
  RC_ASSERT(longer >= wait);
  RC_ASSERT(static_cast<double>((longer - wait).count()) <= static_cast<double>(wait.count()) * jitter);
}

RC_GTEST_PROP(RetryDecisionProperty, AJobThatAlwaysFailsIsTriedExactlyAsOftenAsItsPolicySays, ()) {
  const auto attempts = *rc::gen::inRange<std::uint32_t>(1, 200);
  const RetryPolicy policy = RetryPolicy::exponential(1s, 2, 1h, attempts);
  AttemptCounts counts;
  std::uint32_t started = 1;
  for (;;) {
    const Fault fault = *rc::gen::element(Fault::kFailed, Fault::kTimedOut, Fault::kLost);
    if (std::holds_alternative<Dead>(decide(policy, counts, fault))) break;
    (fault == Fault::kFailed ? counts.failed : fault == Fault::kTimedOut ? counts.timed_out : counts.lost) += 1;
    started += 1;
  }
  RC_ASSERT(started == attempts);
}

}  // namespace
}  // namespace bide::core
