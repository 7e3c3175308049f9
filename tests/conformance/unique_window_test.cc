// Unique keys that are held for a while, and what a second job with a held key gets.

#include "conformance/broker_conformance.h"

namespace bide::conformance {

namespace {

Job keyed(OnConflict on_conflict = OnConflict::kRefuse, Milliseconds unique_for = Milliseconds(0)) {
  Job job;
  job.kind = "work";
  job.unique_key = "key";
  job.on_conflict = on_conflict;
  job.unique_for = unique_for;
  return job;
}

}  // namespace

TEST_P(BrokerConformance, UniqueKeyIsHeldForItsTimeWhateverBecomesOfTheJob) {
  BIDE_NEEDS(unique_windows);
  const JobId first = enqueue_one(keyed(OnConflict::kRefuse, beats(5)));
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  EXPECT_TRUE(refused(try_enqueue(keyed()), ErrorCode::kAlreadyExists));
  const Result<Enqueued> same = try_enqueue(keyed(OnConflict::kExisting));
  ASSERT_TRUE(succeeded(same));
  EXPECT_EQ(same->id, first);
  EXPECT_TRUE(same->existed);
  EXPECT_TRUE(refused(try_enqueue(keyed(OnConflict::kReplace)), ErrorCode::kAlreadyExists)) << "it is done";
  advance(beats(6));
  EXPECT_NE(enqueue_one(keyed()), first);
}

TEST_P(BrokerConformance, UniqueKeyIsHeldBeyondItsTimeWhileTheJobLives) {
  BIDE_NEEDS(unique_windows);
  enqueue_one(keyed(OnConflict::kRefuse, beats(1)));
  advance(beats(3));
  EXPECT_TRUE(refused(try_enqueue(keyed()), ErrorCode::kAlreadyExists));
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  EXPECT_TRUE(succeeded(try_enqueue(keyed())));
}

TEST_P(BrokerConformance, UniqueKeyIsHeldForItsTimeOverARestart) {
  BIDE_NEEDS(unique_windows);
  enqueue_one(keyed(OnConflict::kRefuse, beats(20)));
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  for (const Restart how : {Restart::kClean, Restart::kCrash}) {
    restart(how);
    EXPECT_TRUE(refused(try_enqueue(keyed()), ErrorCode::kAlreadyExists));
  }
}

TEST_P(BrokerConformance, SecondJobWithAUniqueKeyIsTheFirst) {
  BIDE_NEEDS(unique_windows);
  const JobId first = enqueue_one(keyed(OnConflict::kExisting));
  const Result<Enqueued> second = try_enqueue(keyed(OnConflict::kExisting));
  ASSERT_TRUE(succeeded(second));
  EXPECT_EQ(second->id, first);
  EXPECT_TRUE(second->existed);
  EXPECT_FALSE(second->replaced);
  Consumer consumer = subscribe();
  consumer.leases().take();
  barrier();
  EXPECT_EQ(consumer.leases().count(), 1u);
}

TEST_P(BrokerConformance, JobTakesThePlaceOfOneThatWaitsAndMovesItsDueTime) {
  BIDE_NEEDS(unique_windows);
  Job job = keyed(OnConflict::kReplace);
  job.body = "one";
  job.delay = beats(3);
  const JobId first = enqueue_one(job);
  advance(beats(2));
  job.body = "two";
  const Time due = now() + job.delay;
  const Result<Enqueued> second = try_enqueue(job);
  ASSERT_TRUE(succeeded(second));
  EXPECT_EQ(second->id, first);
  EXPECT_TRUE(second->replaced);
  EXPECT_FALSE(second->existed);
  Consumer consumer = subscribe();
  expect_nothing_before(due - Milliseconds(subject().has_virtual_time() ? 0 : 200), consumer);
  const Lease lease = consumer.leases().take();
  EXPECT_EQ(lease.job.id, first);
  EXPECT_EQ(lease.job.body, "two");
  EXPECT_EQ(lease.attempt, 1u);
  EXPECT_TRUE(refused(try_enqueue(job), ErrorCode::kAlreadyExists)) << "it runs";
  ASSERT_TRUE(succeeded(settle_one(lease)));
  EXPECT_TRUE(succeeded(try_enqueue(job)));
  if (can().audit) {
    EXPECT_TRUE(audit().ok());
  }
}

TEST_P(BrokerConformance, JobThatTookThePlaceOfAnotherHasAFreshStartOverARestart) {
  BIDE_NEEDS(unique_windows);
  Job job = keyed(OnConflict::kReplace);
  const JobId first = enqueue_one(job);
  ASSERT_TRUE(succeeded(settle_one(lease_one(), RetryAt{.after = std::chrono::hours(1), .error = "down"})));
  job.body = "fresh";
  ASSERT_TRUE(succeeded(try_enqueue(job)));
  restart(Restart::kCrash);
  EXPECT_TRUE(refused(try_enqueue(keyed()), ErrorCode::kAlreadyExists));
  const Lease lease = lease_one();
  EXPECT_EQ(lease.job.id, first);
  EXPECT_EQ(lease.job.body, "fresh");
  EXPECT_EQ(lease.attempt, 1u);
  EXPECT_TRUE(lease.history.empty());
}

}  // namespace bide::conformance
