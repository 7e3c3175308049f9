// Jobs that come from another broker and carry their past: attempts, counts, errors, and for the dead their reason and time.

#include "conformance/broker_conformance.h"

namespace bide::conformance {
namespace {

JobPast two_failures(Time now) {
  JobPast past;
  past.attempts = 3;
  past.counts = {.failed = 2, .timed_out = 0, .lost = 1, .crashed = 0};
  past.history = {{1, now - Milliseconds(30'000), Fault::kFailed, "no route to host"},
                  {2, now - Milliseconds(20'000), Fault::kLost, "its worker fell silent"},
                  {3, now - Milliseconds(10'000), Fault::kFailed, "timeout \xff\x01"}};
  return past;
}

Job carrying(Job job, JobPast past) {
  job.past = std::make_shared<const JobPast>(std::move(past));
  return job;
}

}  // namespace

TEST_P(BrokerConformance, AJobThatCarriesItsPastGoesOnFromThere) {
  BIDE_NEEDS(carries_past);
  const JobPast past = two_failures(now());
  Job job = carrying(make_job(), past);
  job.id = make_id();
  EXPECT_EQ(enqueue_one(job), job.id);
  const Lease lease = lease_one();
  EXPECT_EQ(lease.job.id, job.id);
  EXPECT_EQ(lease.job.body, job.body);
  EXPECT_EQ(lease.job.past, nullptr);
  EXPECT_EQ(lease.attempt, 4u);
  EXPECT_EQ(lease.counts, past.counts);
  EXPECT_EQ(lease.history, past.history);
  ASSERT_TRUE(succeeded(settle_one(lease, RetryAt{.error = "again"})));
  const Lease next = lease_one();
  EXPECT_EQ(next.attempt, 5u);
  EXPECT_EQ(next.counts.failed, 3u);
  ASSERT_EQ(next.history.size(), 4u);
  EXPECT_EQ(next.history.back().attempt, 4u);
  EXPECT_TRUE(succeeded(settle_one(next)));
}

TEST_P(BrokerConformance, AJobThatWasDueElsewhereKeepsItsDueTime) {
  BIDE_NEEDS(carries_past);
  Job job = carrying(make_job(), {});
  job.due = now() - std::chrono::hours(2);
  const JobId id = enqueue_one(job);
  if (can().inspect) {
    EXPECT_EQ(find(id).due, *job.due);
    EXPECT_EQ(find(id).state, JobState::kReady);
    EXPECT_EQ(find(id).job.past, nullptr);
  }
  const Lease lease = lease_one();
  EXPECT_EQ(lease.attempt, 1u);
  EXPECT_EQ(lease.due, *job.due);
}

TEST_P(BrokerConformance, AJobWithAPastIsNotRunBeforeItIsDue) {
  BIDE_NEEDS(carries_past);
  Job job = carrying(make_job(), two_failures(now()));
  job.due = now() + beats(3);
  const JobId id = enqueue_one(job);
  Consumer consumer = subscribe();
  expect_nothing_before(*job.due, consumer);
  const Lease lease = consumer.leases().take();
  EXPECT_EQ(lease.job.id, id);
  EXPECT_EQ(lease.attempt, 4u);
}

TEST_P(BrokerConformance, ADeadJobArrivesDead) {
  BIDE_NEEDS(carries_past);
  BIDE_NEEDS(dead_set);
  JobPast past = two_failures(now());
  past.dead = DeadReason::kPoison;
  past.finished = now() - std::chrono::hours(3);
  const JobId newer = make_dead();
  const JobId id = enqueue_one(carrying(make_job(), past));
  const auto dead = list({.states = {JobState::kDead}});
  ASSERT_EQ(dead.size(), 2u);
  EXPECT_EQ(dead[0].job.id, newer);
  const JobInfo& info = dead[1];
  EXPECT_EQ(info.job.id, id);
  EXPECT_EQ(info.dead_reason, past.dead);
  EXPECT_EQ(info.finished, past.finished);
  EXPECT_EQ(info.attempts, 3u);
  EXPECT_EQ(info.counts, past.counts);
  EXPECT_EQ(info.history, past.history);
  EXPECT_EQ(info.job.body, make_job().body);
  Consumer consumer = subscribe();
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
  ASSERT_TRUE(succeeded(replay_one(id)));
  const Lease lease = consumer.leases().take();
  EXPECT_EQ(lease.job.id, id);
  EXPECT_EQ(lease.attempt, 1u);
}

TEST_P(BrokerConformance, ACarriedPastSurvivesARestart) {
  BIDE_NEEDS(carries_past);
  for (const Restart how : {Restart::kClean, Restart::kCrash}) {
    const JobPast past = two_failures(now());
    JobPast buried = past;
    buried.dead = DeadReason::kExhausted;
    buried.finished = now() - std::chrono::hours(1);
    const JobId dead = enqueue_one(carrying(make_job("work", "buried"), buried));
    const JobId id = enqueue_one(carrying(make_job(), past));
    restart(how);
    const Lease lease = lease_one();
    EXPECT_EQ(lease.job.id, id);
    EXPECT_EQ(lease.attempt, 4u);
    EXPECT_EQ(lease.counts, past.counts);
    EXPECT_EQ(lease.history, past.history);
    ASSERT_TRUE(succeeded(settle_one(lease)));
    if (!can().dead_set) continue;
    const auto found = list({.states = {JobState::kDead}, .queue = "buried"});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].job.id, dead);
    EXPECT_EQ(found[0].finished, buried.finished);
    EXPECT_EQ(found[0].dead_reason, buried.dead);
    ASSERT_TRUE(succeeded(cancel_one(dead, {.state = JobState::kDead})));
  }
}

TEST_P(BrokerConformance, AJobWithAPastIsAcceptedOnce) {
  BIDE_NEEDS(carries_past);
  BIDE_NEEDS(idempotent_ids);
  Job job = carrying(make_job(), two_failures(now()));
  job.id = make_id();
  enqueue_one(job);
  const auto again = try_enqueue(job);
  ASSERT_TRUE(succeeded(again));
  EXPECT_TRUE(again->existed);
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  const auto after = try_enqueue(job);
  ASSERT_TRUE(succeeded(after));
  EXPECT_TRUE(after->existed);
}

TEST_P(BrokerConformance, ADeadJobThatArrivesTakesNobodysUniqueKey) {
  BIDE_NEEDS(carries_past);
  BIDE_NEEDS(unique_keys);
  Job job = make_job();
  job.unique_key = "invoice 17";
  const JobId holder = enqueue_one(job);
  JobPast past = two_failures(now());
  past.dead = DeadReason::kRejected;
  const JobId dead = enqueue_one(carrying(job, past));
  EXPECT_TRUE(refused(try_enqueue(job), ErrorCode::kAlreadyExists));
  EXPECT_TRUE(refused(replay_one(dead), ErrorCode::kAlreadyExists));
  restart(Restart::kClean);
  EXPECT_TRUE(refused(try_enqueue(job), ErrorCode::kAlreadyExists));
  const Lease lease = lease_one();
  EXPECT_EQ(lease.job.id, holder);
  ASSERT_TRUE(succeeded(settle_one(lease)));
  EXPECT_TRUE(succeeded(replay_one(dead)));
  EXPECT_EQ(lease_one().job.id, dead);
}

TEST_P(BrokerConformance, APastThatCannotBeIsRefused) {
  BIDE_NEEDS(carries_past);
  JobPast many = two_failures(now());
  many.history.resize(Limits::kHistory + 1);
  JobPast alive = two_failures(now());
  alive.finished = now();
  JobPast damaged;
  damaged.dead = DeadReason::kDamaged;
  JobPast endless;
  endless.attempts = Limits::kAttempts + 1;
  for (const JobPast& past : {many, alive, damaged, endless}) {
    EXPECT_TRUE(refused(try_enqueue(carrying(make_job(), past)), ErrorCode::kInvalidArgument));
  }
}

}  // namespace bide::conformance
