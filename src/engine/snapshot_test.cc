#include "engine/snapshot.h"

#include <gtest/gtest.h>

#include "bide/wait.h"
#include "engine/ledger.h"
#include "support/seeded_random.h"
#include "support/simulated_disk.h"
#include "support/virtual_clock.h"

namespace bide::engine {
namespace {

using support::SeededRandom;
using support::SimulatedDisk;
using support::VirtualClock;

class SnapshotTest : public ::testing::Test {
 protected:
  void open(std::uint64_t segment_bytes = 32 << 10) {
    auto opened = Ledger::open({.directory = "data",
                                .done_limit = 5,
                                .reserve_bytes = 4096,
                                .segment_bytes = segment_bytes,
                                .snapshot_bytes = 16 << 10,
                                .on_fatal = {},
                                .disk = &disk_,
                                .clock = &clock_,
                                .random = &random_});
    ASSERT_TRUE(opened) << opened.error().message;
    ledger_ = std::move(*opened);
  }
  std::vector<JobId> enqueue(int count, Milliseconds delay, std::size_t body_bytes = 100) {
    std::vector<Job> jobs(static_cast<std::size_t>(count));
    for (Job& job : jobs) {
      job.kind = "k";
      job.body.assign(body_bytes, 'x');
      job.delay = delay;
    }
    std::vector<JobId> ids;
    EXPECT_TRUE(ledger_->begin());
    for (const auto& result : ledger_->enqueue(EnqueueBatch::of(std::move(jobs), {}))) ids.push_back(result.value().id);
    EXPECT_TRUE(ledger_->commit());
    return ids;
  }
  void tidy_until_quiet() {
    for (int i = 0; i < 10'000; ++i) {
      const auto more = ledger_->tidy();
      ASSERT_TRUE(more) << more.error().message;
      if (!*more) return;
    }
    FAIL() << "housekeeping never ends";
  }
  std::size_t files_named(std::string_view prefix) {
    const auto names = disk_.list("data");
    return static_cast<std::size_t>(std::count_if(names->begin(), names->end(),
                                                  [&](const std::string& name) { return name.starts_with(prefix); }));
  }

  SimulatedDisk disk_{1};
  VirtualClock clock_;
  SeededRandom random_{2};
  std::unique_ptr<Ledger> ledger_;
};

TEST_F(SnapshotTest, WhatChangesWhileItIsWrittenIsSavedAsItWas) {
  open();
  const auto ids = enqueue(500, std::chrono::hours(1));
  // One piece only, so that changes come in between.
  ASSERT_TRUE(ledger_->tidy().value());
  ASSERT_TRUE(ledger_->begin());
  for (const Status& status : ledger_->cancel({ids[0], ids[250], ids[499]})) ASSERT_TRUE(status);
  ASSERT_TRUE(ledger_->reschedule(ids[1], Time(Milliseconds(ledger_->now_ms() + 5))));
  ASSERT_TRUE(ledger_->commit());
  enqueue(20, std::chrono::hours(2));
  tidy_until_quiet();
  EXPECT_EQ(files_named("snapshot-"), 1u);
  EXPECT_TRUE(ledger_->audit().ok());

  ledger_.reset();
  open();
  const AuditReport report = ledger_->audit();
  EXPECT_TRUE(report.ok()) << report.problems.front();
  EXPECT_EQ(report.live, 517u);
  EXPECT_EQ(report.accepted, 520u);
  EXPECT_FALSE(ledger_->find(ids[250]));
  EXPECT_EQ(ledger_->find(ids[1])->job.body, std::string(100, 'x'));
}

TEST_F(SnapshotTest, AFlippedBitIsRefusedWithFileAndOffset) {
  open();
  enqueue(500, std::chrono::hours(1));
  tidy_until_quiet();
  ledger_.reset();
  const auto names = disk_.list("data").value();
  const auto name = std::find_if(names.begin(), names.end(), [](const auto& n) { return n.starts_with("snapshot-"); });
  ASSERT_NE(name, names.end());
  disk_.flip_bit("data/" + *name, 2000, 3);
  const auto opened = Ledger::open({.directory = "data",
                                    .on_fatal = {},
                                    .disk = &disk_,
                                    .clock = &clock_,
                                    .random = &random_});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kDamaged);
  EXPECT_NE(opened.error().message.find(*name + ", offset "), std::string::npos) << opened.error().message;
}

TEST_F(SnapshotTest, DiskStaysWithinTwiceTheLiveBytesAndOneSegment) {
  constexpr std::uint64_t kSegmentBytes = 2 << 20;
  open(kSegmentBytes);
  std::vector<JobId> all;
  for (int round = 0; round < 40; ++round) {
    const auto ids = enqueue(100, std::chrono::hours(1), 3000);
    all.insert(all.end(), ids.begin(), ids.end());
  }
  std::vector<JobId> gone;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % 100 != 0) gone.push_back(all[i]);
  }
  ASSERT_TRUE(ledger_->begin());
  for (const Status& status : ledger_->cancel(gone)) ASSERT_TRUE(status);
  ASSERT_TRUE(ledger_->commit());
  tidy_until_quiet();
  EXPECT_LE(ledger_->journal().disk_bytes(), 2 * ledger_->state().live_bytes().total() + kSegmentBytes);
  EXPECT_TRUE(ledger_->audit().ok());
  ledger_.reset();
  open(kSegmentBytes);
  EXPECT_EQ(ledger_->state().jobs(), 40u);
  for (std::size_t i = 0; i < all.size(); i += 100) EXPECT_EQ(ledger_->find(all[i])->job.body.size(), 3000u);
}

}  // namespace
}  // namespace bide::engine
