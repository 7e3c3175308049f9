// Results: kept for a while, then forgotten.

#include "conformance/broker_conformance.h"

namespace bide::conformance {

TEST_P(BrokerConformance, ResultIsKeptWithItsJob) {
  BIDE_NEEDS(results);
  BIDE_NEEDS(inspect);
  const JobId id = enqueue_one();
  const std::string result("bytes \0 and more", 16);
  ASSERT_TRUE(succeeded(settle_one(lease_one(), Done{.result = result, .content_type = "text/plain"})));
  for (const Restart how : {Restart::kClean, Restart::kCrash}) {
    const JobInfo info = find(id);
    EXPECT_EQ(info.state, JobState::kDone);
    EXPECT_EQ(info.result, result);
    EXPECT_EQ(info.result_content_type, "text/plain");
    ASSERT_TRUE(info.finished.has_value());
    EXPECT_LE(*info.finished, now());
    restart(how);
  }
  EXPECT_EQ(find(id).result, result);
}

TEST_P(BrokerConformance, DoneJobShowsHowItsEarlierAttemptsEnded) {
  BIDE_NEEDS(results);
  BIDE_NEEDS(inspect);
  const JobId id = enqueue_one();
  ASSERT_TRUE(succeeded(settle_one(lease_one(), RetryAt{.error = "no luck"})));
  ASSERT_TRUE(succeeded(settle_one(lease_one(), Done{.result = "42"})));
  const JobId clean = enqueue_one();
  ASSERT_TRUE(succeeded(settle_one(lease_one(), Done{.result = "43"})));
  for (const Restart how : {Restart::kClean, Restart::kCrash}) {
    const JobInfo info = find(id);
    EXPECT_EQ(info.state, JobState::kDone);
    EXPECT_EQ(info.result, "42");
    EXPECT_EQ(info.attempts, 2u);
    EXPECT_EQ(info.counts.failed, 1u);
    ASSERT_EQ(info.history.size(), 1u);
    EXPECT_EQ(info.history[0].text, "no luck");
    EXPECT_EQ(info.history[0].attempt, 1u);
    EXPECT_EQ(find(clean).counts.total(), 0u);
    EXPECT_TRUE(find(clean).history.empty());
    restart(how);
  }
}

TEST_P(BrokerConformance, DoneJobsAreListedNewestFirst) {
  BIDE_NEEDS(results);
  BIDE_NEEDS(inspect);
  std::vector<JobId> ids;
  for (int i = 0; i < 3; ++i) {
    ids.insert(ids.begin(), enqueue_one());
    ASSERT_TRUE(succeeded(settle_one(lease_one())));
    advance(beats(1));
  }
  EXPECT_EQ(list_ids({.states = {JobState::kDone}, .queue = "default"}), ids);
  EXPECT_EQ(list_ids({.states = {JobState::kDone}, .queue = "default"}, 1), ids);
}

TEST_P(BrokerConformance, DoneJobIsForgottenAfterItsRetention) {
  BIDE_NEEDS(results);
  BIDE_NEEDS(inspect);
  const auto retention = subject().retention();
  if (!retention) GTEST_SKIP() << "retention: a test cannot wait for its end";
  const JobId id = enqueue_one();
  ASSERT_TRUE(succeeded(settle_one(lease_one(), Done{.result = "short-lived"})));
  advance(nearly(*retention));
  barrier();
  EXPECT_EQ(find(id).result, "short-lived");
  // A broker may forget in its own time, but not before and not never.
  advance(*retention);
  barrier();
  EXPECT_TRUE(refused(try_find(id), ErrorCode::kNotFound));
  if (can().audit) {
    EXPECT_TRUE(audit().ok());
  }
}

}  // namespace bide::conformance
