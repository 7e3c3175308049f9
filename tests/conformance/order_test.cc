// Order: priority first, then due time, then arrival.

#include "conformance/broker_conformance.h"

namespace bide::conformance {

TEST_P(BrokerConformance, ReadyJobsOfOneBatchAreDeliveredInTheOrderOfArrival) {
  const std::vector<JobId> ids = enqueue_many(50);
  Consumer consumer = subscribe();
  ASSERT_TRUE(consumer.leases().wait_for(ids.size()));
  EXPECT_EQ(consumer.leases().ids(), ids);
}

TEST_P(BrokerConformance, ReadyJobsOfSeveralBatchesAreDeliveredInTheOrderOfArrival) {
  std::vector<JobId> ids;
  for (int batch = 0; batch < 5; ++batch) {
    for (const JobId& id : enqueue_many(7)) ids.push_back(id);
  }
  Consumer consumer = subscribe({.credit = 1});
  for (const JobId& id : ids) {
    const Lease lease = consumer.leases().take();
    EXPECT_EQ(lease.job.id, id);
    ASSERT_TRUE(succeeded(settle_one(lease)));
  }
}

TEST_P(BrokerConformance, HigherPriorityRunsFirst) {
  BIDE_NEEDS(priorities);
  std::vector<Job> jobs;
  for (int priority : {0, 100, -100, 5, 0, 5}) {
    jobs.push_back(make_job());
    jobs.back().priority = priority;
  }
  const std::vector<JobId> ids = enqueue_all(jobs);
  Consumer consumer = subscribe();
  ASSERT_TRUE(consumer.leases().wait_for(ids.size()));
  EXPECT_EQ(consumer.leases().ids(), (std::vector<JobId>{ids[1], ids[3], ids[5], ids[0], ids[4], ids[2]}));
}

TEST_P(BrokerConformance, AmongEqualPrioritiesTheEarlierDueRunsFirstThenTheEarlierArrival) {
  BIDE_NEEDS(priorities);
  const Time base = now() + beats(1);
  std::vector<Job> jobs;
  for (auto [priority, place] : std::vector<std::pair<int, int>>{{0, 3}, {1, 9}, {0, 1}, {1, 8}, {0, 2}, {0, 1}}) {
    jobs.push_back(make_job());
    jobs.back().priority = priority;
    jobs.back().due = base + Milliseconds(5 * place);
  }
  const std::vector<JobId> ids = enqueue_all(jobs);
  advance(beats(2));
  Consumer consumer = subscribe();
  ASSERT_TRUE(consumer.leases().wait_for(ids.size()));
  EXPECT_EQ(consumer.leases().ids(), (std::vector<JobId>{ids[3], ids[1], ids[2], ids[5], ids[4], ids[0]}));
}

TEST_P(BrokerConformance, UrgentJobOvertakesThoseThatBecameReadyBeforeIt) {
  BIDE_NEEDS(priorities);
  const std::vector<JobId> waiting = enqueue_many(3);
  Consumer consumer = subscribe({.credit = 1});
  const Lease first = consumer.leases().take();
  Job urgent = make_job("urgent");
  urgent.priority = 50;
  enqueue_one(urgent);
  ASSERT_TRUE(succeeded(settle_one(first)));
  EXPECT_EQ(consumer.leases().take().job.kind, "urgent");
}

TEST_P(BrokerConformance, PriorityIsNoReasonToRunEarly) {
  BIDE_NEEDS(priorities);
  Job urgent = make_job("urgent");
  urgent.priority = 100;
  urgent.delay = beats(3);
  enqueue_one(urgent);
  enqueue_one(make_job("ordinary"));
  Consumer consumer = subscribe();
  EXPECT_EQ(consumer.leases().take().job.kind, "ordinary");
  barrier();
  EXPECT_EQ(consumer.leases().count(), 1u);
  advance(beats(3));
  EXPECT_EQ(consumer.leases().take().job.kind, "urgent");
}

}  // namespace bide::conformance
