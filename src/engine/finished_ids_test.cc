#include "engine/finished_ids.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "support/simulated_disk.h"

namespace bide::engine {
namespace {

using std::chrono::minutes;
using support::Survival;

constexpr std::int64_t kStart = 1'700'000'000'000;
constexpr std::int64_t kMinute = 60'000;

JobId make_id(std::uint64_t number) {
  std::array<std::uint8_t, JobId::kSize> bytes{};
  for (std::size_t i = 0; i < 8; ++i) bytes[15 - i] = static_cast<std::uint8_t>((number + 1) >> (8 * i));
  return JobId(bytes);
}

// The address of the journal stands for the number of the job here.
class FinishedIdsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(disk_.make_directory("/store"));
    ASSERT_TRUE(disk_.sync_directory("/"));
    open();
  }
  void open(journal::Address snapshot = 0, std::uint64_t memory_bytes = 64 << 20) {
    ids_ = std::make_unique<FinishedIds>(disk_, "/store", minutes(60), memory_bytes);
    const Status opened = ids_->open(snapshot);
    ASSERT_TRUE(opened) << opened.error().message;
    ids_->start(now_ms_);
  }
  void add(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i, ++end_) ids_->add(make_id(end_), end_ + 1, now_ms_, end_ + 1);
  }
  void store() {
    ids_->close_block(end_);
    ASSERT_TRUE(ids_->write(end_, true));
    ASSERT_TRUE(ids_->sync());
  }
  bool knows(std::uint64_t number) { return ids_->contains(make_id(number)).value(); }
  void crash(Survival unsynced) {
    disk_.halt();
    ids_.reset();
    disk_.crash({.unsynced = unsynced});
  }
  std::uint64_t known(std::uint64_t from, std::uint64_t to) {
    std::uint64_t count = 0;
    for (std::uint64_t i = from; i < to; ++i) count += knows(i) ? 1 : 0;
    return count;
  }

  support::SimulatedDisk disk_{1};
  std::unique_ptr<FinishedIds> ids_;
  std::int64_t now_ms_ = kStart;
  journal::Address end_ = 0;
};

