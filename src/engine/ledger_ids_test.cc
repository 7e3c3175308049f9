// The same id enqueued again, the same settle sent again: long after the job is done and forgotten.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/ledger_fixture.h"

namespace bide::engine {
namespace {

using support::Survival;

JobId make_id(std::uint64_t number) {
  std::array<std::uint8_t, JobId::kSize> bytes{};
  for (std::size_t i = 0; i < 8; ++i) bytes[15 - i] = static_cast<std::uint8_t>((number + 1) >> (8 * i));
  return JobId(bytes);
}

class RememberedIds : public LedgerFixture {
 protected:
  void SetUp() override { open(); }

  void open() {
    EngineOptions options;
    options.done_limit = 10;
    options.segment_bytes = 64 << 10;
    options.snapshot_bytes = 64 << 10;
    options.reserve_bytes = 64 << 10;
    options.on_damage = [this](const Damage& damage) { damage_.push_back(damage); };
    open_ledger(std::move(options));
    ledger_->subscribe(1, {.credit = 1000, .lease = Milliseconds(60'000)}, [](const std::vector<Lease>&) {});
  }
  void reopen() {
    ledger_.reset();
    open();
  }
  void crash(Survival unsynced) {
    die(unsynced);
    open();
  }
  std::vector<Lease> finish_step() {
    std::vector<Lease> leases = end_step();
    ledger_->take_garbage()();
    return leases;
  }
  Result<Enqueued> enqueue(const JobId& id) {
    EXPECT_TRUE(ledger_->begin());
    auto results = ledger_->enqueue(EnqueueBatch::of({Job{.id = id, .kind = "work"}}, {}));
    for (Lease& lease : finish_step()) leases_.push_back(std::move(lease));
    return results.at(0);
  }
  Status settle(const Lease& lease, Outcome outcome = Done{}) {
    EXPECT_TRUE(ledger_->begin());
    std::vector<Settlement> settlements(1);
    settlements[0].lease = {lease.job.id, lease.token};
    settlements[0].outcome = std::move(outcome);
    auto statuses = ledger_->settle(SettleBatch::of(std::move(settlements), {}));
    for (Lease& more : finish_step()) leases_.push_back(std::move(more));
    return statuses.at(0);
  }
  // Enqueued with this id, leased and done.
  Lease run(const JobId& id) {
    EXPECT_TRUE(enqueue(id));
    Lease lease = leases_.back();
    leases_.pop_back();
    EXPECT_TRUE(settle(lease));
    return lease;
  }
  void load(int jobs) {
    for (int i = 0; i < jobs; ++i) run(JobId());
  }
  void tidy() {
    for (bool more = true; more;) {
      const auto tidied = ledger_->tidy();
      ASSERT_TRUE(tidied) << tidied.error().message;
      more = *tidied;
    }
    ledger_->take_garbage()();
  }
  bool exists(const JobId& id) {
    const auto again = enqueue(id);
    EXPECT_TRUE(again) << again.error().message;
    return again->existed;
  }

  std::vector<Lease> leases_;
  std::vector<Damage> damage_;
};

TEST_F(RememberedIds, AnIdIsTakenForTheStatedTimeWhateverElseIsDone) {
  const Lease lease = run(make_id(1));
  load(500);
  ASSERT_FALSE(ledger_->find(make_id(1))) << "the job itself is forgotten";
  EXPECT_TRUE(exists(make_id(1)));
  EXPECT_TRUE(leases_.empty());
  EXPECT_FALSE(exists(make_id(2)));
  EXPECT_EQ(ledger_->audit().problems, std::vector<std::string>());

  clock_.advance(std::chrono::minutes(59));
  EXPECT_TRUE(exists(make_id(1)));
  clock_.advance(std::chrono::minutes(30));
  EXPECT_FALSE(exists(make_id(1))) << "an hour is over";
}

TEST_F(RememberedIds, TheSettleThatFinishedAJobSucceedsAgainAndOthersDoNot) {
  const Lease first = run(make_id(1));
  ASSERT_TRUE(enqueue(make_id(2)));
  const Lease early = leases_.back();
  ASSERT_TRUE(settle(early, RetryAt{.error = "again"}));
  const Lease late = leases_.back();
  ASSERT_NE(late.token, early.token);
  ASSERT_TRUE(settle(late));
  load(500);
  for (int restarts = 0; restarts < 3; ++restarts) {
    EXPECT_TRUE(settle(first));
    EXPECT_TRUE(settle(late));
    EXPECT_FALSE(settle(early)) << "of an attempt that did not finish the job";
    EXPECT_FALSE(settle(late, RetryAt{})) << "it says something else";
    tidy();
    reopen();
  }
}

TEST_F(RememberedIds, IdsOutliveTheJournalThatNamedThem) {
  for (std::uint64_t i = 0; i < 100; ++i) run(make_id(i));
  load(3000);
  tidy();
  const std::vector<std::string> files = disk_.files();
  ASSERT_EQ(std::count(files.begin(), files.end(), "/store/journal/0000000000000000.seg"), 0) << "it is compacted";
  for (const Survival survival : {Survival::kEverything, Survival::kNothing, Survival::kChance}) {
    crash(survival);
    leases_.clear();
    for (std::uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(exists(make_id(i))) << i;
    EXPECT_TRUE(leases_.empty());
  }
  EXPECT_TRUE(damage_.empty());
}

TEST_F(RememberedIds, AnEnqueueThatWasLostWithThePowerIsAcceptedWhenItComesAgain) {
  // Enqueued, run and done, and nothing of it confirmed to anybody when the power goes.
  ASSERT_TRUE(ledger_->begin());
  for (std::uint64_t i = 0; i < 5000; ++i) {
    ASSERT_TRUE(ledger_->enqueue(EnqueueBatch::of({Job{.id = make_id(i), .kind = "work"}}, {})).at(0));
  }
  for (int granted = 0; granted < 5000;) {
    auto deliveries = ledger_->grant();
    ASSERT_TRUE(deliveries);
    std::vector<Settlement> settlements;
    for (const Delivery& delivery : *deliveries) {
      for (const Lease& lease : delivery.leases) {
        settlements.emplace_back();
        settlements.back().lease = {lease.job.id, lease.token};
        settlements.back().outcome = Done{};
        ++granted;
      }
    }
    for (const Status& status : ledger_->settle(SettleBatch::of(std::move(settlements), {}))) ASSERT_TRUE(status);
  }
  ASSERT_TRUE(ledger_->write());
  ASSERT_TRUE(ledger_->begin());
  crash(Survival::kNothing);
  for (std::uint64_t i = 0; i < 5000; i += 100) EXPECT_FALSE(exists(make_id(i))) << i;
}

TEST_F(RememberedIds, AStoreOfAnOlderBideIsOpenedAndItsDoneJobsAreRememberedFromThenOn) {
  for (std::uint64_t i = 0; i < 10; ++i) run(make_id(i));
  tidy();
  ledger_.reset();
  for (const std::string& file : disk_.files()) {
    if (!file.starts_with("/store/ids/")) continue;
    ASSERT_TRUE(disk_.remove(file));
  }
  open();
  load(3000);
  tidy();
  reopen();
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_TRUE(exists(make_id(i))) << i;
  EXPECT_TRUE(damage_.empty());
}

TEST_F(RememberedIds, ADamagedFileIsNamedAndEverythingElseGoesOn) {
  for (std::uint64_t i = 0; i < 100; ++i) run(make_id(i));
  load(3000);
  tidy();
  ledger_.reset();
  for (const std::string& path : disk_.files()) {
    if (!path.starts_with("/store/ids/")) continue;
    auto file = disk_.open(path, platform::OpenMode::kReadWrite);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(600, "damage"));
    break;
  }
  open();
  ASSERT_EQ(damage_.size(), 1u);
  EXPECT_NE(damage_[0].text.find("/store/ids/"), std::string::npos);
  const AuditReport report = ledger_->audit();
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_EQ(report.problems[0], damage_[0].text);
  EXPECT_FALSE(exists(make_id(200)));
  ASSERT_EQ(leases_.size(), 1u);
  EXPECT_TRUE(settle(leases_[0]));
}

TEST_F(RememberedIds, IdsThatTheStoreMadeTakeNoRoom) {
  load(3000);
  EXPECT_EQ(ledger_->id_use().ids, 0u);
  for (std::uint64_t i = 0; i < 100; ++i) run(make_id(i));
  EXPECT_EQ(ledger_->id_use().ids, 100u);
}

}  // namespace
}  // namespace bide::engine
