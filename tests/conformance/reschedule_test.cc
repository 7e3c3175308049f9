// Rescheduling: another due time for a job that waits.

#include "conformance/broker_conformance.h"

namespace bide::conformance {

TEST_P(BrokerConformance, ScheduledJobCanBeMadeDueEarlier) {
  BIDE_NEEDS(reschedule);
  BIDE_NEEDS(hasten);
  Job job = make_job();
  job.delay = std::chrono::hours(1);
  const JobId id = enqueue_one(job);
  const Time due = now() + beats(3);
  ASSERT_TRUE(succeeded(reschedule_one(id, due)));
  if (can().inspect) {
    EXPECT_EQ(find(id).due, due);
  }
  Consumer consumer = subscribe();
  expect_nothing_before(due, consumer);
  EXPECT_EQ(consumer.leases().take().due, due);
  EXPECT_GE(consumer.leases().arrivals().front().at, due);
}

TEST_P(BrokerConformance, ScheduledJobCanBeMadeDueAtOnce) {
  BIDE_NEEDS(reschedule);
  BIDE_NEEDS(hasten);
  Job job = make_job();
  job.delay = std::chrono::hours(1);
  const JobId id = enqueue_one(job);
  ASSERT_TRUE(succeeded(reschedule_one(id, now())));
  EXPECT_EQ(lease_one().job.id, id);
}

TEST_P(BrokerConformance, ScheduledJobCanBeMadeDueLater) {
  BIDE_NEEDS(reschedule);
  Job job = make_job();
  job.delay = beats(2);
  const JobId id = enqueue_one(job);
  const Time due = now() + beats(5);
  ASSERT_TRUE(succeeded(reschedule_one(id, due)));
  Consumer consumer = subscribe();
  expect_nothing_before(due, consumer);
  EXPECT_EQ(consumer.leases().take().job.id, id);
  EXPECT_GE(consumer.leases().arrivals().front().at, due);
  barrier();
  EXPECT_EQ(consumer.leases().count(), 1u);
}

TEST_P(BrokerConformance, ReadyJobCanBePutOff) {
  BIDE_NEEDS(reschedule);
  const std::vector<JobId> ids = enqueue_many(3);
  ASSERT_TRUE(succeeded(reschedule_one(ids[1], now() + beats(3))));
  Consumer consumer = subscribe();
  consumer.leases().take(2);
  barrier();
  EXPECT_EQ(consumer.leases().ids(), (std::vector<JobId>{ids[0], ids[2]}));
  if (can().inspect) {
    EXPECT_EQ(find(ids[1]).state, JobState::kScheduled);
  }
  advance(beats(3));
  consumer.leases().take();
  EXPECT_EQ(consumer.leases().ids(), (std::vector<JobId>{ids[0], ids[2], ids[1]}));
}

TEST_P(BrokerConformance, WaitForTheNextAttemptCanBeCutShort) {
  BIDE_NEEDS(reschedule);
  BIDE_NEEDS(hasten);
  const JobId id = enqueue_one();
  ASSERT_TRUE(succeeded(settle_one(lease_one(), RetryAt{.after = std::chrono::hours(1), .error = "down"})));
  ASSERT_TRUE(succeeded(reschedule_one(id, now())));
  const Lease lease = lease_one();
  EXPECT_EQ(lease.attempt, 2u);
  EXPECT_EQ(lease.counts, (AttemptCounts{.failed = 1}));
  ASSERT_EQ(lease.history.size(), 1u);
  EXPECT_EQ(lease.history[0].text, "down");
}

TEST_P(BrokerConformance, RunningDeadDoneAndUnknownJobsAreNotRescheduled) {
  BIDE_NEEDS(reschedule);
  enqueue_one();
  const Lease lease = lease_one();
  EXPECT_TRUE(refused(reschedule_one(lease.job.id, now() + beats(1)), ErrorCode::kWrongState)) << "running";
  ASSERT_TRUE(succeeded(settle_one(lease)));
  if (can().results) {
    EXPECT_TRUE(refused(reschedule_one(lease.job.id, now() + beats(1)), ErrorCode::kWrongState)) << "done";
  }
  if (can().dead_set && can().inspect) {
    EXPECT_TRUE(refused(reschedule_one(make_dead(), now() + beats(1)), ErrorCode::kWrongState)) << "dead";
  }
  if (can().inspect) {
    EXPECT_TRUE(refused(reschedule_one(make_id(), now() + beats(1)), ErrorCode::kNotFound));
  }
}

}  // namespace bide::conformance
