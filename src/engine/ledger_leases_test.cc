// Leases over the end of the process that gave them.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/ledger_fixture.h"

namespace bide::engine {
namespace {

using support::Survival;

class LastingLeases : public LedgerFixture {
 protected:
  void SetUp() override { open(); }

  void open() {
    open_ledger({});
    ledger_->subscribe(
        ++last_subscription_,
        {.credit = 100, .lease = Milliseconds(kLeaseMs), .worker = "far away", .outlives_process = true},
        [](const std::vector<Lease>&) {});
  }
  // The process dies, or the whole machine.
  void crash(Survival unsynced = Survival::kEverything) {
    die(unsynced);
    open();
  }
  // What was granted in this step, when it is safe to hand it out.
  std::vector<Lease> step() {
    EXPECT_TRUE(ledger_->begin());
    return end_step();
  }
  Lease enqueue_and_lease(RetryPolicy retry = RetryPolicy::none(), Milliseconds time_limit = Job().time_limit) {
    EXPECT_TRUE(ledger_->begin());
    Job job{.kind = "work"};
    job.retry = retry;
    job.time_limit = time_limit;
    EXPECT_TRUE(ledger_->enqueue(EnqueueBatch::of({job}, {})).at(0));
    return end_step().at(0);
  }
  void extend(const Lease& lease) {
    ASSERT_TRUE(ledger_->begin());
    EXPECT_FALSE(ledger_->extend({{lease.job.id, lease.token}}).at(0).lost);
    EXPECT_TRUE(end_step().empty());
  }
  Status settle(const Lease& lease, Outcome outcome) {
    EXPECT_TRUE(ledger_->begin());
    Settlement settlement{.lease = {lease.job.id, lease.token}, .outcome = std::move(outcome)};
    Status settled = ledger_->settle(SettleBatch::of({std::move(settlement)}, {})).at(0);
    EXPECT_TRUE(ledger_->commit());
    return settled;
  }
  // A job that failed and died, was replayed with nothing counted, and runs for the first time since.
  Lease replayed_and_leased() {
    const Lease first = enqueue_and_lease();
    EXPECT_TRUE(settle(first, Dead{.error = "the first life"}));
    EXPECT_TRUE(ledger_->begin());
    EXPECT_TRUE(ledger_->replay({first.job.id}, {}).at(0));
    return end_step().at(0);
  }
  void save_body(const Lease& lease, const std::string& body) {
    ASSERT_TRUE(ledger_->begin());
    ASSERT_TRUE(ledger_->save_body({lease.job.id, lease.token}, body));
    ASSERT_TRUE(ledger_->commit());
  }
  // Its history is whole when it has failed once more.
  void expect_two_lives(const Lease& lease) {
    ASSERT_TRUE(settle(lease, Dead{.error = "the second life"}));
    const JobInfo info = find(lease);
    EXPECT_EQ(info.job.body, "saved");
    EXPECT_EQ(info.attempts, 1u);
    ASSERT_EQ(info.history.size(), 2u);
    EXPECT_EQ(info.history[0].text, "the first life");
    EXPECT_EQ(info.history[1].text, "the second life");
  }
  void advance(std::int64_t ms) { clock_.advance(Milliseconds(ms)); }
  JobInfo find(const Lease& lease) { return ledger_->find(lease.job.id).value(); }

  static constexpr std::int64_t kLeaseMs = 60'000;

