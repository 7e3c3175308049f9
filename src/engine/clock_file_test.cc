// How much time has passed while the store was closed.

#include "engine/clock_file.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/ledger.h"
#include "support/seeded_random.h"
#include "support/simulated_disk.h"
#include "support/virtual_clock.h"

namespace bide::engine {
namespace {

constexpr std::int64_t kHourMs = 3'600'000;

class ClockOverARestart : public ::testing::Test {
 protected:
  void open() { open(disk_); }
  void open(support::SimulatedDisk& disk) {
    EngineOptions options;
    options.directory = "/store";
    options.disk = &disk;
    options.clock = &clock_;
    options.random = &random_;
    auto opened = Ledger::open(options);
    ASSERT_TRUE(opened) << opened.error().message;
    ledger_ = std::move(*opened);
  }

  // A job that is due in eight seconds; then the process ends, in order or not.
  void accept_and_close(bool in_order) {
    open();
    ASSERT_TRUE(ledger_->begin());
    id_ = ledger_->enqueue(EnqueueBatch::of({{.kind = "work", .delay = Milliseconds(8000)}}, {})).front().value().id;
    ASSERT_TRUE(ledger_->commit());
    if (!in_order) disk_.halt();
    ledger_.reset();
    if (!in_order) disk_.crash({.unsynced = support::Survival::kEverything});
  }

  std::int64_t due_in_ms() {
    return ledger_->find(id_).value().due.time_since_epoch().count() - ledger_->now_ms();
  }

  support::SimulatedDisk disk_{3};
  support::VirtualClock clock_;
  support::SeededRandom random_{3};
  std::unique_ptr<Ledger> ledger_;
  JobId id_;
};

TEST_F(ClockOverARestart, ADelayKeepsItsLengthWhenTheClockIsSetWhileTheStoreIsClosed) {
  for (const bool in_order : {true, false}) {
    for (const std::int64_t step_ms : {-kHourMs, kHourMs}) {
      accept_and_close(in_order);
      clock_.advance(3000);
      clock_.step_wall(step_ms);
      open();
      EXPECT_TRUE(ledger_->open_report().elapsed_known);
      EXPECT_LE(ledger_->now_ms() - clock_.now().wall_us / 1000, 1);  // Rounded up: never early.
      EXPECT_GE(ledger_->now_ms(), clock_.now().wall_us / 1000);
      EXPECT_EQ(due_in_ms(), 5000);
      // The same again: what was found out is written down.
      ledger_.reset();
      open();
      EXPECT_EQ(due_in_ms(), 5000);
      ledger_.reset();
    }
  }
}

TEST_F(ClockOverARestart, ADelayKeepsItsLengthWhenTheClockWasSetTwiceAndNothingOfItWritten) {
  open();
  ASSERT_TRUE(ledger_->begin());
  id_ = ledger_->enqueue(EnqueueBatch::of({{.kind = "work", .delay = Milliseconds(8000)}}, {})).front().value().id;
  // The steps are collected while a commit is under way, and the process is killed before theirs.
  const auto commit = ledger_->begin_commit();
  for (int i = 0; i < 2; ++i) {
    clock_.step_wall(-kHourMs);
    ASSERT_TRUE(ledger_->begin());
  }
  const Status committed = commit();
  ASSERT_TRUE(committed);
  disk_.halt();
  (void)ledger_->end_commit(committed);
  ledger_.reset();
  disk_.crash({.unsynced = support::Survival::kEverything});
  open();
  EXPECT_TRUE(ledger_->open_report().elapsed_known);
  EXPECT_EQ(due_in_ms(), 8000);
}

TEST_F(ClockOverARestart, ADelayKeepsItsLengthWhenAnOpeningCannotReadTheFileAndIsKilled) {
  accept_and_close(false);
  clock_.advance(3000);
  clock_.step_wall(-kHourMs);
  const std::string file = "/store/clock";
  const std::string bytes = disk_.contents(file);
  disk_.overwrite(file, 0, "?");
  std::vector<std::unique_ptr<support::SimulatedDisk>> killed;
  disk_.on_operation([&](const support::OperationInfo&) { killed.push_back(disk_.clone()); });
  open();
  disk_.on_operation(nullptr);
  ledger_.reset();
  EXPECT_GT(killed.size(), 5u);
  for (const auto& image : killed) {
    // The next one can read it, if it is still the one of before.
    if (*image->exists(file) && image->contents(file).starts_with("?")) image->overwrite(file, 0, bytes);
    open(*image);
    EXPECT_GE(due_in_ms(), 5000);
    ledger_.reset();
  }
}

TEST_F(ClockOverARestart, ATimeOfTheWallClockIsNotMoved) {
  open();
  ASSERT_TRUE(ledger_->begin());
  const Time due(Milliseconds(ledger_->now_ms() + 8000));
  id_ = ledger_->enqueue(EnqueueBatch::of({{.kind = "work", .due = due}}, {})).front().value().id;
  ASSERT_TRUE(ledger_->commit());
  ledger_.reset();
  clock_.step_wall(-kHourMs);
  open();
  EXPECT_EQ(ledger_->find(id_).value().due, due);
}

TEST_F(ClockOverARestart, InAnotherBootAClockThatIsBehindCountsAsNoTimeSinceTheLastRecord) {
  accept_and_close(false);
  clock_.reboot();
  clock_.advance(3000);
  clock_.step_wall(-kHourMs);
  open();
  EXPECT_FALSE(ledger_->open_report().elapsed_known);
  EXPECT_EQ(due_in_ms(), 8000);
}

TEST_F(ClockOverARestart, InAnotherBootAClockThatIsAheadIsBelieved) {
  accept_and_close(false);
  clock_.reboot();
  clock_.advance(3000);
  open();
  EXPECT_EQ(due_in_ms(), 5000);
}

TEST_F(ClockOverARestart, AFileThatIsDamagedCountsAsNone) {
  accept_and_close(true);
  const std::uint64_t bytes = disk_.contents("/store/clock").size();
  for (std::uint64_t at = 0; at < bytes; ++at) {
    const auto image = disk_.clone();
    image->flip_bit("/store/clock", at, 1);
    EXPECT_FALSE(ClockFile(*image, "/store").read(clock_.boot(), 1'000'000)) << at;
  }
  EXPECT_TRUE(ClockFile(disk_, "/store").read(clock_.boot(), 1'000'000));
}

TEST_F(ClockOverARestart, AStepHoldsFromItsRecordOn) {
  ASSERT_TRUE(disk_.make_directory("/store"));
  const ClockFile file(disk_, "/store");
  ASSERT_TRUE(file.write("boot", 10, 20, 500));
  EXPECT_EQ(file.read("boot", 500), 10);
  EXPECT_EQ(file.read("boot", 501), 20);
  EXPECT_FALSE(file.read("another boot", 501));
  EXPECT_FALSE(file.read("", 501));
}

}  // namespace
}  // namespace bide::engine