TEST_F(FinishedIdsTest, IdsAreKnownBeforeTheyAreWrittenAndAfterwardsAndAfterReopening) {
  add(10'000);
  EXPECT_EQ(known(0, 10'000), 10'000u);
  EXPECT_EQ(known(10'000, 30'000), 0u);
  store();
  EXPECT_EQ(known(0, 10'000), 10'000u);
  EXPECT_EQ(known(10'000, 30'000), 0u);
  crash(Survival::kNothing);
  open(end_);
  EXPECT_EQ(ids_->covered(), end_);
  EXPECT_EQ(known(0, 10'000), 10'000u);
  EXPECT_EQ(known(10'000, 30'000), 0u);
  EXPECT_TRUE(ids_->was_settled(1));
  EXPECT_TRUE(ids_->was_settled(10'000));
  EXPECT_FALSE(ids_->was_settled(10'001));
  EXPECT_TRUE(ids_->damage().empty());
}

TEST_F(FinishedIdsTest, NothingIsWrittenThatIsNotDurableInTheJournal) {
  add(10'000);  // Two blocks are full.
  ASSERT_TRUE(ids_->write(4095));
  EXPECT_EQ(ids_->use().disk_bytes, 0u);
  EXPECT_EQ(ids_->covered(), 0u);
  ASSERT_TRUE(ids_->write(4096));
  EXPECT_EQ(ids_->covered(), 4096u);
  ASSERT_TRUE(ids_->write(end_));
  EXPECT_EQ(ids_->covered(), 8192u);
}

TEST_F(FinishedIdsTest, WhatWasWrittenAndNotSyncedIsAddedAgainFromTheJournal) {
  add(5000);
  store();
  add(9000);
  ASSERT_TRUE(ids_->write(end_));
  crash(Survival::kNothing);
  open(5000);
  EXPECT_EQ(ids_->covered(), 5000u);
  EXPECT_TRUE(ids_->damage().empty());
}

TEST_F(FinishedIdsTest, BlocksOfWhichOneWasTornAreNoDamageAsLongAsTheJournalHasThem) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const journal::Address snapshot = end_;
    store();
    add(9000);
    ASSERT_TRUE(ids_->write(end_));
    crash(Survival::kChance);
    const journal::Address end = end_;
    ids_ = std::make_unique<FinishedIds>(disk_, "/store", minutes(60), 64 << 20);
    ASSERT_TRUE(ids_->open(snapshot));
    EXPECT_TRUE(ids_->damage().empty()) << ids_->damage().front().text;
    for (end_ = ids_->covered(); end_ < end;) add(1);
    ids_->start(now_ms_);
    EXPECT_EQ(known(snapshot, end_), end_ - snapshot);
    // Written anew, and found in order by the next opening.
    store();
    open(end_);
    EXPECT_TRUE(ids_->damage().empty()) << ids_->damage().front().text;
    EXPECT_EQ(known(snapshot, end_), end_ - snapshot);
  }
}

TEST_F(FinishedIdsTest, OpeningAgainWritesNothingAndKnowsNothingTwice) {
  add(5000);
  store();
  add(9000);
  ASSERT_TRUE(ids_->write(end_));
  const std::uint64_t disk_bytes = ids_->use().disk_bytes;
  const journal::Address covered = ids_->covered();
  for (int i = 0; i < 5; ++i) {
    ids_ = std::make_unique<FinishedIds>(disk_, "/store", minutes(60), 64 << 20);
    ASSERT_TRUE(ids_->open(5000));
    EXPECT_EQ(ids_->covered(), covered);
    for (end_ = ids_->covered(); end_ < 14'000;) add(1);
    ids_->start(now_ms_);
    ASSERT_TRUE(ids_->write(end_));
    EXPECT_EQ(ids_->use().ids, 14'000u);
    EXPECT_EQ(ids_->use().disk_bytes, disk_bytes);
  }
  store();
  crash(Survival::kNothing);  // What the first process had not synced is synced before the snapshot.
  open(end_);
  EXPECT_EQ(ids_->use().ids, 14'000u);
  EXPECT_EQ(known(0, 14'000), 14'000u);
  EXPECT_TRUE(ids_->damage().empty());
}

TEST_F(FinishedIdsTest, WithoutABlockFromBeforeTheSnapshotAllIsCollectedAgain) {
  open(5000);
  ASSERT_FALSE(ids_->is_anchored());
  end_ = 5000;
  add(9000);
  ASSERT_TRUE(ids_->write(end_));
  ids_ = std::make_unique<FinishedIds>(disk_, "/store", minutes(60), 64 << 20);
  ASSERT_TRUE(ids_->open(5000));
  EXPECT_FALSE(ids_->is_anchored());
  EXPECT_EQ(ids_->covered(), 5000u);
  EXPECT_EQ(ids_->use().ids, 0u);
}

TEST_F(FinishedIdsTest, WhoOnlyLooksRemovesNothing) {
  for (int i = 0; i < 3; ++i) {
    add(100);
    store();
    now_ms_ += 10 * kMinute;
  }
  ids_ = std::make_unique<FinishedIds>(disk_, "/store", std::chrono::seconds(1), 64 << 20);
  ASSERT_TRUE(ids_->open(end_));
  ids_->start(now_ms_);
  ids_->forget_old(now_ms_);
  EXPECT_FALSE(knows(0));
  EXPECT_TRUE(ids_->take_obsolete_files().empty());
  open(end_);
  EXPECT_EQ(known(0, 300), 300u);
}

TEST_F(FinishedIdsTest, IdsAreForgottenAfterTheStatedTimeAndNotBefore) {
  for (int i = 0; i < 20; ++i) {
    add(100);
    store();
    now_ms_ += 5 * kMinute;
    ids_->forget_old(now_ms_);
    for (const std::string& file : ids_->take_obsolete_files()) ASSERT_TRUE(disk_.remove(file));
  }
  // Twelve times five minutes are an hour.
  EXPECT_EQ(known(8 * 100, 20 * 100), 12 * 100u);
  EXPECT_EQ(known(0, 6 * 100), 0u);
  open(end_);
  EXPECT_EQ(known(8 * 100, 20 * 100), 12 * 100u);
  EXPECT_EQ(known(0, 6 * 100), 0u);
  EXPECT_TRUE(ids_->damage().empty());
  EXPECT_EQ(ids_->use().ids_forgotten_early, 0u);
}

TEST_F(FinishedIdsTest, AStepOfTheWallClockChangesNoAge) {
  add(100);
  store();
  now_ms_ += 600 * kMinute;
  ids_->step_clock(600 * kMinute);
  ids_->forget_old(now_ms_);
  EXPECT_EQ(known(0, 100), 100u);
  add(100);
  store();
  open(end_);
  EXPECT_EQ(known(0, 200), 200u);
  now_ms_ += 70 * kMinute;
  ids_->forget_old(now_ms_);
  EXPECT_EQ(known(0, 200), 0u);
}

TEST_F(FinishedIdsTest, BeyondTheMemoryTheOldestAreForgottenAndThatIsCounted) {
  open(0, 1 << 20);
  std::uint64_t most = 0;
  for (int i = 0; i < 400; ++i) {
    add(1000);
    ids_->forget_old(now_ms_);
    ASSERT_TRUE(ids_->write(end_));
    most = std::max(most, ids_->use().memory_bytes);
  }
  const FinishedIds::Use use = ids_->use();
  EXPECT_EQ(use.ids + use.ids_forgotten_early, end_);
  EXPECT_GT(use.ids_forgotten_early, 0u);
  EXPECT_GT(use.ids, 50'000u);
  EXPECT_LT(most, 3u << 20) << "with what a table takes at least, and blocks that are not written yet";
  EXPECT_EQ(known(end_ - use.ids, end_), use.ids);
}

TEST_F(FinishedIdsTest, OnAFullDiskIdsStayInMemoryUntilThereIsRoom) {
  disk_.set_capacity(disk_.used_bytes());
  add(10'000);
  EXPECT_FALSE(ids_->write(end_));
  EXPECT_EQ(known(0, 10'000), 10'000u);
  disk_.set_capacity(1ull << 40);
  store();
  EXPECT_EQ(known(0, 10'000), 10'000u);
  open(end_);
  EXPECT_EQ(known(0, 10'000), 10'000u);
  EXPECT_TRUE(ids_->damage().empty());
}

TEST_F(FinishedIdsTest, ADamagedBlockIsNamedAndTheOthersAreKnown) {
  add(4096 * 3);
  store();
  const std::string path = "/store/ids/" + id_file_name(1);
  auto file = disk_.open(path, platform::OpenMode::kReadWrite);
  ASSERT_TRUE(file);
  // Behind the empty block with which a file begins.
  std::string header(kIdBlockHeaderBytes, '\0');
  ASSERT_TRUE((*file)->read(kIdBlockAlignment, header.data(), header.size()));
  const std::uint64_t second = kIdBlockAlignment + padded_id_block(decode_id_block_header(header)->bytes);
  ASSERT_TRUE((*file)->write(second + 1000, "x"));
  // Whoever asks for one of them is told why there is no answer.
  const auto asked = ids_->contains(make_id(5000));
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().code, ErrorCode::kDamaged);
  EXPECT_NE(asked.error().message.find(path + " offset " + std::to_string(second)), std::string::npos);
  EXPECT_TRUE(knows(1));
  open(end_);
  ASSERT_EQ(ids_->damage().size(), 1u);
  EXPECT_EQ(ids_->damage().front().file, path);
  EXPECT_EQ(ids_->damage().front().offset, second);
  EXPECT_EQ(known(0, 4096), 4096u);
  EXPECT_EQ(known(4096, 8192), 0u);
  EXPECT_EQ(known(8192, 12'288), 4096u);
}

TEST_F(FinishedIdsTest, AFileInWhichNothingCanBeReadIsDamage) {
  add(100);
  store();
  const std::string path = "/store/ids/" + id_file_name(1);
  auto file = disk_.open(path, platform::OpenMode::kReadWrite);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write(0, std::string(1024, 'x')));
  for (int i = 0; i < 2; ++i) {
    open(end_);
    ASSERT_EQ(ids_->damage().size(), 1u);
    EXPECT_EQ(ids_->damage().front().file, path);
  }
}

// The power went before the empty block was synced with which a file begins.
TEST_F(FinishedIdsTest, AFileThatWasNeverBegunIsNoDamage) {
  ASSERT_TRUE(disk_.make_directory("/store/ids"));
  auto file = disk_.open("/store/ids/" + id_file_name(1), platform::OpenMode::kCreate);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write(0, std::string(kIdBlockAlignment, '\0')));
  open();
  EXPECT_TRUE(ids_->damage().empty());
  end_ = 1000;
  open(end_);  // Nothing was done before it.
  add(100);
  store();
  open(end_);
  EXPECT_TRUE(ids_->damage().empty());
  EXPECT_EQ(known(1000, 1100), 100u);
}

TEST_F(FinishedIdsTest, TheStepsOfTheClockUpToASnapshotAreKnownWhenItsIdsAreTooOld) {
  constexpr std::int64_t kYear = 365 * 24 * 60 * kMinute;
  now_ms_ -= kYear;
  ids_->step_clock(-kYear);
  add(100);
  store();
  const journal::Address snapshot = end_;
  now_ms_ += 120 * kMinute;
  ids_->forget_old(now_ms_);
  EXPECT_EQ(known(0, 100), 0u);
  for (const std::string& path : ids_->take_obsolete_files()) ASSERT_TRUE(disk_.remove(path));
  ids_->set_snapshot(snapshot);
  add(100);
  store();
  // Those are in the journal, and are added again.
  open(snapshot);
  for (std::uint64_t i = snapshot; i < end_; ++i) ids_->add(make_id(i), i + 1, now_ms_, i + 1);
  store();
  ids_->set_snapshot(end_);
  for (const std::string& path : ids_->take_obsolete_files()) ASSERT_TRUE(disk_.remove(path));
  open(end_);
  EXPECT_EQ(known(100, 200), 100u);
  now_ms_ += 70 * kMinute;
  ids_->forget_old(now_ms_);
  EXPECT_EQ(ids_->use().ids, 0u);
  EXPECT_TRUE(ids_->damage().empty());
}

TEST_F(FinishedIdsTest, ASyncThatFailsIsTheEndAlsoForWantOfRoom) {
  add(100);
  ids_->close_block(end_);
  ASSERT_TRUE(ids_->write(end_));
  disk_.plan({.operation = support::Operation::kSync, .fault = support::Fault::kDiskFull});
  const Status synced = ids_->sync();
  ASSERT_FALSE(synced);
  EXPECT_EQ(synced.error().code, ErrorCode::kIoError);
}

TEST_F(FinishedIdsTest, AMissingFileIsDamage) {
  add(100);
  store();
  open(end_);
  add(100);
  store();
  open(end_);
  add(100);
  store();
  ASSERT_TRUE(disk_.remove("/store/ids/" + id_file_name(2)));
  open(end_);
  EXPECT_EQ(ids_->damage().size(), 1u);
  EXPECT_EQ(known(0, 300), 200u);
  ASSERT_TRUE(disk_.remove("/store/ids/" + id_file_name(3)));
  open(end_);
  EXPECT_EQ(ids_->damage().size(), 1u);
  EXPECT_EQ(known(0, 300), 100u);
}

TEST_F(FinishedIdsTest, AJournalThatLostItsEndUsesAddressesAgainAndTheirIdsAreRemembered) {
  add(1000);
  store();
  end_ = 500;
  open(400);
  store();
  for (; end_ < 700; ++end_) ids_->add(make_id(100'000 + end_), 5000 + end_, now_ms_, end_ + 1);
  store();
  open(700);
  EXPECT_EQ(known(100'500, 100'700), 200u);
  EXPECT_TRUE(ids_->damage().empty());
}

TEST_F(FinishedIdsTest, TokensAreRememberedWithoutIds) {
  for (std::uint64_t token = 1; token < 300'000; ++token) {
    if (token % 3 != 0) ids_->add(JobId(), token, now_ms_, ++end_);
  }
  store();
  EXPECT_LT(ids_->use().memory_bytes, 100'000u);
  EXPECT_LT(ids_->use().disk_bytes, 100'000u);
  open(end_);
  for (std::uint64_t token = 1; token < 300'000; ++token) ASSERT_EQ(ids_->was_settled(token), token % 3 != 0) << token;
}

}  // namespace
}  // namespace bide::engine
