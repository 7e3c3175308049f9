// A full disk: what is refused, what still works, and that the store opens.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/ledger_fixture.h"

namespace bide::engine {
namespace {

class FullDisk : public LedgerFixture {
 protected:
  void SetUp() override { open(); }

  void open() {
    EngineOptions options;
    options.reserve_bytes = 256 << 10;
    open_ledger(std::move(options));
    ledger_->subscribe(++last_subscription_, {.credit = 100}, [](const std::vector<Lease>&) {});
  }
  void kill() {
    die(support::Survival::kEverything);
  }
  // Also what the journal has taken for itself, as if power loss had taken it back.
  void fill() {
    for (const std::string& path : disk_.files()) {
      if (path.ends_with(".seg")) disk_.truncate(path, disk_.contents(path).size());
    }
    disk_.set_capacity(disk_.used_bytes());
  }
  void free() {
    disk_.set_capacity(UINT64_MAX);
    clock_.advance(kRoomRetryMs);
    step();
    ASSERT_TRUE(ledger_->tidy());
  }

  std::vector<Lease> step() {
    EXPECT_TRUE(ledger_->begin());
    return end_step();
  }
  Status enqueue(std::size_t bytes = 100) {
    EXPECT_TRUE(ledger_->begin());
    auto results = ledger_->enqueue(EnqueueBatch::of({Job{.kind = "work", .body = std::string(bytes, 'b')}}, {}));
    return results.at(0) ? Status() : results.at(0).error();
  }
  // The first job that is refused ends it.
  Error enqueue_until_refused() {
    disk_.set_capacity(disk_.used_bytes() + (1 << 20));
    for (;;) {
      if (Status done = enqueue(20'000); !done) return done.error();
      EXPECT_TRUE(ledger_->commit());
    }
  }
  Lease lease_one() {
    EXPECT_TRUE(enqueue());
    return step().at(0);
  }
  std::uint32_t crashes_of(const JobId& id) { return ledger_->find(id).value().counts.crashed; }

  std::uint32_t last_subscription_ = 0;
};

TEST_F(FullDisk, AStoreWhoseProcessWasKilledOpensFromItsReserve) {
  const Lease lease = lease_one();
  kill();
  fill();
  open();
  EXPECT_EQ(crashes_of(lease.job.id), 1u);
  EXPECT_EQ(ledger_->open_report().crashed_attempts, 1u);
}

TEST_F(FullDisk, WithoutAReserveAStoreOpensAllTheSameAndChargesTheCrashWhenThereIsRoom) {
  const Lease lease = lease_one();
  kill();
  ASSERT_TRUE(disk_.remove("/store/reserve"));
  fill();
  open();
  EXPECT_EQ(crashes_of(lease.job.id), 0u);
  EXPECT_EQ(ledger_->find(lease.job.id)->state, JobState::kRunning);
  EXPECT_TRUE(ledger_->extend({{lease.job.id, lease.token}}).at(0).lost);
  EXPECT_EQ(enqueue().error().code, ErrorCode::kDiskFull);

  free();
  EXPECT_EQ(crashes_of(lease.job.id), 1u);
  EXPECT_NE(ledger_->find(lease.job.id)->state, JobState::kRunning);
  EXPECT_TRUE(ledger_->audit().ok());
  EXPECT_TRUE(enqueue());
}

TEST_F(FullDisk, WithoutAReserveACrashThatWasNotChargedIsNotForgivenByAnOrderlyEnd) {
  const Lease lease = lease_one();
  kill();
  ASSERT_TRUE(disk_.remove("/store/reserve"));
  fill();
  open();
  ledger_.reset();
  disk_.set_capacity(UINT64_MAX);
  open();
  EXPECT_EQ(crashes_of(lease.job.id), 1u);
}

// Simulation, seed 5009267: the saved body has the lease's token, as the body that a retry brings along has.
TEST_F(FullDisk, WithoutAReserveALeaseThatSavedABodyAndCrashedIsLost) {
  const Lease lease = lease_one();
  const LeaseRef lost{lease.job.id, lease.token};
  ASSERT_TRUE(ledger_->begin());
  ASSERT_TRUE(ledger_->save_body(lost, "saved"));
  ASSERT_TRUE(ledger_->commit());
  kill();
  ASSERT_TRUE(disk_.remove("/store/reserve"));
  fill();
  open();
  ASSERT_TRUE(ledger_->begin());
  const auto settled = ledger_->settle(SettleBatch::of({Settlement{.lease = lost, .outcome = RetryAt{.error = "late"}}}, {}));
  ASSERT_FALSE(settled.at(0));
  EXPECT_EQ(settled.at(0).error().code, ErrorCode::kLeaseLost);
}

TEST_F(FullDisk, AnOrderlyEndGivesLeasesBackFromTheReserve) {
  const Lease lease = lease_one();
  EXPECT_EQ(enqueue_until_refused().code, ErrorCode::kDiskFull);
  ledger_.reset();
  open();
  EXPECT_EQ(crashes_of(lease.job.id), 0u);
  EXPECT_EQ(ledger_->find(lease.job.id)->attempts, 0u);
}

TEST_F(FullDisk, WhereSpaceCannotBeAllocatedJobsAreRefusedAndLeasesSettled) {
  kill();
  disk_.refuse_allocate();
  open();
  const Lease lease = lease_one();
  EXPECT_EQ(enqueue_until_refused().code, ErrorCode::kDiskFull);
  ASSERT_TRUE(ledger_->begin());
  EXPECT_TRUE(ledger_->settle(SettleBatch::of({Settlement{.lease = {lease.job.id, lease.token}, .outcome = Done{}}}, {})).at(0));
  ASSERT_TRUE(ledger_->commit());
  EXPECT_EQ(ledger_->find(lease.job.id)->state, JobState::kDone);

  kill();
  open();
  EXPECT_EQ(ledger_->find(lease.job.id)->state, JobState::kDone);
  free();
  EXPECT_TRUE(enqueue());
}

}  // namespace
}  // namespace bide::engine
