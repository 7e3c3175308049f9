// Jobs that wait for others, and the steps of those that run: through snapshots, in bounded pieces, and at scale.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/ledger_fixture.h"

namespace bide::engine {
namespace {

using support::Survival;

class LedgerRelations : public LedgerFixture {
 protected:
  void SetUp() override { open(); }

  void open() {
    EngineOptions options;
    options.segment_bytes = 32 << 10;
    options.snapshot_bytes = 8 << 10;
    options.piece = 64;
    open_ledger(options);
    ledger_->subscribe(1, {.credit = 1'000'000, .outlives_process = true}, [](const std::vector<Lease>&) {});
  }
  void reopen(Survival unsynced = Survival::kNothing) {
    die(unsynced);
    open();
  }
  std::vector<JobId> enqueue(std::vector<Job> jobs) {
    EXPECT_TRUE(ledger_->begin());
    auto results = ledger_->enqueue(EnqueueBatch::of(std::move(jobs), {}));
    EXPECT_TRUE(ledger_->commit());
    std::vector<JobId> ids;
    for (const auto& result : results) ids.push_back(result.value().id);
    return ids;
  }
  JobId enqueue(Job job) { return enqueue(std::vector<Job>{std::move(job)}).front(); }
  static Job after(std::vector<JobId> ids, AfterDeath after_death = AfterDeath::kHold) {
    return {.kind = "step", .after = std::move(ids), .after_death = after_death};
  }
  std::vector<Lease> step() {
    EXPECT_TRUE(ledger_->begin());
    return end_step();
  }
  void settle(const Lease& lease, Outcome outcome = Done{}) {
    ASSERT_TRUE(ledger_->begin());
    const auto settled = ledger_->settle(SettleBatch::of({{.lease = {lease.job.id, lease.token}, .outcome = outcome}}, {}));
    ASSERT_TRUE(settled.at(0)) << settled.at(0).error().message;
    ASSERT_TRUE(ledger_->commit());
  }
  JobState state_of(const JobId& id) { return ledger_->find(id).value().state; }
  // Until there is a snapshot of now.
  void snapshot() {
    for (int round = 0; round < 100; ++round) {
      enqueue(Job{.kind = "filler", .queue = "filler", .body = std::string(1000, 'x')});
      for (int piece = 0; piece < 1000 && ledger_->tidy().value(); ++piece) ledger_->take_garbage()();
    }
    bool has_one = false;
    for (const std::string& file : disk_.files()) has_one |= file.find("/snapshot-") != std::string::npos;
    ASSERT_TRUE(has_one);
  }
  void expect_sound() {
    const AuditReport report = ledger_->audit();
    EXPECT_TRUE(report.ok()) << report.problems.front();
  }
};

TEST_F(LedgerRelations, AreInASnapshot) {
  Job first{.kind = "first", .flow = enqueue(Job{.kind = "other", .queue = "other"})};
  const JobId a = enqueue(first);
  const JobId b = enqueue(after({a}));
  const JobId c = enqueue(after({a, b}, AfterDeath::kCancel));
  snapshot();
  reopen();
  EXPECT_EQ(state_of(b), JobState::kWaiting);
  EXPECT_EQ(ledger_->find(c).value().waits_for, 2u);
  EXPECT_TRUE(ledger_->state().relations().is_in_flow(ledger_->state().find(a), first.flow));
  expect_sound();
  const std::vector<Lease> leases = step();
  ASSERT_EQ(leases.size(), 1u);
  settle(leases[0], Dead{.error = "no"});
  step();
  EXPECT_FALSE(ledger_->find(c)) << "it was to be cancelled with the dead one";
  EXPECT_EQ(state_of(b), JobState::kWaiting);
  reopen();
  EXPECT_EQ(state_of(b), JobState::kWaiting);
  expect_sound();
}

TEST_F(LedgerRelations, ThatAreAddedAndEndWhileASnapshotIsWrittenAreRight) {
  const std::vector<JobId> firsts = enqueue(std::vector<Job>(200, Job{.kind = "first"}));
  std::vector<JobId> seconds;
  for (const JobId& id : firsts) seconds.push_back(enqueue(after({id})));
  const std::vector<Lease> leases = step();
  ASSERT_EQ(leases.size(), 200u);
  std::size_t settled = 0;
  for (int round = 0; round < 400 && settled < 150; ++round) {
    enqueue(Job{.kind = "filler", .queue = "filler", .body = std::string(1000, 'x')});
    ASSERT_TRUE(ledger_->tidy());
    if (!ledger_->is_writing_snapshot()) continue;
    for (const std::size_t end = settled + 15; settled < end; ++settled) {
      settle(leases[settled]);
      if (settled % 2 == 0) seconds.push_back(enqueue(after({firsts[199], seconds[199 - settled / 10]})));
    }
  }
  ASSERT_EQ(settled, 150u);
  reopen();
  for (std::size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(state_of(seconds[i]), i < 150 ? JobState::kReady : JobState::kWaiting) << i;
  }
  for (std::size_t i = 200; i < seconds.size(); ++i) EXPECT_EQ(ledger_->find(seconds[i]).value().waits_for, 2u);
  expect_sound();
}

TEST_F(LedgerRelations, ThatAreTheFirstWhileASnapshotIsWrittenAreNotInIt) {
  const JobId first = enqueue(Job{.kind = "first"});
  const Lease lease = step().at(0);
  for (int round = 0; round < 400 && !ledger_->is_writing_snapshot(); ++round) {
    enqueue(Job{.kind = "filler", .queue = "filler", .body = std::string(1000, 'x')});
    ASSERT_TRUE(ledger_->tidy());
  }
  ASSERT_TRUE(ledger_->is_writing_snapshot());
  const JobId second = enqueue(after({first}));
  ASSERT_TRUE(ledger_->begin());
  ASSERT_TRUE(ledger_->save_step({first, lease.token}, {"one", "result"}));
  ASSERT_TRUE(ledger_->commit());
  while (ledger_->is_writing_snapshot()) ASSERT_TRUE(ledger_->tidy());
  reopen();
  EXPECT_EQ(ledger_->find(second).value().waits_for, 1u);
  EXPECT_EQ(ledger_->find(first).value().steps.size(), 1u);
  settle(lease);
  EXPECT_EQ(state_of(second), JobState::kReady);
  expect_sound();
}

TEST_F(LedgerRelations, OfOneJobThatManyWaitForEndInPieces) {
  const JobId first = enqueue(Job{.kind = "first"});
  const std::vector<JobId> others = enqueue(std::vector<Job>(1000, after({first})));
  const std::vector<Lease> leases = step();
  ASSERT_EQ(leases.size(), 1u);
  settle(leases[0]);
  EXPECT_TRUE(ledger_->is_behind());
  EXPECT_EQ(state_of(others.back()), JobState::kWaiting);
  std::size_t granted = 0;
  int steps = 0;
  for (; granted < 1000 && steps < 100; ++steps) granted += step().size();
  EXPECT_EQ(granted, 1000u);
  EXPECT_GE(steps, 10);
  expect_sound();
}

TEST_F(LedgerRelations, ThatEndedInTheJournalOnlyHaveEndedAfterARestart) {
  const JobId first = enqueue(Job{.kind = "first"});
  const std::vector<JobId> others = enqueue(std::vector<Job>(1000, after({first})));
  settle(step().at(0));
  reopen();  // Before most of them were told.
  for (const JobId& id : others) ASSERT_EQ(state_of(id), JobState::kReady);
  expect_sound();
}

TEST_F(LedgerRelations, OfCancelledJobsAreCancelledAfterARestartToo) {
  const JobId first = enqueue(Job{.kind = "first"});
  const std::vector<JobId> others = enqueue(std::vector<Job>(3000, after({first})));
  const JobId last = enqueue(after({others[2999]}));
  ASSERT_TRUE(ledger_->begin());
  ASSERT_TRUE(ledger_->cancel({first}).at(0));
  ASSERT_TRUE(ledger_->commit());
  reopen();
  for (int i = 0; i < 200; ++i) step();
  EXPECT_EQ(ledger_->state().jobs(), 0u);
  EXPECT_FALSE(ledger_->find(last));
  EXPECT_TRUE(ledger_->state().relations().empty());
  EXPECT_EQ(ledger_->audit().details.at("cancelled"), 3002u);
  expect_sound();
}

TEST_F(LedgerRelations, TakeNoMemoryOnceTheirJobsAreForgotten) {
  for (int round = 0; round < 3; ++round) {
    const JobId first = enqueue(Job{.kind = "first"});
    enqueue(after({first}));
    settle(step().at(0));
    settle(step().at(0));
  }
  EXPECT_TRUE(ledger_->state().relations().empty());
}

TEST_F(LedgerRelations, StepsOfARunningJobAreInASnapshot) {
  const JobId id = enqueue(Job{.kind = "pay"});
  const Lease lease = step().at(0);
  ASSERT_TRUE(ledger_->begin());
  ASSERT_TRUE(ledger_->save_step({id, lease.token}, {"charge", "receipt"}));
  ASSERT_TRUE(ledger_->commit());
  snapshot();
  reopen();
  EXPECT_EQ(ledger_->find(id).value().steps, (std::vector<Step>{{"charge", "receipt"}}));
  settle(lease);
  EXPECT_TRUE(ledger_->state().steps().empty());
}

TEST_F(LedgerRelations, AnEffectWaitsForTheJobThatHoldsTheKeyOfTheEffectBeforeIt) {
  const JobId holder = enqueue(Job{.kind = "step", .queue = "later", .delay = Milliseconds(3'600'000), .unique_key = "key"});
  enqueue(Job{.kind = "step"});
  const std::vector<Lease> leases = step();
  ASSERT_EQ(leases.size(), 1u);
  Job first{.id = JobId({1}), .kind = "step", .unique_key = "key"};
  Job second = after({first.id});
  second.id = JobId({2});
  ASSERT_TRUE(ledger_->begin());
  const LeaseRef lease{leases[0].job.id, leases[0].token};
  ASSERT_TRUE(ledger_->settle(SettleBatch::of({{.lease = lease, .outcome = Done{}, .effects = {first, second}}}, {})).at(0));
  ASSERT_TRUE(ledger_->commit());
  EXPECT_TRUE(step().empty());
  EXPECT_EQ(ledger_->find(second.id).value().job.after, std::vector<JobId>{holder});
  EXPECT_EQ(state_of(second.id), JobState::kWaiting);
}

}  // namespace
}  // namespace bide::engine
