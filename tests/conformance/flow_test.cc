// Flows: jobs that wait for other jobs.

#include <map>
#include <set>

#include "conformance/broker_conformance.h"

namespace bide::conformance {

namespace {

Job step_after(std::vector<JobId> after, AfterDeath after_death = AfterDeath::kHold) {
  Job job;
  job.kind = "step";
  job.after = std::move(after);
  job.after_death = after_death;
  return job;
}

constexpr Restart kStopAndCrash[] = {Restart::kClean, Restart::kCrash};

}  // namespace

TEST_P(BrokerConformance, JobWaitsUntilTheOneBeforeItIsDone) {
  BIDE_NEEDS(dependencies);
  const JobId first = enqueue_one();
  const JobId second = enqueue_one(step_after({first}));
  JobInfo info = find(second);
  EXPECT_EQ(info.state, JobState::kWaiting);
  EXPECT_EQ(info.waits_for, 1u);
  EXPECT_EQ(info.job.after, std::vector<JobId>{first});
  EXPECT_EQ(explain(second), "waiting");
  EXPECT_EQ(queue("default").waiting, 1u);
  Consumer consumer = subscribe();
  const Lease lease = consumer.leases().take();
  EXPECT_EQ(lease.job.id, first);
  barrier();
  EXPECT_EQ(consumer.leases().count(), 1u);
  ASSERT_TRUE(succeeded(settle_one(lease)));
  EXPECT_EQ(consumer.leases().take().job.id, second);
  EXPECT_EQ(queue("default").waiting, 0u);
}

TEST_P(BrokerConformance, JobThatWaitsForSeveralRunsAfterTheLastOfThem) {
  BIDE_NEEDS(dependencies);
  const std::vector<JobId> parts = enqueue_many(5);
  const JobId last = enqueue_one(step_after(parts));
  EXPECT_EQ(find(last).waits_for, 5u);
  Consumer consumer = subscribe();
  const std::vector<Lease> leases = consumer.leases().take(5);
  for (std::size_t i = 0; i < leases.size(); ++i) {
    barrier();
    EXPECT_EQ(consumer.leases().count(), 5u);
    EXPECT_EQ(find(last).waits_for, 5u - i);
    ASSERT_TRUE(succeeded(settle_one(leases[i])));
  }
  EXPECT_EQ(consumer.leases().take().job.id, last);
}

TEST_P(BrokerConformance, JobsThatWaitForOneRunInTheOrderInWhichTheyCame) {
  BIDE_NEEDS(dependencies);
  const JobId first = enqueue_one();
  const std::vector<JobId> others = enqueue_many(20, step_after({first}));
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  Consumer consumer = subscribe();
  consumer.leases().take(20);
  EXPECT_EQ(consumer.leases().ids(), others);
}

TEST_P(BrokerConformance, JobThatFailsIsStillWaitedFor) {
  BIDE_NEEDS(dependencies);
  const JobId first = enqueue_one();
  const JobId second = enqueue_one(step_after({first}));
  ASSERT_TRUE(succeeded(settle_one(lease_one(), RetryAt{.after = beats(2), .error = "not yet"})));
  EXPECT_EQ(find(second).state, JobState::kWaiting);
  advance(beats(2));
  ASSERT_TRUE(succeeded(settle_one(lease_one(), Returned{})));
  EXPECT_EQ(find(second).state, JobState::kWaiting);
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  EXPECT_EQ(lease_one().job.id, second);
}

TEST_P(BrokerConformance, JobsOfOneCallWaitForEachOtherInAnyOrder) {
  BIDE_NEEDS(dependencies);
  const JobId a = make_id();
  const JobId b = make_id();
  const JobId c = make_id();
  std::vector<Job> jobs = {step_after({b}), step_after({a}), step_after({})};
  jobs[0].id = c;
  jobs[1].id = b;
  jobs[2].id = a;
  EXPECT_EQ(enqueue_all(jobs), (std::vector<JobId>{c, b, a}));
  Consumer consumer = subscribe();
  for (const JobId& expected : {a, b, c}) {
    const Lease lease = consumer.leases().take();
    EXPECT_EQ(lease.job.id, expected);
    ASSERT_TRUE(succeeded(settle_one(lease)));
  }
}

TEST_P(BrokerConformance, JobsThatWaitInACircleAreRefused) {
  BIDE_NEEDS(dependencies);
  const JobId a = make_id();
  const JobId b = make_id();
  std::vector<Job> jobs = {step_after({b}), step_after({a}), make_job()};
  jobs[0].id = a;
  jobs[1].id = b;
  const std::vector<Result<Enqueued>> results = try_enqueue(jobs);
  EXPECT_TRUE(refused(results[0], ErrorCode::kInvalidArgument));
  EXPECT_TRUE(refused(results[1], ErrorCode::kInvalidArgument));
  EXPECT_TRUE(succeeded(results[2]));
  EXPECT_TRUE(refused(try_find(a), ErrorCode::kNotFound));
}

TEST_P(BrokerConformance, JobThatWaitsForAnUnknownOneIsRefused) {
  BIDE_NEEDS(dependencies);
  const JobId known = enqueue_one();
  EXPECT_TRUE(refused(try_enqueue(step_after({known, make_id()})), ErrorCode::kNotFound));
  EXPECT_EQ(queue("default").waiting, 0u);
}

TEST_P(BrokerConformance, JobThatWaitsForADoneOneRunsAtOnce) {
  BIDE_NEEDS(dependencies);
  const JobId first = enqueue_one();
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  const JobId second = enqueue_one(step_after({first}));
  EXPECT_EQ(find(second).state, JobState::kReady);
  EXPECT_EQ(lease_one().job.id, second);
}

TEST_P(BrokerConformance, JobThatIsWaitedForAndEnqueuedAgainIsTheSame) {
  BIDE_NEEDS(dependencies);
  BIDE_NEEDS(idempotent_ids);
  Job first = make_job();
  first.id = make_id();
  Job second = step_after({first.id});
  second.id = make_id();
  for (int again = 0; again < 2; ++again) {
    for (const auto& result : try_enqueue({second, first})) {
      ASSERT_TRUE(succeeded(result));
      EXPECT_EQ(result->existed, again == 1);
    }
  }
  EXPECT_EQ(find(second.id).waits_for, 1u);
}

TEST_P(BrokerConformance, DelayOfAJobThatWaitsCountsFromItsAcceptance) {
  BIDE_NEEDS(dependencies);
  const JobId first = enqueue_one();
  Job job = step_after({first});
  job.delay = beats(4);
  const Time accepted = now();
  const JobId second = enqueue_one(job);
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  EXPECT_EQ(find(second).state, JobState::kScheduled);
  Consumer consumer = subscribe();
  expect_nothing_before(accepted + beats(4), consumer);
  EXPECT_EQ(consumer.leases().take().job.id, second);
}

TEST_P(BrokerConformance, DeadOneHoldsThoseThatWaitUntilItIsReplayed) {
  BIDE_NEEDS(dependencies);
  BIDE_NEEDS(dead_set);
  const JobId first = enqueue_one();
  const JobId second = enqueue_one(step_after({first}));
  ASSERT_TRUE(succeeded(settle_one(lease_one(), Dead{.error = "no"})));
  EXPECT_EQ(find(second).state, JobState::kWaiting);
  EXPECT_EQ(explain(second), "waiting_for_dead");
  ASSERT_TRUE(succeeded(replay_one(first)));
  EXPECT_EQ(explain(second), "waiting");
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  EXPECT_EQ(lease_one().job.id, second);
}

TEST_P(BrokerConformance, DeadOneTakesThoseAlongThatAreToBeCancelledWithIt) {
  BIDE_NEEDS(dependencies);
  BIDE_NEEDS(dead_set);
  const JobId first = enqueue_one();
  const JobId second = enqueue_one(step_after({first}, AfterDeath::kCancel));
  const JobId third = enqueue_one(step_after({second}));
  const JobId fourth = enqueue_one(step_after({third}, AfterDeath::kRun));
  const Pending<JobInfo> watching = watch(third);
  ASSERT_TRUE(succeeded(settle_one(lease_one(), Dead{.error = "no"})));
  EXPECT_EQ(lease_one().job.id, fourth);
  EXPECT_TRUE(refused(try_find(second), ErrorCode::kNotFound));
  EXPECT_TRUE(refused(try_find(third), ErrorCode::kNotFound));
  const auto told = watching.wait();
  ASSERT_TRUE(told.has_value());
  EXPECT_TRUE(refused(*told, ErrorCode::kNotFound));
  EXPECT_TRUE(refused(try_enqueue(step_after({first}, AfterDeath::kCancel)), ErrorCode::kWrongState));
  if (can().audit) {
    EXPECT_TRUE(audit().ok());
  }
}

TEST_P(BrokerConformance, DeadOneCountsAsFinishedForThoseThatRunAfterIt) {
  BIDE_NEEDS(dependencies);
  BIDE_NEEDS(dead_set);
  const JobId first = enqueue_one();
  const JobId other = enqueue_one();
  const JobId last = enqueue_one(step_after({first, other}, AfterDeath::kRun));
  ASSERT_TRUE(succeeded(settle_one(lease_one(), Dead{.error = "no"})));
  EXPECT_EQ(find(last).waits_for, 1u);
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  EXPECT_EQ(lease_one().job.id, last);
  EXPECT_EQ(find(enqueue_one(step_after({first}, AfterDeath::kRun))).state, JobState::kReady);
}

TEST_P(BrokerConformance, CancelledOneTakesThoseAlongThatWaitForIt) {
  BIDE_NEEDS(dependencies);
  BIDE_NEEDS(cancel);
  const JobId first = enqueue_one();
  const JobId held = enqueue_one(step_after({first}));
  const JobId runs = enqueue_one(step_after({first}, AfterDeath::kRun));
  ASSERT_TRUE(succeeded(cancel_one(first)));
  EXPECT_EQ(lease_one().job.id, runs);
  EXPECT_TRUE(eventually([&] { return !try_find(held); }));
}

TEST_P(BrokerConformance, JobThatWaitsCanBeCancelled) {
  BIDE_NEEDS(dependencies);
  BIDE_NEEDS(cancel);
  const JobId first = enqueue_one();
  const JobId second = enqueue_one(step_after({first}));
  ASSERT_TRUE(succeeded(cancel_one(second)));
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  Consumer consumer = subscribe();
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
  if (can().audit) {
    EXPECT_TRUE(audit().ok());
  }
}

TEST_P(BrokerConformance, JobThatWaitsCanBeEditedAndPutOff) {
  BIDE_NEEDS(dependencies);
  BIDE_NEEDS(edit);
  const JobId first = enqueue_one();
  const JobId second = enqueue_one(step_after({first}));
  ASSERT_TRUE(succeeded(edit_one(second, {.body = "edited", .queue = "other"})));
  ASSERT_TRUE(succeeded(reschedule_one(second, now() + beats(2))));
  EXPECT_EQ(find(second).state, JobState::kWaiting);
  EXPECT_EQ(find(second).waits_for, 1u);
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  EXPECT_EQ(find(second).state, JobState::kScheduled);
  advance(beats(2));
  EXPECT_EQ(lease_one("other").job.body, "edited");
}

TEST_P(BrokerConformance, RunningJobAddsToItsOwnFlow) {
  BIDE_NEEDS(dependencies);
  BIDE_NEEDS(atomic_effects);
  Job first = make_job();
  first.flow = make_id();
  enqueue_one(first);
  const Lease lease = lease_one();
  Job part = make_job();
  part.id = make_id();
  part.flow = first.flow;
  Job join = step_after({part.id, lease.job.id});
  join.id = make_id();
  join.flow = first.flow;
  ASSERT_TRUE(succeeded(settle_one(lease, Done{}, {join, part})));
  EXPECT_EQ(find(join.id).waits_for, 1u);
  EXPECT_EQ(list_ids({.flow = first.flow}).size(), 3u);
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  EXPECT_EQ(lease_one().job.id, join.id);
}

TEST_P(BrokerConformance, EffectThatWaitsForAnUnknownJobIsRefusedWithItsSettlement) {
  BIDE_NEEDS(dependencies);
  enqueue_one();
  const Lease lease = lease_one();
  EXPECT_TRUE(refused(settle_one(lease, Done{}, {step_after({make_id()})}), ErrorCode::kInvalidArgument));
  EXPECT_EQ(find(lease.job.id).state, JobState::kRunning);
  EXPECT_TRUE(succeeded(settle_one(lease)));
}

TEST_P(BrokerConformance, JobsOfAFlowAreListedWhateverTheirState) {
  BIDE_NEEDS(dependencies);
  Job job = make_job();
  job.flow = make_id();
  const std::vector<JobId> ids = enqueue_many(2, job);
  Job last = step_after(ids);
  last.flow = job.flow;
  const JobId end = enqueue_one(last);
  enqueue_one();
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  std::map<JobId, JobState> states;
  for (const JobInfo& info : list({.flow = job.flow})) {
    states[info.job.id] = info.state;
    EXPECT_EQ(info.job.flow, job.flow);
  }
  EXPECT_EQ(states.size(), 3u);
  EXPECT_EQ(states[ids[0]], JobState::kDone);
  EXPECT_EQ(states[end], JobState::kWaiting);
  EXPECT_EQ(list_ids({.states = {JobState::kWaiting}}), std::vector<JobId>{end});
  EXPECT_TRUE(list_ids({.flow = make_id()}).empty());
}

TEST_P(BrokerConformance, WaitingSurvivesARestart) {
  BIDE_NEEDS(dependencies);
  Job first = make_job();
  first.flow = make_id();
  const std::vector<JobId> parts = enqueue_many(2, first);
  Job last = step_after(parts);
  last.flow = first.flow;
  const JobId join = enqueue_one(last);
  const JobId after_join = enqueue_one(step_after({join}));
  std::size_t left = 2;
  for (const Restart how : kStopAndCrash) {
    restart(how);
    EXPECT_EQ(find(join).waits_for, left);
    EXPECT_EQ(find(after_join).state, JobState::kWaiting);
    EXPECT_EQ(list_ids({.flow = first.flow}).size(), 3u);
    ASSERT_TRUE(succeeded(settle_one(lease_one())));
    --left;
  }
  for (const JobId& expected : {join, after_join}) {
    restart(Restart::kCrash);
    const Lease lease = lease_one();
    EXPECT_EQ(lease.job.id, expected);
    ASSERT_TRUE(succeeded(settle_one(lease)));
  }
  if (can().audit) {
    EXPECT_TRUE(audit().ok());
  }
}

TEST_P(BrokerConformance, CompletionOfManyRunsOnce) {
  BIDE_NEEDS(dependencies);
  // A tree of joins: each waits for at most ten.
  const std::vector<JobId> leaves = enqueue_many(100);
  std::vector<JobId> joins;
  for (std::size_t i = 0; i < leaves.size(); i += 10) {
    joins.push_back(enqueue_one(step_after({leaves.begin() + static_cast<std::ptrdiff_t>(i),
                                            leaves.begin() + static_cast<std::ptrdiff_t>(i) + 10})));
  }
  Job job = step_after(joins);
  job.kind = "completion";
  const JobId completion = enqueue_one(job);
  std::set<JobId> ran;
  Consumer consumer = subscribe({.credit = 1000});
  for (std::size_t i = 0; i < 111; ++i) {
    const Lease lease = consumer.leases().take();
    EXPECT_TRUE(ran.insert(lease.job.id).second);
    if (lease.job.id == completion) {
      EXPECT_EQ(ran.size(), 111u);
    }
    ASSERT_TRUE(succeeded(settle_one(lease)));
  }
  EXPECT_TRUE(ran.contains(completion));
}

}  // namespace bide::conformance
