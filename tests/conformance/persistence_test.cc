// Persistence: after a clean restart and after a crash everything that was confirmed is still there.

#include <set>

#include "conformance/broker_conformance.h"

namespace bide::conformance {
namespace {

constexpr Restart kBothWays[] = {Restart::kClean, Restart::kCrash};

}  // namespace

TEST_P(BrokerConformance, EveryConfirmedJobSurvivesARestart) {
  std::set<JobId> expected;
  for (const Restart how : kBothWays) {
    for (int batch = 0; batch < 10; ++batch) {
      for (const JobId& id : enqueue_many(20)) expected.insert(id);
    }
    restart(how);
  }
  Consumer consumer = subscribe({.credit = 1000});
  ASSERT_TRUE(consumer.leases().wait_for(expected.size()));
  barrier();
  const std::vector<JobId> ids = consumer.leases().ids();
  EXPECT_EQ(ids.size(), expected.size());
  EXPECT_EQ(std::set<JobId>(ids.begin(), ids.end()), expected);
}

TEST_P(BrokerConformance, OrderOfArrivalSurvivesARestart) {
  std::vector<JobId> ids = enqueue_many(20);
  for (const Restart how : kBothWays) restart(how);
  for (const JobId& id : enqueue_many(5)) ids.push_back(id);
  Consumer consumer = subscribe();
  ASSERT_TRUE(consumer.leases().wait_for(ids.size()));
  EXPECT_EQ(consumer.leases().ids(), ids);
}

TEST_P(BrokerConformance, JobIsWholeAfterARestart) {
  Job job = make_job("resize", "images");
  job.body = std::string("\0\x01 body", 7);
  job.content_type = "image/png";
  job.headers = {{"name", "value"}, {"name", "again"}};
  job.time_limit = Milliseconds(98'765);
  job.retry = RetryPolicy::exponential(Milliseconds(500), 3.0, std::chrono::hours(2), 7);
  if (can().priorities) job.priority = 42;
  if (can().unique_keys) job.unique_key = "kept";
  if (can().expiry) job.expires = now() + std::chrono::hours(1);
  const JobId id = enqueue_one(job);
  ASSERT_TRUE(succeeded(settle_one(lease_one("images"), RetryAt{.error = "first error"})));
  for (const Restart how : kBothWays) restart(how);
  if (can().unique_keys) {
    EXPECT_TRUE(refused(try_enqueue(job), ErrorCode::kAlreadyExists));
  }
  const Lease lease = lease_one("images");
  EXPECT_EQ(lease.job.id, id);
  EXPECT_EQ(lease.job.kind, job.kind);
  EXPECT_EQ(lease.job.body, job.body);
  EXPECT_EQ(lease.job.content_type, job.content_type);
  EXPECT_EQ(lease.job.headers, job.headers);
  EXPECT_EQ(lease.job.time_limit, job.time_limit);
  EXPECT_EQ(lease.job.retry, job.retry);
  EXPECT_EQ(lease.job.priority, job.priority);
  EXPECT_EQ(lease.job.unique_key, job.unique_key);
  EXPECT_EQ(lease.job.expires, job.expires);
  EXPECT_EQ(lease.attempt, 2u);
  EXPECT_EQ(lease.counts, (AttemptCounts{.failed = 1}));
  ASSERT_EQ(lease.history.size(), 1u);
  EXPECT_EQ(lease.history[0].text, "first error");
}

TEST_P(BrokerConformance, DelayGoesOnThroughARestart) {
  Job job = make_job();
  job.delay = beats(8);
  const Time accepted = now();
  enqueue_one(job);
  advance(beats(2));
  restart(Restart::kClean);
  advance(beats(2));
  restart(Restart::kCrash);
  Consumer consumer = subscribe();
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
  advance(beats(4));
  consumer.leases().take();
  EXPECT_GE(consumer.leases().arrivals().front().at, accepted + job.delay);
}

TEST_P(BrokerConformance, JobThatBecameDueWhileTheBrokerWasAwayRunsWhenItIsBack) {
  Job job = make_job();
  job.delay = beats(1);
  const JobId id = enqueue_one(job);
  advance(beats(2));
  restart(Restart::kCrash);
  EXPECT_EQ(lease_one().job.id, id);
}

TEST_P(BrokerConformance, TokensKeepGrowingAcrossRestarts) {
  enqueue_one();
  std::uint64_t token = 0;
  for (int round = 0; round < 3; ++round) {
    for (const Restart how : kBothWays) {
      const Lease lease = lease_one();
      EXPECT_GT(lease.token, token);
      token = lease.token;
      ASSERT_TRUE(succeeded(settle_one(lease, Returned{})));
      restart(how);
    }
  }
}

TEST_P(BrokerConformance, LeaseFromBeforeARestartIsRefused) {
  if (!subject().notices_dead_workers()) GTEST_SKIP() << "leases outlive the broker's process here, whoever holds them";
  for (const Restart how : kBothWays) {
    enqueue_one();
    const Lease before = lease_one();
    restart(how);
    EXPECT_TRUE(refused(settle_one(before), ErrorCode::kLeaseLost));
    let_crashed_jobs_return();
    const Lease after = lease_one();
    EXPECT_TRUE(refused(settle_one(before), ErrorCode::kLeaseLost));
    EXPECT_TRUE(extend_one(before).lost);
    EXPECT_TRUE(succeeded(settle_one(after)));
  }
}

TEST_P(BrokerConformance, LeaseOfAWorkerInAnotherProcessSurvivesARestart) {
  BIDE_NEEDS(lasting_leases);
  BIDE_NEEDS_ATTEMPTS_TO_SURVIVE_A_CRASH();
  for (const Restart how : kBothWays) {
    enqueue_one();
    const Lease lease = lease_as({.lease = beats(10), .worker = "far away", .outlives_process = true});
    restart(how);
    Consumer consumer = subscribe();
    barrier();
    EXPECT_EQ(consumer.leases().count(), 0u);
    EXPECT_FALSE(extend_one(lease).lost);
    EXPECT_TRUE(succeeded(settle_one(lease)));
  }
}

TEST_P(BrokerConformance, LeaseOfAWorkerInAnotherProcessStillRunsOutAfterARestart) {
  BIDE_NEEDS(lasting_leases);
  BIDE_NEEDS_ATTEMPTS_TO_SURVIVE_A_CRASH();
  enqueue_one();
  const Lease lease = lease_as({.lease = beats(4), .outlives_process = true});
  EXPECT_FALSE(extend_one(lease).lost);  // Its worker has it: the attempt is charged, whatever happens.
  restart(Restart::kCrash);
  Consumer consumer = subscribe();
  advance(beats(4) + grace());
  const Lease second = consumer.leases().take();
  EXPECT_EQ(second.attempt, 2u);
  EXPECT_EQ(second.counts, (AttemptCounts{.lost = 1}));
  EXPECT_TRUE(refused(settle_one(lease), ErrorCode::kLeaseLost));
}

TEST_P(BrokerConformance, LeaseOfAWorkerInAnotherProcessKeepsItsLengthOverARestart) {
  BIDE_NEEDS(lasting_leases);
  BIDE_NEEDS(virtual_time);
  const Milliseconds length = 4 * SubscribeOptions().lease;
  for (const Restart how : kBothWays) {
    enqueue_one();
    const Lease lease = lease_as({.lease = length, .outlives_process = true});
    restart(how);
    Consumer consumer = subscribe();
    for (int i = 0; i < 2; ++i) {
      advance(length - beats(1));
      barrier();
      EXPECT_EQ(consumer.leases().count(), 0u);
      EXPECT_FALSE(extend_one(lease).lost);
    }
    EXPECT_TRUE(succeeded(settle_one(lease)));
  }
}

TEST_P(BrokerConformance, RescheduledJobKeepsItsNewTimeThroughARestart) {
  BIDE_NEEDS(reschedule);
  Job job = make_job();
  job.delay = can().hasten ? Milliseconds(std::chrono::hours(1)) : beats(1);
  const JobId id = enqueue_one(job);
  const Time due = now() + beats(3);
  ASSERT_TRUE(succeeded(reschedule_one(id, due)));
  restart(Restart::kCrash);
  Consumer consumer = subscribe();
  expect_nothing_before(due, consumer);
  EXPECT_EQ(consumer.leases().take().job.id, id);
}

TEST_P(BrokerConformance, ReplacedBodySurvivesARestart) {
  enqueue_one();
  ASSERT_TRUE(succeeded(settle_one(lease_one(), RetryAt{.error = "half", .body = "new body"})));
  for (const Restart how : kBothWays) restart(how);
  const Lease lease = lease_one();
  EXPECT_EQ(lease.job.body, "new body");
  EXPECT_EQ(lease.attempt, 2u);
  EXPECT_EQ(lease.counts, (AttemptCounts{.failed = 1}));
}

TEST_P(BrokerConformance, DeadSetSurvivesARestart) {
  BIDE_NEEDS(dead_set);
  const JobId replayed = make_dead();
  const JobId id = make_dead(make_job("resize", "images"), "no such file");
  ASSERT_TRUE(succeeded(replay_one(replayed)));
  for (const Restart how : kBothWays) restart(how);
  EXPECT_EQ(list_ids({.states = {JobState::kDead}}), std::vector<JobId>{id});
  const JobInfo info = find(id);
  EXPECT_EQ(info.dead_reason, DeadReason::kRejected);
  EXPECT_EQ(info.job.body, make_job("resize").body);
  ASSERT_EQ(info.history.size(), 1u);
  EXPECT_EQ(info.history[0].text, "no such file");
  EXPECT_EQ(lease_one().job.id, replayed);
}

TEST_P(BrokerConformance, AuditAndCountsAreTheSameAfterARestart) {
  BIDE_NEEDS(audit);
  BIDE_NEEDS(inspect);
  Job later = make_job();
  later.delay = std::chrono::hours(1);
  enqueue_many(4, later);
  enqueue_many(4);
  std::vector<Lease> leases = subscribe({.credit = 3}).leases().take(3);
  ASSERT_TRUE(succeeded(settle_one(leases[0], Done{}, {later})));
  ASSERT_TRUE(succeeded(settle_one(leases[1], Dead{})));
  ASSERT_TRUE(succeeded(settle_one(leases[2], RetryAt{.after = std::chrono::hours(1)})));
  const AuditReport before = audit();
  const QueueInfo counted = queue("default");
  EXPECT_TRUE(before.ok());
  for (const Restart how : kBothWays) {
    restart(how);
    const AuditReport after = audit();
    EXPECT_TRUE(after.ok());
    EXPECT_EQ(after.accepted, before.accepted);
    EXPECT_EQ(after.done, before.done);
    EXPECT_EQ(after.removed, before.removed);
    EXPECT_EQ(after.live, before.live);
    const QueueInfo recounted = queue("default");
    EXPECT_EQ(recounted.scheduled, counted.scheduled);
    EXPECT_EQ(recounted.ready, counted.ready);
    EXPECT_EQ(recounted.running, counted.running);
    EXPECT_EQ(recounted.dead, counted.dead);
    EXPECT_EQ(recounted.done, counted.done);
  }
}

TEST_P(BrokerConformance, BrokerThatIsRestartedWithoutWorkIsStillEmpty) {
  for (const Restart how : kBothWays) restart(how);
  Consumer consumer = subscribe();
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
  enqueue_one();
  consumer.leases().take();
}

}  // namespace bide::conformance