  std::uint32_t last_subscription_ = 0;
};

TEST_F(LastingLeases, KeepTheirLengthOverARestart) {
  const Lease lease = enqueue_and_lease();
  advance(30'000);
  crash();
  advance(kLeaseMs - 1000);
  EXPECT_TRUE(step().empty());
  EXPECT_EQ(find(lease).state, JobState::kRunning);
  extend(lease);
  advance(kLeaseMs - 1000);
  EXPECT_TRUE(step().empty());
  EXPECT_EQ(find(lease).state, JobState::kRunning);
}

TEST_F(LastingLeases, HaveTheRestOfTheirTimeLimitHoweverLongTheStoreWasClosed) {
  const Lease lease = enqueue_and_lease(RetryPolicy::none(), Milliseconds(40'000));
  advance(15'000);
  ASSERT_TRUE(ledger_->begin());
  ASSERT_TRUE(ledger_->enqueue(EnqueueBatch::of({Job{.kind = "work", .queue = "another"}}, {})).at(0));
  end_step();
  disk_.halt();
  ledger_.reset();
  disk_.crash({.unsynced = Survival::kEverything});
  advance(3'600'000);
  open();
  advance(24'000);
  step();
  EXPECT_EQ(find(lease).state, JobState::kRunning);
  extend(lease);
  advance(1'100);
  step();
  EXPECT_EQ(find(lease).state, JobState::kDead);
  EXPECT_EQ(find(lease).counts.timed_out, 1u);
}

TEST_F(LastingLeases, ABodyThatIsSavedKeepsThePastOfAReplayedJob) {
  const Lease lease = replayed_and_leased();
  save_body(lease, "saved");
  expect_two_lives(lease);
}

TEST_F(LastingLeases, ABodyThatIsSavedKeepsThePastOverACrash) {
  const Lease lease = replayed_and_leased();
  save_body(lease, "saved");
  const std::int64_t last_time_ms = ledger_->state().last_time_ms();
  crash();
  EXPECT_EQ(ledger_->state().last_time_ms(), last_time_ms);
  expect_two_lives(lease);
}

TEST_F(LastingLeases, ASettleOfAJobThatCannotBeReadQuarantinesIt) {
  const Lease lease = replayed_and_leased();
  crash();
  const auto at = ledger_->journal().place_of(ledger_->state()[ledger_->state().find(lease.job.id)].details().address);
  disk_.flip_bit(at.path, at.offset + 20, 3);
  // What was read ahead is forgotten when something else is read.
  std::vector<JobId> others;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(ledger_->begin());
    Job other{.kind = "work", .queue = "another", .body = std::string(2 << 20, 'x')};
    others.push_back(ledger_->enqueue(EnqueueBatch::of({other}, {})).at(0)->id);
    end_step();
  }
  ASSERT_TRUE(ledger_->find(others[0]));
  const Status settled = settle(lease, RetryAt{.error = "once more"});
  ASSERT_FALSE(settled);
  EXPECT_EQ(settled.error().code, ErrorCode::kDamaged);
  const JobInfo info = find(lease);
  EXPECT_EQ(info.state, JobState::kDead);
  EXPECT_EQ(info.dead_reason, DeadReason::kDamaged);
  EXPECT_NE(info.note.find(at.path + " offset "), std::string::npos) << info.note;
  EXPECT_EQ(settle(lease, Done{}).error().code, ErrorCode::kLeaseLost);
}

TEST_F(LastingLeases, KeepTheirLengthInASnapshotToo) {
  const Lease lease = enqueue_and_lease();
  // Enough to be worth a snapshot, so that the grant is not read from the journal again.
  ASSERT_TRUE(ledger_->begin());
  ledger_->unsubscribe(last_subscription_);
  const std::string body(1 << 20, 'x');
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(ledger_->enqueue(EnqueueBatch::of({Job{.kind = "large", .body = body}}, {})).at(0));
  end_step();
  while (ledger_->tidy().value()) ledger_->take_garbage()();
  bool has_snapshot = false;
  for (const std::string& file : disk_.files()) has_snapshot |= file.find("/snapshot-") != std::string::npos;
  ASSERT_TRUE(has_snapshot);
  crash();
  ledger_->unsubscribe(last_subscription_);
  advance(kLeaseMs - 1000);
  step();
  EXPECT_EQ(find(lease).state, JobState::kRunning);
}

TEST_F(LastingLeases, AreNotForgottenByALossOfPower) {
  const Lease lease = enqueue_and_lease();
  crash(Survival::kNothing);
  EXPECT_TRUE(step().empty());
  const JobInfo info = find(lease);
  EXPECT_EQ(info.state, JobState::kRunning);
  EXPECT_EQ(info.attempts, 1u);
}

TEST_F(LastingLeases, ThatNobodyWasHeardOfSinceTheCrashAreNotCharged) {
  const Lease lease = enqueue_and_lease();
  crash();
  advance(kLeaseMs);
  const std::vector<Lease> again = step();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].job.id, lease.job.id);
  EXPECT_EQ(again[0].counts, AttemptCounts{});
  EXPECT_EQ(again[0].attempt, 2u) << "a number that a worker may have seen is not used again";
  EXPECT_NE(find(lease).note.find("not charged"), std::string::npos);
}

TEST_F(LastingLeases, ThatReachedTheirWorkerAreCharged) {
  const Lease lease = enqueue_and_lease();
  ASSERT_TRUE(ledger_->begin());
  ASSERT_TRUE(ledger_->mark_delivered({{lease.job.id, lease.token}}));
  end_step();
  crash();
  advance(kLeaseMs);
  EXPECT_TRUE(step().empty());
  EXPECT_EQ(find(lease).dead_reason, DeadReason::kExhausted);
  EXPECT_EQ(find(lease).counts, (AttemptCounts{.lost = 1}));
}

TEST_F(LastingLeases, ThatWereExtendedBeforeTheCrashAreCharged) {
  const Lease lease = enqueue_and_lease();
  extend(lease);
  crash();
  advance(kLeaseMs);
  EXPECT_TRUE(step().empty());
  EXPECT_EQ(find(lease).dead_reason, DeadReason::kExhausted);
}

TEST_F(LastingLeases, ThatRunOutWithoutACrashAreCharged) {
  const Lease lease = enqueue_and_lease();
  advance(kLeaseMs);
  EXPECT_TRUE(step().empty());
  EXPECT_EQ(find(lease).dead_reason, DeadReason::kExhausted);
}

TEST_F(LastingLeases, OfAJobThatTakesItsWorkerAndTheBrokerAlongEachTimeAreNotGivenForEver) {
  Lease lease = enqueue_and_lease();
  for (int i = 0; i < 3; ++i) {
    crash();
    advance(kLeaseMs);
    lease = step().at(0);
  }
  crash();
  advance(kLeaseMs);
  EXPECT_TRUE(step().empty());
  EXPECT_EQ(find(lease).dead_reason, DeadReason::kPoison);
  EXPECT_TRUE(ledger_->audit().ok());
}

TEST_F(LastingLeases, ThatEndOtherwiseInBetweenBeginTheCountAnew) {
  Lease lease = enqueue_and_lease(RetryPolicy::fixed(Milliseconds(1), 100));
  for (int i = 0; i < 6; ++i) {
    crash();
    advance(kLeaseMs);
    lease = step().at(0);
    if (i % 3 != 2) continue;
    advance(kLeaseMs);  // Lost without a crash.
    lease = step().at(0);
  }
  EXPECT_EQ(lease.counts, (AttemptCounts{.lost = 2}));
}

TEST_F(LastingLeases, AreGivenUpToTheLimitOfDeliveriesWhateverBecomesOfThem) {
  ASSERT_TRUE(ledger_->begin());
  std::vector<Job> jobs(10, Job{.kind = "work"});
  ledger_->set_delivery_limit(last_subscription_, 3);
  for (const auto& enqueued : ledger_->enqueue(EnqueueBatch::of(std::move(jobs), {}))) ASSERT_TRUE(enqueued);
  EXPECT_EQ(end_step().size(), 3u);
  // They run out, and that makes no room for others.
  advance(kLeaseMs);
  EXPECT_TRUE(step().empty());
  EXPECT_EQ(ledger_->state().leases().size(), 0u);
  ASSERT_TRUE(ledger_->begin());
  ledger_->set_delivery_limit(last_subscription_, 5);
  EXPECT_EQ(end_step().size(), 2u);
  ASSERT_TRUE(ledger_->begin());
  ledger_->set_delivery_limit(last_subscription_, 2);
  EXPECT_TRUE(end_step().empty());
}

// A batch of the journal has an end, and each crash takes the history of its job along.
TEST(LeasesOfAProcess, AreChargedInSeveralBatchesIfTheyAreMany) {
  support::SimulatedDisk disk(1);
  support::VirtualClock clock;
  support::SeededRandom random(1);
  EngineOptions options;
  options.directory = "/store";
  options.disk = &disk;
  options.clock = &clock;
  options.random = &random;
  options.call_bytes = 1;
  constexpr std::size_t kJobs = 10;
  for (const bool crashes : {true, false}) {
    auto ledger = Ledger::open(options);
    ASSERT_TRUE(ledger) << ledger.error().message;
    (*ledger)->subscribe(1, {.credit = 100}, [](const std::vector<Lease>&) {});
    clock.advance(60 * 60 * 1000);
    ASSERT_TRUE((*ledger)->begin());
    if (crashes) (void)(*ledger)->enqueue(EnqueueBatch::of(std::vector<Job>(kJobs, Job{.kind = "work"}), {}));
    ASSERT_TRUE((*ledger)->grant());
    ASSERT_TRUE((*ledger)->commit());
    ASSERT_EQ((*ledger)->state().leases().size(), kJobs);
    if (crashes) disk.halt();
    ledger->reset();
    if (crashes) disk.crash({.unsynced = Survival::kEverything});
    const std::uint64_t writes = disk.operation_count(support::Operation::kWrite);
    ledger = Ledger::open(options);
    ASSERT_TRUE(ledger) << ledger.error().message;
    EXPECT_EQ((*ledger)->open_report().crashed_attempts, crashes ? kJobs : 0);
    EXPECT_GT(disk.operation_count(support::Operation::kWrite), writes + (crashes ? kJobs : 0));
    EXPECT_TRUE((*ledger)->audit().ok());
    ledger->reset();
  }
}

}  // namespace
}  // namespace bide::engine
