// Settling: what an attempt came to, and the jobs that become real together with it.

#include "conformance/broker_conformance.h"

namespace bide::conformance {

TEST_P(BrokerConformance, DoneJobIsNotDeliveredAgain) {
  enqueue_one();
  Consumer consumer = subscribe({.lease = beats(2)});
  ASSERT_TRUE(succeeded(settle_one(consumer.leases().take())));
  advance(beats(3));
  barrier();
  EXPECT_EQ(consumer.leases().count(), 1u);
}

TEST_P(BrokerConformance, DoneJobNeverStartsAgainAfterARestart) {
  BIDE_NEEDS(final_settle);
  for (const Restart how : {Restart::kClean, Restart::kCrash}) {
    enqueue_one();
    ASSERT_TRUE(succeeded(settle_one(lease_one())));
    restart(how);
    Consumer consumer = subscribe();
    advance(beats(1));
    barrier();
    EXPECT_EQ(consumer.leases().count(), 0u);
  }
}

TEST_P(BrokerConformance, RetryComesAfterItsWaitWithWhatHappened) {
  const JobId id = enqueue_one();
  const Lease first = lease_one();
  const Time settled = now();
  ASSERT_TRUE(succeeded(settle_one(first, RetryAt{.after = beats(3), .error = "no route to host"})));
  Consumer consumer = subscribe();
  expect_nothing_before(settled + beats(3), consumer);
  const Lease second = consumer.leases().take();
  EXPECT_GE(consumer.leases().arrivals().front().at, settled + beats(3));
  EXPECT_EQ(second.job.id, id);
  EXPECT_EQ(second.job.body, first.job.body);
  EXPECT_EQ(second.attempt, 2u);
  EXPECT_GT(second.token, first.token);
  EXPECT_EQ(second.counts, (AttemptCounts{.failed = 1}));
  ASSERT_EQ(second.history.size(), 1u);
  EXPECT_EQ(second.history[0].attempt, 1u);
  EXPECT_EQ(second.history[0].fault, Fault::kFailed);
  EXPECT_EQ(second.history[0].text, "no route to host");
  EXPECT_GE(second.history[0].at, settled);
  EXPECT_LE(second.history[0].at, now());
}

TEST_P(BrokerConformance, FaultsAreCountedApart) {
  enqueue_one();
  ASSERT_TRUE(succeeded(settle_one(lease_one(), RetryAt{.fault = Fault::kTimedOut, .error = "too slow"})));
  ASSERT_TRUE(succeeded(settle_one(lease_one(), RetryAt{.fault = Fault::kFailed, .error = "broken"})));
  ASSERT_TRUE(succeeded(settle_one(lease_one(), RetryAt{.fault = Fault::kTimedOut, .error = "too slow again"})));
  const Lease lease = lease_one();
  EXPECT_EQ(lease.counts, (AttemptCounts{.failed = 1, .timed_out = 2}));
  ASSERT_EQ(lease.history.size(), 3u);
  EXPECT_EQ(lease.history[0].fault, Fault::kTimedOut);
  EXPECT_EQ(lease.history[1].fault, Fault::kFailed);
  EXPECT_EQ(lease.history[2].text, "too slow again");
}

TEST_P(BrokerConformance, HistoryKeepsTheNewestErrorsAndCutsLongOnes) {
  enqueue_one();
  constexpr std::uint32_t kAttempts = Limits::kHistory + 3;
  for (std::uint32_t attempt = 1; attempt <= kAttempts; ++attempt) {
    ASSERT_TRUE(succeeded(settle_one(lease_one(), RetryAt{.error = std::string(Limits::kErrorBytes + 500, 'e')})));
  }
  const Lease lease = lease_one();
  EXPECT_EQ(lease.attempt, kAttempts + 1);
  EXPECT_EQ(lease.counts.failed, kAttempts);
  ASSERT_EQ(lease.history.size(), Limits::kHistory);
  EXPECT_EQ(lease.history.back().attempt, kAttempts);
  EXPECT_EQ(lease.history.front().attempt, kAttempts + 1 - Limits::kHistory);
  for (const AttemptError& error : lease.history) {
    EXPECT_LE(error.text.size(), Limits::kErrorBytes);
    EXPECT_EQ(error.text.substr(0, 100), std::string(100, 'e'));
  }
}

TEST_P(BrokerConformance, RetryCanReplaceTheBodyForTheNextAttempt) {
  Job job = make_job();
  job.headers = {{"name", "value"}};
  if (can().unique_keys) job.unique_key = "key";
  enqueue_one(job);
  ASSERT_TRUE(succeeded(settle_one(lease_one(), RetryAt{.error = "half way", .body = "the other half"})));
  const Lease second = lease_one();
  EXPECT_EQ(second.job.body, "the other half");
  EXPECT_EQ(second.job.kind, job.kind);
  EXPECT_EQ(second.job.headers, job.headers);
  EXPECT_EQ(second.attempt, 2u);
  EXPECT_EQ(second.counts.failed, 1u);
  ASSERT_EQ(second.history.size(), 1u);
  EXPECT_EQ(second.history[0].text, "half way");
  ASSERT_TRUE(succeeded(settle_one(second, RetryAt{.error = "again"})));
  const Lease third = lease_one();
  EXPECT_EQ(third.job.body, "the other half");
  EXPECT_EQ(third.counts.failed, 2u);
  if (can().unique_keys) {
    EXPECT_TRUE(refused(try_enqueue(job), ErrorCode::kAlreadyExists));
  }
}

TEST_P(BrokerConformance, DeadJobWaitsInTheDeadSetAndIsNotDelivered) {
  BIDE_NEEDS(dead_set);
  const Time before = now();
  const JobId id = make_dead(make_job(), "no such file");
  Consumer consumer = subscribe();
  advance(beats(2));
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
  const JobInfo info = find(id);
  EXPECT_EQ(info.state, JobState::kDead);
  EXPECT_EQ(info.dead_reason, DeadReason::kRejected);
  EXPECT_EQ(info.attempts, 1u);
  EXPECT_EQ(info.job.body, make_job().body);
  ASSERT_TRUE(info.finished.has_value());
  EXPECT_GE(*info.finished, before);
  EXPECT_LE(*info.finished, now());
  ASSERT_EQ(info.history.size(), 1u);
  EXPECT_EQ(info.history[0].text, "no such file");
}

TEST_P(BrokerConformance, ReturnedAttemptIsNotCharged) {
  const JobId id = enqueue_one();
  const Lease first = lease_one();
  const Time settled = now();
  ASSERT_TRUE(succeeded(settle_one(first, Returned{.after = beats(2), .note = "no handler for work"})));
  if (can().inspect) {
    const JobInfo info = find(id);
    EXPECT_EQ(info.state, JobState::kScheduled);
    EXPECT_EQ(info.attempts, 0u);
    EXPECT_EQ(info.note, "no handler for work");
  }
  Consumer consumer = subscribe();
  expect_nothing_before(settled + beats(2), consumer);
  const Lease second = consumer.leases().take();
  EXPECT_EQ(second.attempt, 1u);
  EXPECT_EQ(second.counts, AttemptCounts{});
  EXPECT_TRUE(second.history.empty());
  EXPECT_GT(second.token, first.token);
}

TEST_P(BrokerConformance, SettlingAgainWithTheSameTokenSucceedsAgainAndChangesNothing) {
  enqueue_one();
  const Lease lease = lease_one();
  const Job effect = make_job("effect", "effects");
  ASSERT_TRUE(succeeded(settle_one(lease, RetryAt{.error = "once"}, {effect})));
  EXPECT_TRUE(succeeded(settle_one(lease, RetryAt{.error = "once"}, {effect})));
  const Lease second = lease_one();
  EXPECT_EQ(second.counts.failed, 1u);
  EXPECT_EQ(second.history.size(), 1u);
  // Another attempt has begun: a broker may still know that it has settled the first, or call its token stale.
  if (const Status late = settle_one(lease, RetryAt{.error = "once"}, {effect}); !late) {
    EXPECT_TRUE(refused(late, ErrorCode::kLeaseLost));
  }
  EXPECT_FALSE(extend_one(second).lost);
  ASSERT_TRUE(succeeded(settle_one(second)));
  EXPECT_TRUE(succeeded(settle_one(second)));
  Consumer effects = subscribe_to("effects");
  effects.leases().take();
  barrier();
  EXPECT_EQ(effects.leases().count(), 1u);
}

TEST_P(BrokerConformance, SettlingAgainWithAnotherOutcomeIsRefused) {
  enqueue_one();
  const Lease first = lease_one();
  ASSERT_TRUE(succeeded(settle_one(first, Returned{})));
  EXPECT_TRUE(refused(settle_one(first, Done{}), ErrorCode::kLeaseLost));
  const Lease second = lease_one();
  EXPECT_EQ(second.attempt, first.attempt);
  ASSERT_TRUE(succeeded(settle_one(second, RetryAt{})));
  EXPECT_TRUE(refused(settle_one(second, Done{}), ErrorCode::kLeaseLost));
  EXPECT_TRUE(refused(settle_one(second, Returned{}), ErrorCode::kLeaseLost));
  ASSERT_TRUE(succeeded(settle_one(lease_one(), Done{})));
}

TEST_P(BrokerConformance, DoneJobIsNotSettledByAnotherToken) {
  BIDE_NEEDS(final_settle);
  enqueue_one();
  ASSERT_TRUE(succeeded(settle_one(lease_one(), RetryAt{})));
  const Lease lease = lease_one();
  ASSERT_TRUE(succeeded(settle_one(lease)));
  Lease other = lease;
  other.token -= 1;
  EXPECT_TRUE(refused(settle_one(other, RetryAt{}), ErrorCode::kLeaseLost));
  EXPECT_TRUE(extend_one(lease).lost);
}

TEST_P(BrokerConformance, SettlingAnUnknownJobIsNotFound) {
  Lease lease;
  lease.job.id = make_id();
  lease.token = 1;
  EXPECT_TRUE(refused(settle_one(lease), ErrorCode::kNotFound));
}

TEST_P(BrokerConformance, BatchOfSettlementsGivesOneStatusForEachInOrder) {
  enqueue_many(3);
  const std::vector<Lease> leases = subscribe().leases().take(3);
  const std::vector<Status> statuses = settle_all({{ref(leases[0]), Done{}, {}},
                                                   {{make_id(), 1}, Done{}, {}},
                                                   {ref(leases[1]), Returned{}, {}},
                                                   {{leases[2].job.id, leases[2].token + 1000}, Done{}, {}},
                                                   {ref(leases[2]), Done{}, {}}});
  ASSERT_EQ(statuses.size(), 5u);
  EXPECT_TRUE(succeeded(statuses[0]));
  EXPECT_TRUE(refused(statuses[1], ErrorCode::kNotFound));
  EXPECT_TRUE(succeeded(statuses[2]));
  EXPECT_TRUE(refused(statuses[3], ErrorCode::kLeaseLost));
  EXPECT_TRUE(succeeded(statuses[4]));
  EXPECT_EQ(lease_one().job.id, leases[1].job.id);
}

TEST_P(BrokerConformance, EffectsBecomeRealWithTheOutcomeWhateverItIs) {
  const std::vector<Outcome> outcomes = {Done{}, RetryAt{.after = std::chrono::hours(1)}, Dead{},
                                         Returned{.after = std::chrono::hours(1)}};
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    SCOPED_TRACE(i);
    if (std::holds_alternative<Dead>(outcomes[i]) && !can().dead_set) continue;
    enqueue_one();
    const Lease lease = lease_one();
    Consumer effects = subscribe_to("effects");
    barrier();
    EXPECT_EQ(effects.leases().count(), 0u);
    Job first = make_job("first", "effects"), second = make_job("second", "effects");
    first.body = "one";
    second.body = "two";
    ASSERT_TRUE(succeeded(settle_one(lease, outcomes[i], {first, second})));
    const std::vector<Lease> arrived = effects.leases().take(2);
    EXPECT_EQ(arrived[0].job.body, "one");
    EXPECT_EQ(arrived[1].job.body, "two");
    for (const Lease& effect : arrived) ASSERT_TRUE(succeeded(settle_one(effect)));
  }
}

