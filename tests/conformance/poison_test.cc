// Poison: a job that kills its worker again and again is taken away; those beside it are not.

#include "conformance/broker_conformance.h"

namespace bide::conformance {

TEST_P(BrokerConformance, JobThatKilledItsWorkerThreeTimesIsDeadAsPoison) {
  BIDE_NEEDS_ATTEMPTS_TO_SURVIVE_A_CRASH();
  BIDE_NEEDS_DEAD_WORKERS_TO_BE_NOTICED();
  BIDE_NEEDS(dead_set);
  const JobId killer = enqueue_one(make_job("kill", "deadly"));
  const JobId bystander = enqueue_one();
  for (std::uint32_t crash = 0; crash < 3; ++crash) {
    SCOPED_TRACE(crash);
    const Lease lease = lease_one("deadly");
    EXPECT_EQ(lease.job.id, killer);
    EXPECT_EQ(lease.attempt, crash + 1);
    EXPECT_EQ(lease.counts.crashed + lease.counts.lost, crash);
    restart(Restart::kCrash);
    let_crashed_jobs_return(crash + 1);
  }
  Consumer deadly = subscribe_to("deadly");
  barrier();
  for (int i = 0; i < 100 && !try_find(killer); ++i) advance(on_its_way());  // Some make sure first that it was a crash.
  EXPECT_EQ(deadly.leases().count(), 0u);
  const JobInfo info = find(killer);
  EXPECT_EQ(info.state, JobState::kDead);
  EXPECT_EQ(info.dead_reason, DeadReason::kPoison);
  EXPECT_EQ(info.attempts, 3u);
  EXPECT_EQ(info.counts.crashed + info.counts.lost, 3u);
  EXPECT_EQ(info.history.size(), 3u);

  const Lease lease = lease_one();
  EXPECT_EQ(lease.job.id, bystander);
  EXPECT_EQ(lease.attempt, 1u);
}

// Whichever of them it was: the other is not there when it kills for the third time.
TEST_P(BrokerConformance, OfTheJobsThatRanWhenAWorkerDiedTwiceOnlyOneRunsAtATime) {
  BIDE_NEEDS_ATTEMPTS_TO_SURVIVE_A_CRASH();
  BIDE_NEEDS_DEAD_WORKERS_TO_BE_NOTICED();
  if (!subject().parts_last_chances()) GTEST_SKIP() << "jobs that may be poison are not kept apart by this broker";
  enqueue_many(3);
  for (std::uint64_t crash = 1; crash <= 2; ++crash) {
    Consumer together = subscribe();
    together.leases().take(3);
    together.unsubscribe();
    restart(Restart::kCrash);
    let_crashed_jobs_return(crash);
  }
  const JobId fresh = enqueue_one();
  Consumer consumer = subscribe();
  std::vector<JobId> alone;
  for (int left = 3; left > 0; --left) {
    Lease lease = consumer.leases().take();
    if (lease.job.id == fresh) {
      ASSERT_TRUE(succeeded(settle_one(lease)));
      lease = consumer.leases().take();
    }
    barrier();
    advance(beats(5));
    EXPECT_EQ(lease.counts.crashed + lease.counts.lost, 2u);
    EXPECT_EQ(lease.attempt, 3u) << "waiting for its turn is not an attempt";
    alone.push_back(lease.job.id);
    EXPECT_EQ(consumer.leases().count(), alone.size() + 1) << "another such job, or not the fresh one";
    ASSERT_TRUE(succeeded(settle_one(lease)));
    advance(beats(5));
  }
}

TEST_P(BrokerConformance, CrashDoesNotChargeJobsThatWereNotRunning) {
  Job later = make_job();
  later.delay = beats(1);
  enqueue_one(later);
  enqueue_one(make_job("work", "failing"));
  ASSERT_TRUE(succeeded(settle_one(lease_one("failing"), RetryAt{.error = "ordinary"})));
  for (int crash = 0; crash < 4; ++crash) restart(Restart::kCrash);
  advance(beats(1));
  EXPECT_EQ(lease_one().counts, AttemptCounts{});
  EXPECT_EQ(lease_one("failing").counts, (AttemptCounts{.failed = 1}));
}

}  // namespace bide::conformance
