// Pausing: a paused queue takes jobs and hands out none.

#include "conformance/broker_conformance.h"

namespace bide::conformance {

TEST_P(BrokerConformance, PausedQueueHandsOutNothingUntilItIsResumed) {
  BIDE_NEEDS(pause);
  ASSERT_TRUE(succeeded(pause("default")));
  Consumer consumer = subscribe({.queues = {{"default", 1}, {"open", 1}}});
  const JobId ready = enqueue_one();
  Job later = make_job();
  later.delay = beats(1);
  const JobId scheduled = enqueue_one(later);
  const JobId open = enqueue_one(make_job("work", "open"));
  advance(beats(2));
  EXPECT_EQ(consumer.leases().take().job.id, open);
  barrier();
  EXPECT_EQ(consumer.leases().count(), 1u);
  if (can().inspect) {
    EXPECT_TRUE(queue("default").paused);
  }
  ASSERT_TRUE(succeeded(pause("default", false)));
  consumer.leases().take(2);
  EXPECT_EQ(consumer.leases().ids(), (std::vector<JobId>{open, ready, scheduled}));
  if (can().inspect) {
    EXPECT_FALSE(queue("default").paused);
  }
}

TEST_P(BrokerConformance, PauseLeavesRunningJobsAlone) {
  BIDE_NEEDS(pause);
  enqueue_one();
  const Lease lease = lease_one();
  ASSERT_TRUE(succeeded(pause("default")));
  EXPECT_FALSE(extend_one(lease).lost);
  EXPECT_TRUE(succeeded(settle_one(lease)));
}

TEST_P(BrokerConformance, PausedQueueIsStillPausedAfterARestart) {
  BIDE_NEEDS(pause);
  enqueue_one();
  ASSERT_TRUE(succeeded(pause("default")));
  ASSERT_TRUE(succeeded(pause("resumed")));
  ASSERT_TRUE(succeeded(pause("resumed", false)));
  for (const Restart how : {Restart::kClean, Restart::kCrash}) {
    restart(how);
    Consumer consumer = subscribe();
    barrier();
    EXPECT_EQ(consumer.leases().count(), 0u);
  }
  enqueue_one(make_job("work", "resumed"));
  lease_one("resumed");
  ASSERT_TRUE(succeeded(pause("default", false)));
  lease_one();
}

}  // namespace bide::conformance
