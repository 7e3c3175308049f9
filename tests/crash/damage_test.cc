// A small store, cut off at every byte and with a flipped bit in every byte. A torn tail is cut and reported; damage to
// what had been synced is refused with file and offset; an acknowledged job is never missing without a word.

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/ledger.h"
#include "support/seeded_random.h"
#include "support/simulated_disk.h"
#include "support/virtual_clock.h"

namespace bide::engine {
namespace {

using support::SimulatedDisk;
using support::Survival;

class StoreDamage : public ::testing::Test {
 protected:
  // Bytes of a file beyond this are sampled.
  static constexpr std::uint64_t kEveryByte = 6000;

  EngineOptions options(platform::Disk& disk, platform::Random& random) {
    EngineOptions options;
    options.directory = "/store";
    options.segment_bytes = 4 << 10;
    options.snapshot_bytes = snapshot_bytes_;
    options.reserve_bytes = 16 << 10;
    options.result_retention = std::chrono::hours(24 * 365);
    options.disk = &disk;
    options.clock = &clock_;
    options.random = &random;
    return options;
  }

  // A store in which every kind of record has been written.
  void make_store() {
    ledger_ = std::move(Ledger::open(options(disk_, random_))).value();
    ledger_->subscribe(1, {.queues = {{"default", 1}}, .credit = 3, .lease = Milliseconds(600'000)}, {});
    std::vector<LeaseRef> leases;
    for (int round = 0; round < 30; ++round) {
      clock_.advance(10);
      if (round == 20) clock_.step_wall(3'600'000);
      ASSERT_TRUE(ledger_->begin());
      Job job;
      job.kind = "work";
      job.body = std::string(static_cast<std::size_t>(round * 7), 'b');
      if (round % 5 == 0) job.unique_key = "key " + std::to_string(round);
      if (round % 3 == 0) job.delay = Milliseconds(86'400'000);
      const auto result = ledger_->enqueue(engine::EnqueueBatch::of({job}, {})).front();
      ASSERT_TRUE(result);
      const JobId id = result->id;
      if (!leases.empty()) {
        Settlement settlement{.lease = leases.back(), .outcome = Done{.result = "done"}};
        if (round % 3 == 1) settlement.outcome = RetryAt{.error = "again"};
        if (round % 3 == 2) settlement.outcome = Dead{.error = "dead"};
        leases.pop_back();
        ASSERT_TRUE(ledger_->settle(engine::SettleBatch::of({settlement}, {})).front());
      }
      if (round == 10) {
        ASSERT_TRUE(ledger_->pause("other", true));
      }
      const auto deliveries = ledger_->grant();
      ASSERT_TRUE(deliveries);
      ASSERT_TRUE(ledger_->commit());
      acknowledged_[id] = ledger_->journal().written();
      for (const Delivery& delivery : *deliveries) {
        for (const Lease& lease : delivery.leases) leases.push_back({lease.job.id, lease.token});
      }
      if (tidies_) {
        ASSERT_TRUE(ledger_->tidy());
      }
    }
  }

  std::vector<std::string> store_files(const SimulatedDisk& disk) {
    std::vector<std::string> files;
    for (const std::string& path : disk.files()) {
      if (path.find("/journal/") != std::string::npos || path.find("/snapshot-") != std::string::npos)
        files.push_back(path);
    }
    return files;
  }

  std::vector<std::uint64_t> offsets(std::uint64_t size) {
    std::vector<std::uint64_t> all;
    for (std::uint64_t at = 0; at < size; at += at < kEveryByte ? 1 : 1 + random_.next_below(40)) all.push_back(at);
    return all;
  }

  // Opens the image. Either it is refused, and the error names a file of the store and an offset in it; or every job
  // that was acknowledged can be found or is said to be damaged.
  void refused_or_whole(SimulatedDisk& image, const std::string& what) {
    support::SeededRandom random(1);
    const auto opened = Ledger::open(options(image, random));
    if (!opened) {
      EXPECT_TRUE(opened.error().code == ErrorCode::kDamaged || opened.error().code == ErrorCode::kNewerVersion)
          << what << ": " << opened.error().message;
      EXPECT_NE(opened.error().message.find("/store/"), std::string::npos) << what << ": " << opened.error().message;
      const bool says_where = opened.error().message.find("offset ") != std::string::npos ||
                              opened.error().message.find("address ") != std::string::npos ||
                              opened.error().code == ErrorCode::kNewerVersion;
      EXPECT_TRUE(says_where) << what << ": " << opened.error().message;
      ++refused_;
      return;
    }
    ++opened_;
    EXPECT_TRUE((*opened)->audit().ok()) << what;
    for (const auto& [id, written] : acknowledged_) {
      const auto info = (*opened)->find(id);
      if (info) continue;
      EXPECT_EQ(info.error().code, ErrorCode::kDamaged) << what << ", job " << id.to_string() << " is missing";
      EXPECT_NE(info.error().message.find("/store/journal"), std::string::npos) << info.error().message;
    }
  }

  // Without it every record stays where it was written.
  bool tidies_ = false;
  std::uint64_t snapshot_bytes_ = 1 << 30;
  support::SeededRandom random_{99};
  SimulatedDisk disk_{3};
  support::VirtualClock clock_;
  std::unique_ptr<Ledger> ledger_;
  std::map<JobId, journal::Address> acknowledged_;  // How long the journal was then.
  std::uint64_t refused_ = 0;
  std::uint64_t opened_ = 0;
};

// Nothing in the last file tells what was behind a cut, but the mark beside it does.
TEST_F(StoreDamage, AClosedStoreThatIsCutOffAnywhereIsRefusedOrWhole) {
  make_store();
  ledger_.reset();
  for (const std::string& path : store_files(disk_)) {
    for (const std::uint64_t at : offsets(disk_.contents(path).size())) {
      const auto image = disk_.clone();
      image->truncate(path, at);
      refused_or_whole(*image, path + " cut at " + std::to_string(at));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(refused_, 3000u);
  EXPECT_GT(opened_, 10u);
}

TEST_F(StoreDamage, AFlippedBitAnywhereInAClosedStoreIsRefusedOrHarmless) {
  make_store();
  ledger_.reset();
  for (const std::string& path : store_files(disk_)) {
    for (const std::uint64_t at : offsets(disk_.contents(path).size())) {
      const auto image = disk_.clone();
      image->flip_bit(path, at, static_cast<unsigned>(random_.next_below(8)));
      refused_or_whole(*image, path + " flipped at " + std::to_string(at));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(refused_, 3000u);
}

TEST_F(StoreDamage, ASnapshotIsProtectedLikeTheJournal) {
  snapshot_bytes_ = 2000;
  tidies_ = true;
  make_store();
  for (int left = 200; left > 0; --left) {
    ASSERT_TRUE(ledger_->begin());
    ASSERT_TRUE(ledger_->commit());
    ledger_->take_garbage()();
    ASSERT_TRUE(ledger_->tidy());
  }
  ledger_.reset();
  std::uint64_t snapshots = 0;
  for (const std::string& path : store_files(disk_)) {
    const bool is_snapshot = path.find("/snapshot-") != std::string::npos;
    snapshots += is_snapshot ? 1 : 0;
    for (const std::uint64_t at : offsets(disk_.contents(path).size())) {
      const auto flipped = disk_.clone();
      flipped->flip_bit(path, at, static_cast<unsigned>(random_.next_below(8)));
      const std::uint64_t before = refused_;
      refused_or_whole(*flipped, path + " flipped at " + std::to_string(at));
      if (is_snapshot) {
        EXPECT_EQ(refused_, before + 1) << path << " flipped at " << at;
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_EQ(snapshots, 1u);
}

// The process was killed with something written that it had not synced and told nobody about.
TEST_F(StoreDamage, ATornTailIsCutAndReportedWhereverItIsTorn) {
  make_store();
  const std::string path = ledger_->journal().segments().back().path;
  const std::uint64_t base = ledger_->journal().segments().back().base;
  clock_.advance(86'400'000);
  ASSERT_TRUE(ledger_->begin());
  ASSERT_TRUE(ledger_->commit());
  const std::uint64_t tail = ledger_->journal().written() - base;
  ledger_->subscribe(2, {.queues = {{"default", 1}}, .credit = 5, .lease = Milliseconds(600'000)}, {});
  ASSERT_TRUE(ledger_->grant());
  ASSERT_TRUE(ledger_->commit());
  const std::uint64_t end = ledger_->journal().written() - base;
  ASSERT_EQ(ledger_->journal().segments().back().path, path);
  ASSERT_GT(end, tail + 50);
  disk_.halt();
  ledger_.reset();
  disk_.crash({.unsynced = Survival::kEverything});
  for (std::uint64_t at = tail; at < end; ++at) {
    const std::string what = "torn at " + std::to_string(at);
    for (const bool cut : {true, false}) {
      const auto image = disk_.clone();
      if (cut) {
        image->truncate(path, at);
      } else {
        image->flip_bit(path, at, static_cast<unsigned>(random_.next_below(8)));
      }
      support::SeededRandom random(1);
      const auto opened = Ledger::open(options(*image, random));
      ASSERT_TRUE(opened) << what << ": " << opened.error().message;
      if (at > tail || !cut) {
        ASSERT_EQ((*opened)->open_report().torn_tails.size(), 1u) << what;
        EXPECT_EQ((*opened)->open_report().torn_tails.front().path, path) << what;
        EXPECT_EQ((*opened)->open_report().torn_tails.front().offset, tail) << what;
      }
      EXPECT_TRUE((*opened)->audit().ok()) << what;
      for (const auto& [id, written] : acknowledged_) ASSERT_TRUE((*opened)->find(id)) << what;
    }
  }
}

}  // namespace
}  // namespace bide::engine
