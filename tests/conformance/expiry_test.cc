// Expiry: a job that was not started in time is dead, and says so.

#include "conformance/broker_conformance.h"

namespace bide::conformance {

TEST_P(BrokerConformance, JobThatWasNotStartedInTimeIsDeadAsExpired) {
  BIDE_NEEDS(expiry);
  BIDE_NEEDS(dead_set);
  Job job = make_job();
  job.expires = now() + beats(3);
  const JobId id = enqueue_one(job);
  const JobId lasting = enqueue_one();
  advance(nearly(beats(3)));
  barrier();
  if (can().inspect) {
    EXPECT_EQ(find(id).state, JobState::kReady);
  }
  advance(rest(beats(3)) + Milliseconds(1));
  Consumer consumer = subscribe();
  EXPECT_EQ(consumer.leases().take().job.id, lasting);
  barrier();
  EXPECT_EQ(consumer.leases().count(), 1u);
  const JobInfo info = find(id);
  EXPECT_EQ(info.state, JobState::kDead);
  EXPECT_EQ(info.dead_reason, DeadReason::kExpired);
  EXPECT_EQ(info.attempts, 0u);
}

TEST_P(BrokerConformance, JobThatExpiresBeforeItIsDueIsDeadAsExpired) {
  BIDE_NEEDS(expiry);
  BIDE_NEEDS(dead_set);
  Job job = make_job();
  job.delay = beats(4);
  job.expires = now() + beats(2);
  const auto enqueued = try_enqueue(job);
  if (!enqueued) {
    EXPECT_TRUE(refused(enqueued, ErrorCode::kInvalidArgument));
    return;
  }
  Consumer consumer = subscribe();
  advance(beats(5));
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
  EXPECT_EQ(find(enqueued->id).state, JobState::kDead);
  EXPECT_EQ(find(enqueued->id).dead_reason, DeadReason::kExpired);
}

TEST_P(BrokerConformance, JobThatWasStartedInTimeDoesNotExpire) {
  BIDE_NEEDS(expiry);
  Job job = make_job();
  job.expires = now() + beats(3);
  enqueue_one(job);
  const Lease lease = lease_one();
  advance(beats(4));
  EXPECT_FALSE(extend_one(lease).lost);
  EXPECT_TRUE(succeeded(settle_one(lease)));
}

TEST_P(BrokerConformance, ExpiryObeysTheWallClock) {
  BIDE_NEEDS(expiry);
  BIDE_NEEDS(inspect);
  BIDE_NEEDS_VIRTUAL_TIME();
  Job job = make_job();
  job.expires = now() + std::chrono::hours(1);
  const JobId id = enqueue_one(job);
  subject().step_wall_clock(std::chrono::hours(1) + Milliseconds(1));
  Consumer consumer = subscribe();
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
  EXPECT_EQ(find(id).state, JobState::kDead);
}

}  // namespace bide::conformance
