// Purging: a queue is emptied of what waits in it.

#include "conformance/broker_conformance.h"

namespace bide::conformance {

TEST_P(BrokerConformance, PurgeRemovesScheduledAndReadyJobsAndNothingElse) {
  BIDE_NEEDS(cancel);
  const bool dead_set = can().dead_set;
  const JobId dead = dead_set ? make_dead() : JobId();
  enqueue_one();
  const Lease running = lease_one();
  enqueue_many(3);
  Job later = make_job();
  later.delay = beats(1);
  enqueue_many(4, later);
  const JobId elsewhere = enqueue_one(make_job("work", "elsewhere"));

  const auto purged = purge("default");
  ASSERT_TRUE(succeeded(purged));
  // A broker that cannot look for the scheduled ones counts those that have come by now.
  EXPECT_GE(*purged, can().inspect ? 7u : 3u);
  EXPECT_LE(*purged, 7u);
  Consumer consumer = subscribe();
  advance(beats(2));
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
  EXPECT_TRUE(succeeded(settle_one(running)));
  EXPECT_EQ(lease_one("elsewhere").job.id, elsewhere);
  if (dead_set) {
    EXPECT_TRUE(succeeded(replay_one(dead)));
  }
  const auto again = purge("never-used");
  if (again) {
    EXPECT_EQ(*again, 0u);
  } else {
    EXPECT_TRUE(refused(again, ErrorCode::kNotFound));
  }
}

TEST_P(BrokerConformance, PurgeFreesUniqueKeys) {
  BIDE_NEEDS(cancel);
  BIDE_NEEDS(unique_keys);
  Job job = make_job();
  job.unique_key = "purged";
  enqueue_one(job);
  ASSERT_TRUE(succeeded(purge("default")));
  EXPECT_TRUE(succeeded(try_enqueue(job)));
}

}  // namespace bide::conformance
