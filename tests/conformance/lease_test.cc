// Leases: who holds a job, for how long, and who is refused.

#include <set>

#include "conformance/broker_conformance.h"

namespace bide::conformance {

TEST_P(BrokerConformance, ReadyJobWaitsForAWorker) {
  const JobId id = enqueue_one();
  advance(beats(3));
  EXPECT_EQ(lease_one().job.id, id);
}

TEST_P(BrokerConformance, CreditBoundsTheUnsettledLeases) {
  enqueue_many(10);
  Consumer consumer = subscribe({.credit = 3});
  const std::vector<Lease> first = consumer.leases().take(3);
  barrier();
  EXPECT_EQ(consumer.leases().count(), 3u);
  ASSERT_TRUE(succeeded(settle_one(first[0])));
  ASSERT_TRUE(succeeded(settle_one(first[1], RetryAt{.after = std::chrono::hours(1)})));
  consumer.leases().take(2);
  barrier();
  EXPECT_EQ(consumer.leases().count(), 5u);
}

TEST_P(BrokerConformance, CreditOfZeroStopsTheFlowUntilItIsRaised) {
  enqueue_many(6);
  Consumer consumer = subscribe({.credit = 2});
  const std::vector<Lease> held = consumer.leases().take(2);
  consumer.set_credit(0);
  for (const Lease& lease : held) ASSERT_TRUE(succeeded(settle_one(lease)));
  barrier();
  EXPECT_EQ(consumer.leases().count(), 2u);
  consumer.set_credit(3);
  consumer.leases().take(3);
  barrier();
  EXPECT_EQ(consumer.leases().count(), 5u);
}

TEST_P(BrokerConformance, DeliveryLimitBoundsAllLeasesWhateverBecomesOfThem) {
  enqueue_many(10);
  Consumer consumer = subscribe({.credit = 0});
  consumer.set_delivery_limit(3);
  const std::vector<Lease> first = consumer.leases().take(3);
  ASSERT_TRUE(succeeded(settle_one(first[0])));
  ASSERT_TRUE(succeeded(settle_one(first[1], RetryAt{.after = std::chrono::hours(1)})));
  barrier();
  EXPECT_EQ(consumer.leases().count(), 3u);
  consumer.set_delivery_limit(5);
  consumer.leases().take(2);
  barrier();
  EXPECT_EQ(consumer.leases().count(), 5u);
  // Lower than what was delivered: nothing more comes, and nothing is taken away.
  consumer.set_delivery_limit(1);
  EXPECT_FALSE(extend_one(first[2]).lost);
  ASSERT_TRUE(succeeded(settle_one(first[2])));
  barrier();
  EXPECT_EQ(consumer.leases().count(), 5u);
}

TEST_P(BrokerConformance, LoweredCreditTakesNoLeaseAway) {
  enqueue_many(4);
  Consumer consumer = subscribe({.credit = 3});
  const std::vector<Lease> held = consumer.leases().take(3);
  consumer.set_credit(1);
  barrier();
  for (const Lease& lease : held) EXPECT_FALSE(extend_one(lease).lost);
  ASSERT_TRUE(succeeded(settle_one(held[0])));
  ASSERT_TRUE(succeeded(settle_one(held[1])));
  barrier();
  EXPECT_EQ(consumer.leases().count(), 3u);
  ASSERT_TRUE(succeeded(settle_one(held[2])));
  consumer.leases().take();
}

TEST_P(BrokerConformance, ASavedBodyIsThereForTheNextAttemptWhateverEndsThisOne) {
  BIDE_NEEDS(save_body);
  const auto save = [this](const Lease& lease, const std::string& body) {
    return wait<void>([&](auto done) { broker().save_body(ref(lease), body, std::move(done)); });
  };
  const JobId id = enqueue_one();
  const Lease first = lease_one();
  ASSERT_TRUE(succeeded(save(first, "step 2")));
  EXPECT_EQ(find(id).state, JobState::kRunning);
  EXPECT_EQ(find(id).attempts, 1u);
  EXPECT_FALSE(extend_one(first).lost);
  restart(Restart::kCrash);
  let_crashed_jobs_return();
  const Lease second = lease_one();
  EXPECT_EQ(second.job.id, id);
  EXPECT_EQ(second.job.body, "step 2");
  EXPECT_EQ(second.attempt, 2u);
  EXPECT_EQ(second.counts.crashed + second.counts.lost, 1u);
  EXPECT_TRUE(refused(save(first, "too late"), ErrorCode::kLeaseLost));
  EXPECT_TRUE(refused(save(second, std::string(Limits::kBodyBytes + 1, 'x')), ErrorCode::kInvalidArgument));
  ASSERT_TRUE(succeeded(save(second, "step 3")));
  ASSERT_TRUE(succeeded(save(second, "step 4")));
  ASSERT_TRUE(succeeded(settle_one(second, RetryAt{.error = "later"})));
  const Lease third = lease_one();
  EXPECT_EQ(third.job.body, "step 4");
  EXPECT_EQ(third.attempt, 3u);
  EXPECT_EQ(third.history.size(), 2u);
  ASSERT_TRUE(succeeded(save(third, "")));
  ASSERT_TRUE(succeeded(settle_one(third)));
  EXPECT_TRUE(refused(save(third, "done"), ErrorCode::kLeaseLost));
  restart(Restart::kClean);
  if (can().audit) {
    EXPECT_TRUE(audit().ok());
  }
}

TEST_P(BrokerConformance, AttemptsAreCountedFromOne) {
  enqueue_one();
  std::uint64_t token = 0;
  for (std::uint32_t attempt = 1; attempt <= 4; ++attempt) {
    const Lease lease = lease_one();
    EXPECT_EQ(lease.attempt, attempt);
    EXPECT_GT(lease.token, token);
    token = lease.token;
    ASSERT_TRUE(succeeded(settle_one(lease, RetryAt{})));
  }
}

TEST_P(BrokerConformance, AttemptIsWrittenDownBeforeItsLeaseIsHandedOut) {
  BIDE_NEEDS_ATTEMPTS_TO_SURVIVE_A_CRASH();
  const JobId id = enqueue_one();
  const Lease first = lease_one();
  restart(Restart::kCrash);
  let_crashed_jobs_return();
  const Lease second = lease_one();
  EXPECT_EQ(second.job.id, id);
  EXPECT_EQ(second.attempt, 2u);
  EXPECT_GT(second.token, first.token);
}

TEST_P(BrokerConformance, AttemptThatReachedItsWorkerIsChargedWhenTheBrokerDies) {
  BIDE_NEEDS_ATTEMPTS_TO_SURVIVE_A_CRASH();
  enqueue_one();
  EXPECT_FALSE(extend_one(lease_one()).lost);
  restart(Restart::kCrash);
  let_crashed_jobs_return();
  const Lease second = lease_one();
  EXPECT_EQ(second.attempt, 2u);
  EXPECT_EQ(second.counts.crashed + second.counts.lost, 1u);
}

TEST_P(BrokerConformance, ExpiredLeaseIsDeliveredAgainAsTheNextAttempt) {
  const JobId id = enqueue_one();
  Consumer consumer = subscribe({.lease = beats(3)});
  const Lease first = consumer.leases().take();
  const Time begun = consumer.leases().arrivals().front().at;
  expect_nothing_before(begun + beats(3) - on_its_way(), consumer, 1);
  advance(on_its_way() + grace());
  const Lease second = consumer.leases().take();
  EXPECT_EQ(second.job.id, id);
  EXPECT_EQ(second.attempt, 2u);
  EXPECT_GT(second.token, first.token);
  EXPECT_EQ(second.counts, (AttemptCounts{.lost = 1}));
  ASSERT_EQ(second.history.size(), 1u);
  EXPECT_EQ(second.history[0].fault, Fault::kLost);
  EXPECT_EQ(second.history[0].attempt, 1u);
}

TEST_P(BrokerConformance, LeaseThatExpiredFreesItsCredit) {
  enqueue_many(2);
  Consumer consumer = subscribe({.credit = 1, .lease = beats(3)});
  consumer.leases().take();
  advance(beats(3) + grace());
  const Lease next = consumer.leases().take();
  EXPECT_TRUE(succeeded(settle_one(next)));
}

TEST_P(BrokerConformance, ExtendKeepsALeaseAlive) {
  enqueue_one();
  Consumer consumer = subscribe({.lease = beats(4)});
  const Lease lease = consumer.leases().take();
  for (int i = 0; i < 5; ++i) {
    advance(beats(2));
    const Extended extended = extend_one(lease);
    EXPECT_FALSE(extended.lost);
    EXPECT_FALSE(extended.cancel_requested);
  }
  EXPECT_EQ(consumer.leases().count(), 1u);
  EXPECT_TRUE(succeeded(settle_one(lease)));
}

TEST_P(BrokerConformance, ExtendDoesNotKeepALeasePastTheTimeLimit) {
  Job job = make_job();
  job.time_limit = beats(5);
  job.retry = RetryPolicy::fixed(Milliseconds(1));
  enqueue_one(job);
  Consumer consumer = subscribe({.lease = beats(4)});
  const Lease first = consumer.leases().take();
  advance(beats(3));
  EXPECT_FALSE(extend_one(first).lost);
  advance(beats(2) + grace());
  advance(Milliseconds(1));  // The wait before the retry, which begins when the limit is noticed.
  const Lease second = consumer.leases().take();
  EXPECT_EQ(second.attempt, 2u);
  EXPECT_EQ(second.counts, (AttemptCounts{.timed_out = 1}));
  ASSERT_EQ(second.history.size(), 1u);
  EXPECT_EQ(second.history[0].fault, Fault::kTimedOut);
  EXPECT_TRUE(extend_one(first).lost);
}

TEST_P(BrokerConformance, StaleSettleIsRefusedAndChangesNothing) {
  enqueue_one();
  Consumer consumer = subscribe({.lease = beats(3)});
  const Lease first = consumer.leases().take();
  advance(beats(3) + grace());
  const Lease second = consumer.leases().take();
  Job effect = make_job("effect", "effects");
  EXPECT_TRUE(refused(settle_one(first, Done{}, {effect}), ErrorCode::kLeaseLost));
  EXPECT_TRUE(refused(settle_one(first, Dead{}), ErrorCode::kLeaseLost));
  EXPECT_FALSE(extend_one(second).lost);
  EXPECT_TRUE(succeeded(settle_one(second)));
  Consumer effects = subscribe_to("effects");
  barrier();
  EXPECT_EQ(effects.leases().count(), 0u);
}

TEST_P(BrokerConformance, LeaseThatRanOutIsRefusedThoughNobodyElseHasTheJob) {
  enqueue_one();
  const Lease lease = lease_as({.lease = beats(3)});
  advance(beats(3) + grace());
  barrier();
  EXPECT_TRUE(extend_one(lease).lost);
  EXPECT_TRUE(refused(settle_one(lease), ErrorCode::kLeaseLost));
  EXPECT_EQ(lease_one().attempt, 2u);
}

TEST_P(BrokerConformance, ExtendAnswersForEachLeaseInOrder) {
  enqueue_one();
  const Lease held = lease_one();
  const std::vector<Extended> answers =
      extend_all({ref(held), {held.job.id, held.token - 1}, {make_id(), held.token}, ref(held)});
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_FALSE(answers[0].lost);
  EXPECT_TRUE(answers[1].lost) << "a stale token";
  EXPECT_TRUE(answers[2].lost) << "no such job";
  EXPECT_FALSE(answers[3].lost);
}

TEST_P(BrokerConformance, TwoSubscriptionsNeverHoldOneJob) {
  Consumer left = subscribe({.credit = 30, .worker = "left"});
  Consumer right = subscribe({.credit = 30, .worker = "right"});
  const std::vector<JobId> ids = enqueue_many(50);
  // Whatever one of them leaves, the other takes.
  std::set<JobId> seen;
  std::size_t leases = 0;
  EXPECT_TRUE(eventually([&] { return left.leases().count() + right.leases().count() >= ids.size(); }));
  barrier();
  for (Consumer* consumer : {&left, &right}) {
    for (const JobId& id : consumer->leases().ids()) seen.insert(id), ++leases;
  }
  EXPECT_EQ(leases, ids.size());
  EXPECT_EQ(seen, std::set<JobId>(ids.begin(), ids.end()));
}

TEST_P(BrokerConformance, SubscriptionTakesFromAllOfItsQueuesAndFromNoOther) {
  const JobId a = enqueue_one(make_job("work", "a"));
  const JobId b = enqueue_one(make_job("work", "b"));
  enqueue_one(make_job("work", "c"));
  Consumer consumer = subscribe({.queues = {{"a", 1}, {"b", 1}}});
  consumer.leases().take(2);
  barrier();
  const std::vector<JobId> ids = consumer.leases().ids();
  EXPECT_EQ(std::set<JobId>(ids.begin(), ids.end()), (std::set<JobId>{a, b}));
}

TEST_P(BrokerConformance, QueuesAreSharedInProportionToTheirWeights) {
  enqueue_many(60, make_job("heavy", "heavy"));
  enqueue_many(60, make_job("light", "light"));
  Consumer consumer = subscribe({.queues = {{"heavy", 3}, {"light", 1}}, .credit = 4});
  int heavy = 0;
  for (int i = 0; i < 40; ++i) {
    const Lease lease = consumer.leases().take();
    heavy += lease.job.kind == "heavy";
    ASSERT_TRUE(succeeded(settle_one(lease)));
  }
  EXPECT_GE(heavy, 26);
  EXPECT_LE(heavy, 34);
}

TEST_P(BrokerConformance, EmptyQueueLeavesItsShareToTheOthers) {
  const std::vector<JobId> ids = enqueue_many(10, make_job("work", "busy"));
  Consumer consumer = subscribe({.queues = {{"idle", 100}, {"busy", 1}}});
  EXPECT_TRUE(consumer.leases().wait_for(ids.size()));
}

TEST_P(BrokerConformance, EndedSubscriptionGetsNothingMoreAndItsLeasesStayValid) {
  enqueue_one();
  Consumer consumer = subscribe({.credit = 10});
  const Lease lease = consumer.leases().take();
  consumer.unsubscribe();
  enqueue_many(3);
  barrier();
  EXPECT_EQ(consumer.leases().count(), 1u);
  EXPECT_FALSE(extend_one(lease).lost);
  EXPECT_TRUE(succeeded(settle_one(lease)));
  EXPECT_EQ(lease_one().attempt, 1u);
}

TEST_P(BrokerConformance, LastAttemptThatLosesItsLeaseEndsInTheDeadSet) {
  BIDE_NEEDS(dead_set);
  Job job = make_job();
  job.retry = RetryPolicy::none();
  const JobId id = enqueue_one(job);
  Consumer consumer = subscribe({.lease = beats(3)});
  consumer.leases().take();
  advance(beats(3) + grace());
  barrier();
  EXPECT_EQ(consumer.leases().count(), 1u);
  const JobInfo info = find(id);
  EXPECT_EQ(info.state, JobState::kDead);
  EXPECT_EQ(info.dead_reason, DeadReason::kExhausted);
  EXPECT_EQ(info.counts, (AttemptCounts{.lost = 1}));
}

}  // namespace bide::conformance
