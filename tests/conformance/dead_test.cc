// The dead set: finding in it, replaying from it, deleting from it.

#include "conformance/broker_conformance.h"

namespace bide::conformance {

TEST_P(BrokerConformance, DeadJobsAreListedNewestFirstAndFiltered) {
  BIDE_NEEDS(dead_set);
  const Time start = now();
  const JobId a = make_dead(make_job("resize", "images"), "disk full on node 7");
  advance(beats(1));
  const JobId b = make_dead(make_job("resize", "videos"), "timeout while reading");
  advance(beats(1));
  const Time late = now();
  const JobId c = make_dead(make_job("notify", "images"), "timeout while sending");
  enqueue_one(make_job("resize", "images"));

  const std::vector<JobState> dead = {JobState::kDead};
  using Ids = std::vector<JobId>;
  EXPECT_EQ(list_ids({.states = dead}), (Ids{c, b, a}));
  EXPECT_EQ(list_ids({.states = dead, .queue = "images"}), (Ids{c, a}));
  EXPECT_EQ(list_ids({.states = dead, .kind = "resize"}), (Ids{b, a}));
  EXPECT_EQ(list_ids({.states = dead, .error = "timeout"}), (Ids{c, b}));
  EXPECT_EQ(list_ids({.states = dead, .kind = "notify", .error = "disk"}), (Ids{}));
  EXPECT_EQ(list_ids({.states = dead, .since = late}), (Ids{c}));
  EXPECT_EQ(list_ids({.states = dead, .since = start, .until = late - Milliseconds(1)}), (Ids{b, a}));
}

TEST_P(BrokerConformance, ErrorFilterLooksAtTheNewestErrorOnly) {
  BIDE_NEEDS(dead_set);
  const JobId id = enqueue_one();
  ASSERT_TRUE(succeeded(settle_one(lease_one(), RetryAt{.error = "older"})));
  ASSERT_TRUE(succeeded(settle_one(lease_one(), Dead{.error = "newer"})));
  EXPECT_EQ(list_ids({.states = {JobState::kDead}, .error = "older"}), std::vector<JobId>{});
  EXPECT_EQ(list_ids({.states = {JobState::kDead}, .error = "newer"}), std::vector<JobId>{id});
}

TEST_P(BrokerConformance, ReplayGivesAFreshBudget) {
  BIDE_NEEDS(dead_set);
  Job job = make_job();
  job.body = "still here";
  const JobId id = enqueue_one(job);
  ASSERT_TRUE(succeeded(settle_one(lease_one(), RetryAt{.error = "first"})));
  const Lease last = lease_one();
  ASSERT_TRUE(succeeded(settle_one(last, Dead{.reason = DeadReason::kExhausted, .error = "second"})));
  ASSERT_TRUE(succeeded(replay_one(id)));
  const Lease lease = lease_one();
  EXPECT_EQ(lease.job.id, id);
  EXPECT_EQ(lease.job.body, "still here");
  EXPECT_EQ(lease.attempt, 1u);
  EXPECT_EQ(lease.counts, AttemptCounts{});
  EXPECT_GT(lease.token, last.token);
  EXPECT_TRUE(refused(settle_one(last), ErrorCode::kLeaseLost));
}

TEST_P(BrokerConformance, ReplayCanKeepTheAttempts) {
  BIDE_NEEDS(dead_set);
  const JobId id = enqueue_one();
  ASSERT_TRUE(succeeded(settle_one(lease_one(), RetryAt{.error = "first"})));
  ASSERT_TRUE(succeeded(settle_one(lease_one(), Dead{.error = "second"})));
  ASSERT_TRUE(succeeded(replay_one(id, {.keep_attempts = true})));
  const Lease lease = lease_one();
  EXPECT_EQ(lease.attempt, 3u);
  EXPECT_EQ(lease.counts, (AttemptCounts{.failed = 2}));
  ASSERT_EQ(lease.history.size(), 2u);
  EXPECT_EQ(lease.history[1].text, "second");
}

TEST_P(BrokerConformance, ReplayObeysItsDelay) {
  BIDE_NEEDS(dead_set);
  const JobId id = make_dead();
  Consumer consumer = subscribe();
  const Time replayed = now();
  ASSERT_TRUE(succeeded(replay_one(id, {.delay = beats(3)})));
  expect_nothing_before(replayed + beats(3), consumer);
  EXPECT_EQ(consumer.leases().take().job.id, id);
}

TEST_P(BrokerConformance, ReplayIsRefusedWhileALiveJobHoldsTheUniqueKey) {
  BIDE_NEEDS(dead_set);
  BIDE_NEEDS(unique_keys);
  Job job = make_job();
  job.unique_key = "one at a time";
  const JobId dead = make_dead(job);
  enqueue_one(job);
  EXPECT_TRUE(refused(replay_one(dead), ErrorCode::kAlreadyExists));
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  EXPECT_TRUE(succeeded(replay_one(dead)));
  EXPECT_TRUE(refused(try_enqueue(job), ErrorCode::kAlreadyExists)) << "the replayed job holds its key again";
  EXPECT_EQ(lease_one().job.id, dead);
}

TEST_P(BrokerConformance, OnlyDeadJobsAreReplayed) {
  BIDE_NEEDS(dead_set);
  Job later = make_job();
  later.delay = std::chrono::hours(1);
  const JobId scheduled = enqueue_one(later);
  const JobId running = enqueue_one();
  const Lease lease = lease_one();
  ASSERT_EQ(lease.job.id, running);
  const JobId dead = make_dead(make_job("work", "other"));
  auto statuses = wait<std::vector<Status>>([&](auto done) {
    inspector().replay({scheduled, dead, running, make_id()}, {}, std::move(done));
  });
  ASSERT_TRUE(succeeded(statuses));
  ASSERT_EQ(statuses->size(), 4u);
  // A broker that cannot look for a job knows only that it is not dead.
  const ErrorCode not_dead = can().inspect ? ErrorCode::kWrongState : ErrorCode::kNotFound;
  EXPECT_TRUE(refused((*statuses)[0], not_dead));
  EXPECT_TRUE(succeeded((*statuses)[1]));
  EXPECT_TRUE(refused((*statuses)[2], not_dead));
  EXPECT_TRUE(refused((*statuses)[3], ErrorCode::kNotFound));
  EXPECT_TRUE(succeeded(settle_one(lease)));
}

TEST_P(BrokerConformance, ReplayedJobsArriveInTheOrderTheyWereNamed) {
  BIDE_NEEDS(dead_set);
  std::vector<JobId> dead;
  for (int i = 0; i < 5; ++i) dead.push_back(make_dead());
  auto statuses =
      wait<std::vector<Status>>([&](auto done) { inspector().replay(dead, ReplayOptions{}, std::move(done)); });
  ASSERT_TRUE(succeeded(statuses));
  for (const Status& status : *statuses) EXPECT_TRUE(succeeded(status));
  Consumer consumer = subscribe();
  ASSERT_TRUE(consumer.leases().wait_for(dead.size()));
  EXPECT_EQ(consumer.leases().ids(), dead);
}

TEST_P(BrokerConformance, DeadJobIsDeletedByCancel) {
  BIDE_NEEDS(dead_set);
  BIDE_NEEDS(cancel);
  const JobId id = make_dead();
  ASSERT_TRUE(succeeded(cancel_one(id)));
  EXPECT_TRUE(refused(replay_one(id), ErrorCode::kNotFound));
  EXPECT_EQ(list_ids({.states = {JobState::kDead}}), std::vector<JobId>{});
  if (can().inspect) {
    EXPECT_TRUE(refused(cancel_one(id), ErrorCode::kNotFound));
    EXPECT_TRUE(refused(try_find(id), ErrorCode::kNotFound));
  }
}

}  // namespace bide::conformance