TEST_P(BrokerConformance, EffectObeysItsOwnDelay) {
  enqueue_one();
  Job effect = make_job("effect", "effects");
  effect.delay = beats(3);
  Consumer effects = subscribe_to("effects");
  const Time settled = now();
  ASSERT_TRUE(succeeded(settle_one(lease_one(), Done{}, {effect})));
  expect_nothing_before(settled + beats(3), effects);
  effects.leases().take();
}

TEST_P(BrokerConformance, InvalidEffectRefusesTheWholeSettlement) {
  enqueue_one();
  const Lease lease = lease_one();
  const Job good = make_job("good", "effects");
  const Job bad = make_job("bad", "not a queue");
  EXPECT_TRUE(refused(settle_one(lease, Done{}, {good, bad}), ErrorCode::kInvalidArgument));
  Consumer effects = subscribe_to("effects");
  barrier();
  EXPECT_EQ(effects.leases().count(), 0u);
  EXPECT_FALSE(extend_one(lease).lost);
  ASSERT_TRUE(succeeded(settle_one(lease, Done{}, {good})));
  EXPECT_EQ(effects.leases().take().job.kind, "good");
}

TEST_P(BrokerConformance, EffectsAndOutcomeSurviveACrashTogether) {
  BIDE_NEEDS(final_settle);
  enqueue_one();
  ASSERT_TRUE(succeeded(settle_one(lease_one(), Done{}, {make_job("one", "effects"), make_job("two", "effects")})));
  restart(Restart::kCrash);
  Consumer effects = subscribe_to("effects");
  effects.leases().take(2);
  Consumer again = subscribe();
  barrier();
  EXPECT_EQ(again.leases().count(), 0u);
  EXPECT_EQ(effects.leases().count(), 2u);
}

}  // namespace bide::conformance
