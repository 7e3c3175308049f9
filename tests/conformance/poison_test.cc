// Poison: a job that kills its worker again and again is taken away; those beside it are not.

#include "conformance/broker_conformance.h"

namespace bide::conformance {

TEST_P(BrokerConformance, JobThatKilledItsWorkerThreeTimesIsDeadAsPoison) {
  BIDE_NEEDS_ATTEMPTS_TO_SURVIVE_A_CRASH();
  BIDE_NEEDS(dead_set);
  BIDE_NEEDS(inspect);
  const JobId killer = enqueue_one(make_job("kill", "deadly"));
  const JobId bystander = enqueue_one();
  for (std::uint32_t crash = 0; crash < 3; ++crash) {
    SCOPED_TRACE(crash);
    const Lease lease = lease_one("deadly");
    EXPECT_EQ(lease.job.id, killer);
    EXPECT_EQ(lease.attempt, crash + 1);
    EXPECT_EQ(lease.counts.crashed + lease.counts.lost, crash);
    restart(Restart::kCrash);
  }
  Consumer deadly = subscribe_to("deadly");
  barrier();
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
