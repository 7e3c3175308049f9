// Cancelling: a waiting job is taken out, a running attempt is told to stop, a done job stays done.

#include "conformance/broker_conformance.h"

namespace bide::conformance {

TEST_P(BrokerConformance, CancelledScheduledJobNeverRuns) {
  BIDE_NEEDS(cancel);
  Job job = make_job();
  job.delay = beats(2);
  const JobId id = enqueue_one(job);
  ASSERT_TRUE(succeeded(cancel_one(id)));
  Consumer consumer = subscribe();
  advance(beats(3));
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
  if (can().inspect) {
    EXPECT_TRUE(refused(cancel_one(id), ErrorCode::kNotFound));
    EXPECT_TRUE(refused(try_find(id), ErrorCode::kNotFound));
  }
}

TEST_P(BrokerConformance, CancelledReadyJobNeverRunsWhileItsNeighboursDo) {
  BIDE_NEEDS(cancel);
  const std::vector<JobId> ids = enqueue_many(5);
  ASSERT_TRUE(succeeded(cancel_one(ids[0])));
  ASSERT_TRUE(succeeded(cancel_one(ids[2])));
  Consumer consumer = subscribe();
  consumer.leases().take(3);
  barrier();
  EXPECT_EQ(consumer.leases().ids(), (std::vector<JobId>{ids[1], ids[3], ids[4]}));
}

TEST_P(BrokerConformance, CancelAnswersForEachJobInOrder) {
  BIDE_NEEDS(cancel);
  const JobId ready = enqueue_one();
  auto statuses = wait<std::vector<Status>>(
      [&](auto done) { inspector().cancel({make_id(), ready, ready}, {}, std::move(done)); });
  ASSERT_TRUE(succeeded(statuses));
  ASSERT_EQ(statuses->size(), 3u);
  EXPECT_TRUE(succeeded((*statuses)[1]));
  // A broker that cannot look for a job takes the word of whoever names it.
  if (can().inspect) {
    EXPECT_TRUE(refused((*statuses)[0], ErrorCode::kNotFound));
    EXPECT_TRUE(refused((*statuses)[2], ErrorCode::kNotFound));
  }
}

TEST_P(BrokerConformance, CancelOfDeadJobsLeavesOthersAlone) {
  BIDE_NEEDS(dead_set);
  const JobId dead = make_dead();
  const JobId replayed = make_dead();
  ASSERT_TRUE(succeeded(replay_one(replayed)));
  const CancelOptions only_dead{.state = JobState::kDead};
  EXPECT_TRUE(succeeded(cancel_one(dead, only_dead)));
  EXPECT_FALSE(cancel_one(replayed, only_dead));
  if (can().inspect) {
    EXPECT_TRUE(refused(cancel_one(replayed, only_dead), ErrorCode::kWrongState));
    EXPECT_TRUE(refused(try_find(dead), ErrorCode::kNotFound));
  }
  EXPECT_EQ(lease_one().job.id, replayed);
}

TEST_P(BrokerConformance, RunningJobIsToldToStopAtItsNextExtend) {
  BIDE_NEEDS(cancel);
  enqueue_one();
  const Lease lease = lease_one();
  EXPECT_FALSE(extend_one(lease).cancel_requested);
  ASSERT_TRUE(succeeded(cancel_one(lease.job.id)));
  const Extended extended = extend_one(lease);
  EXPECT_TRUE(extended.cancel_requested);
  EXPECT_FALSE(extended.lost);
}

TEST_P(BrokerConformance, CancelledAttemptMayStillBeDone) {
  BIDE_NEEDS(cancel);
  enqueue_one();
  const Lease lease = lease_one();
  ASSERT_TRUE(succeeded(cancel_one(lease.job.id)));
  EXPECT_TRUE(succeeded(settle_one(lease)));
  Consumer consumer = subscribe();
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
  if (can().inspect && can().results) {
    EXPECT_EQ(find(lease.job.id).state, JobState::kDone);
  }
}

TEST_P(BrokerConformance, CancelledAttemptThatDidNotFinishIsNotTriedAgain) {
  BIDE_NEEDS(cancel);
  for (const Outcome& outcome : {Outcome(RetryAt{.error = "stopped"}), Outcome(Returned{.note = "stopped"})}) {
    SCOPED_TRACE(outcome.index());
    enqueue_one();
    const Lease lease = lease_one();
    ASSERT_TRUE(succeeded(cancel_one(lease.job.id)));
    EXPECT_TRUE(succeeded(settle_one(lease, outcome)));
    Consumer consumer = subscribe();
    advance(beats(1));
    barrier();
    EXPECT_EQ(consumer.leases().count(), 0u);
    if (can().inspect) {
      EXPECT_TRUE(refused(try_find(lease.job.id), ErrorCode::kNotFound));
    }
  }
}

TEST_P(BrokerConformance, CancelledAttemptThatLosesItsLeaseIsNotTriedAgain) {
  BIDE_NEEDS(cancel);
  enqueue_one();
  const Lease lease = lease_as({.lease = beats(3)});
  ASSERT_TRUE(succeeded(cancel_one(lease.job.id)));
  Consumer consumer = subscribe();
  advance(beats(3) + grace());
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
  if (can().inspect) {
    EXPECT_TRUE(refused(try_find(lease.job.id), ErrorCode::kNotFound));
  }
}

TEST_P(BrokerConformance, DoneJobCannotBeCancelled) {
  BIDE_NEEDS(cancel);
  BIDE_NEEDS(results);
  enqueue_one();
  const Lease lease = lease_one();
  ASSERT_TRUE(succeeded(settle_one(lease)));
  EXPECT_TRUE(refused(cancel_one(lease.job.id), ErrorCode::kWrongState));
}

TEST_P(BrokerConformance, CancelledJobStaysGoneAfterARestart) {
  BIDE_NEEDS(cancel);
  for (const Restart how : {Restart::kClean, Restart::kCrash}) {
    const JobId id = enqueue_one();
    ASSERT_TRUE(succeeded(cancel_one(id)));
    restart(how);
    Consumer consumer = subscribe();
    barrier();
    EXPECT_EQ(consumer.leases().count(), 0u);
  }
}

TEST_P(BrokerConformance, RunningJobThatWasCancelledIsNotTriedAgainAfterACrash) {
  BIDE_NEEDS(cancel);
  enqueue_one();
  const Lease lease = lease_one();
  ASSERT_TRUE(succeeded(cancel_one(lease.job.id)));
  restart(Restart::kCrash);
  Consumer consumer = subscribe();
  advance(can().virtual_time ? std::chrono::minutes(10) : beats(5));
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
}

}  // namespace bide::conformance
