#include "bide/job.h"

#include <gtest/gtest.h>

namespace bide {
namespace {

TEST(JobText, StatesHaveTheNamesOfTheVocabulary) {
  EXPECT_EQ(to_string(JobState::kScheduled), "scheduled");
  EXPECT_EQ(to_string(JobState::kReady), "ready");
  EXPECT_EQ(to_string(JobState::kRunning), "running");
  EXPECT_EQ(to_string(JobState::kDone), "done");
  EXPECT_EQ(to_string(JobState::kDead), "dead");
}

TEST(JobText, FaultsHaveTheNamesOfTheirCounters) {
  EXPECT_EQ(to_string(Fault::kFailed), "failed");
  EXPECT_EQ(to_string(Fault::kTimedOut), "timed_out");
  EXPECT_EQ(to_string(Fault::kLost), "lost");
  EXPECT_EQ(to_string(Fault::kCrashed), "crashed");
}

TEST(JobText, DeadReasonsSayWhoGaveUp) {
  EXPECT_EQ(to_string(DeadReason::kExhausted), "exhausted");
  EXPECT_EQ(to_string(DeadReason::kRejected), "rejected");
  EXPECT_EQ(to_string(DeadReason::kExpired), "expired");
  EXPECT_EQ(to_string(DeadReason::kPoison), "poison");
  EXPECT_EQ(to_string(DeadReason::kDamaged), "damaged");
}

TEST(JobText, AByteOfANewerVersionIsUnknown) {
  EXPECT_EQ(to_string(static_cast<JobState>(200)), "unknown");
  EXPECT_EQ(to_string(static_cast<Fault>(200)), "unknown");
  EXPECT_EQ(to_string(static_cast<DeadReason>(200)), "unknown");
}

TEST(AttemptCounts, TotalAddsEveryKindOfFault) {
  EXPECT_EQ((AttemptCounts{.failed = 1, .timed_out = 2, .lost = 4, .crashed = 8}.total()), 15u);
}

}  // namespace
}  // namespace bide
