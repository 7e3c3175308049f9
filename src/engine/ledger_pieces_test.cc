// What concerns many jobs is done in pieces, and everything else goes on in between.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/ledger_fixture.h"

namespace bide::engine {
namespace {

class Pieces : public LedgerFixture {
 protected:
  static constexpr std::size_t kPiece = 100;
  static constexpr std::size_t kMany = 2000;

  void SetUp() override {
    EngineOptions options;
    options.piece = kPiece;
    open_ledger(std::move(options));
  }

  void subscribe(int credit) {
    ledger_->subscribe(1, {.credit = credit, .lease = Milliseconds(60'000)}, [](const std::vector<Lease>&) {});
  }
  std::vector<Lease> step() {
    const std::uint64_t before = ledger_->state().handled();
    EXPECT_TRUE(ledger_->begin());
    // A walk stops between two runs of a list, and a task may be under way beside what has come due.
    EXPECT_LE(ledger_->state().handled() - before, 2 * (kPiece + RunList::kMostInARun));
    return end_step();
  }
  std::vector<JobId> enqueue(std::size_t many, const Job& job) {
    EXPECT_TRUE(ledger_->begin());
    std::vector<JobId> ids;
    for (const auto& result : ledger_->enqueue(EnqueueBatch::of(std::vector<Job>(many, job), {}))) ids.push_back(result->id);
    EXPECT_TRUE(ledger_->commit());
    return ids;
  }
  QueueInfo queue() { return ledger_->queues().at(0); }
  bool has_work() { return ledger_->next_wake_us() && *ledger_->next_wake_us() <= clock_.now().elapsed_us; }
};

TEST_F(Pieces, JobsDueAtTheSameMillisecondBecomeReadyInPieces) {
  const std::vector<JobId> ids = enqueue(kMany, {.kind = "k", .delay = Milliseconds(70'000)});
  clock_.advance(70'000);
  step();
  EXPECT_TRUE(ledger_->is_behind());
  EXPECT_LE(queue().ready, kPiece);
  // By its due time it is ready, whether it has been moved or not.
  EXPECT_EQ(ledger_->find(ids.back())->state, JobState::kReady);
  EXPECT_TRUE(has_work());
  while (ledger_->is_behind()) step();
  EXPECT_EQ(queue().ready, kMany);
  subscribe(static_cast<int>(kMany));
  std::vector<JobId> granted;
  while (granted.size() < kMany) {
    for (const Lease& lease : step()) granted.push_back(lease.job.id);
  }
  EXPECT_EQ(granted, ids);
}

TEST_F(Pieces, AJobThatIsDueNowDoesNotWaitForThoseThatAreBeingMoved) {
  enqueue(kMany, {.kind = "k", .delay = Milliseconds(70'000)});
  clock_.advance(70'000);
  step();
  ASSERT_TRUE(ledger_->is_behind());
  const JobId urgent = enqueue(1, {.kind = "k", .priority = 10}).at(0);
  subscribe(1);
  EXPECT_EQ(step().at(0).job.id, urgent);
  EXPECT_TRUE(ledger_->is_behind());
}

TEST_F(Pieces, AStepOfTheWallClockTouchesNoJob) {
  const JobId span = enqueue(kMany, {.kind = "k", .delay = Milliseconds(70'000)}).at(0);
  const Time due = ledger_->find(span)->due;
  step();
  const std::uint64_t before = ledger_->state().handled();
  clock_.step_wall(std::chrono::hours(-1));
  step();
  EXPECT_EQ(ledger_->state().handled(), before);
  EXPECT_EQ(ledger_->find(span)->due, due - Milliseconds(3'600'000));
  clock_.advance(69'999);
  subscribe(1);
  EXPECT_TRUE(step().empty());
  clock_.advance(1);
  std::size_t granted = 0;
  do granted += step().size();
  while (ledger_->is_behind());
  EXPECT_EQ(granted, 1u);
  EXPECT_TRUE(ledger_->audit().ok());
}

TEST_F(Pieces, JobsDueByTheWallClockWaitAgainWhenItIsSetBack) {
  Job job{.kind = "k"};
  job.due = Time(Milliseconds(clock_.now().wall_us / 1000 + 70'000));
  const std::vector<JobId> ids = enqueue(kMany, job);
  clock_.advance(70'000);
  do step();
  while (ledger_->is_behind());
  EXPECT_EQ(ledger_->find(ids[0])->state, JobState::kReady);
  clock_.step_wall(std::chrono::hours(-1));
  step();
  EXPECT_EQ(ledger_->find(ids[0])->state, JobState::kScheduled);
  subscribe(static_cast<int>(kMany));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(step().empty());
  clock_.advance(3'599'999);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(step().empty());
  clock_.advance(1);
  std::size_t granted = 0;
  for (int i = 0; i < 100; ++i) granted += step().size();
  EXPECT_EQ(granted, kMany);
  EXPECT_TRUE(ledger_->audit().ok());
}

TEST_F(Pieces, AnAuditTellsHowItWasWhenItBeganWhateverHappensMeanwhile) {
  std::vector<JobId> ids = enqueue(kMany, {.kind = "k"});
  enqueue(kMany, {.kind = "k", .delay = Milliseconds(70'000)});
  subscribe(10);
  std::optional<Result<AuditReport>> report;
  ledger_->audit([&](Result<AuditReport> answer) { report.emplace(std::move(answer)); });
  int steps = 0;
  std::vector<Lease> leases;
  for (; !report; ++steps) {
    ASSERT_LT(steps, 1000);
    for (Lease& lease : step()) leases.push_back(std::move(lease));
    std::vector<Settlement> settlements;
    for (const Lease& lease : leases) settlements.push_back({.lease = {lease.job.id, lease.token}, .outcome = Done{}, .effects = {}});
    leases.clear();
    for (const Status& settled : ledger_->settle(SettleBatch::of(std::move(settlements), {}))) EXPECT_TRUE(settled);
    EXPECT_TRUE(ledger_->cancel({ids.back()}).at(0));
    ids.pop_back();
    enqueue(3, {.kind = "k", .delay = Milliseconds(steps % 50)});
    clock_.advance(steps == 10 ? 70'000 : 7);
  }
  EXPECT_GT(steps, 20);
  ASSERT_TRUE(*report);
  EXPECT_TRUE((*report)->ok()) << (*report)->problems.at(0);
  EXPECT_EQ((*report)->accepted, 2 * kMany);
  EXPECT_EQ((*report)->live, 2 * kMany);
  EXPECT_TRUE(ledger_->audit().ok());
}

TEST_F(Pieces, WhatWasRemovedIsClearedAwayInPieces) {
  enqueue(kMany, {.kind = "k", .delay = Milliseconds(70'000)});
  const Slot slots = ledger_->state().slots();
  std::optional<std::uint64_t> purged;
  ledger_->purge("default", [&](Result<std::uint64_t> answer) { purged = *answer; });
  while (!purged) step();
  EXPECT_EQ(*purged, kMany);
  for (int i = 0; i < 1000 && has_work(); ++i) step();
  EXPECT_FALSE(has_work());
  // Most of their places are free again.
  enqueue(kMany / 2, {.kind = "k", .delay = Milliseconds(70'000)});
  EXPECT_EQ(ledger_->state().slots(), slots);
  EXPECT_TRUE(ledger_->audit().ok());
}

TEST_F(Pieces, ManyLeasesThatRunOutAtOnceEndInPieces) {
  constexpr std::size_t kLeases = 3000;
  Job job{.kind = "k"};
  job.retry = RetryPolicy::none();
  enqueue(kLeases, job);
  subscribe(static_cast<int>(kLeases));
  for (std::size_t granted = 0; granted < kLeases;) granted += step().size();
  clock_.advance(60'000);
  step();
  EXPECT_GE(queue().running, kLeases / 2);
  EXPECT_TRUE(has_work());
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(queue().running, 0u);
}

TEST_F(Pieces, ExpiredJobsArePassedOverInPieces) {
  constexpr std::size_t kExpired = 6000;
  Job job{.kind = "k"};
  job.expires = Time(Milliseconds(clock_.now().wall_us / 1000 + 1000));
  enqueue(kExpired, job);
  clock_.advance(2000);
  const JobId fresh = enqueue(1, {.kind = "k"}).at(0);
  subscribe(10);
  EXPECT_TRUE(step().empty());
  EXPECT_GE(queue().ready, kExpired / 4);
  EXPECT_TRUE(has_work());
  EXPECT_EQ(step().at(0).job.id, fresh);
  EXPECT_EQ(queue().dead, kExpired);
}

}  // namespace
}  // namespace bide::engine
