// Power loss at every single operation of the disk, with every kind of survival of what was not synced.

#include "support/journal_fixture.h"
#include "support/seeded_random.h"

namespace bide::engine::journal {
namespace {

using support::SeededRandom;
using support::Survival;

class JournalCrash : public JournalFixture {
 protected:
  struct Image {
    std::unique_ptr<support::SimulatedDisk> disk;
    std::size_t confirmed = 0;  // So many texts must be there.
    std::size_t written = 0;    // No more than these may be.
  };

  // Batches of one to five records, small and large, with quiet moments in between.
  void run(std::uint64_t seed) {
    SeededRandom random(seed);
    disk_.on_operation([this](const support::OperationInfo&) {
      images_.push_back({disk_.clone(), confirmed_, all_.size()});
    });
    auto journal = open();
    for (int i = 0; i < 40; ++i) {
      if (random.chance(0.3)) {
        ASSERT_TRUE(journal->reserve(random.next_below(20'000)));
      }
      const std::uint64_t records = 1 + random.next_below(5);
      for (std::uint64_t record = 0; record < records; ++record) {
        const std::size_t size = random.next_below(random.chance(0.1) ? 9000 : 300);
        all_.push_back(std::to_string(all_.size()) + std::string(size, static_cast<char>('a' + i % 26)));
        add(*journal, all_.back());
      }
      batch_ends_.push_back(all_.size());
      if (random.chance(0.3)) {
        // The next batch begins while this one is on its way.
        const std::function<Status()> to_disk = journal->begin_commit();
        const std::size_t promised = all_.size();
        all_.push_back(std::to_string(all_.size()) + " meanwhile");
        add(*journal, all_.back());
        ASSERT_TRUE(journal->end_commit(to_disk()));
        confirmed_ = promised;
        continue;
      }
      ASSERT_TRUE(journal->write());
      if (random.chance(0.2)) continue;  // Two batches for one sync.
      ASSERT_TRUE(journal->sync());
      confirmed_ = all_.size();
      if (random.chance(0.3)) {
        ASSERT_TRUE(journal->idle());
      }
    }
    journal.reset();
    disk_.on_operation(nullptr);
  }

  void check(const Image& image) {
    auto opened = try_open(*image.disk);
    ASSERT_TRUE(opened) << opened.error().message;
    ASSERT_GE(texts_.size(), options_.durability == Durability::kFsync ? image.confirmed : 0);
    ASSERT_LE(texts_.size(), image.written);
    ASSERT_TRUE(std::equal(texts_.begin(), texts_.end(), all_.begin()));
    ASSERT_TRUE(texts_.empty() || std::count(batch_ends_.begin(), batch_ends_.end(), texts_.size()) == 1)
        << "half a batch";
    // What was recovered once is there for good.
    const std::size_t recovered = texts_.size();
    commit(**opened, "after the crash");
    image.disk->halt();
    opened->reset();
    image.disk->crash(
        {.unsynced = options_.durability == Durability::kFsync ? Survival::kChance : Survival::kEverything});
    const auto again = try_open(*image.disk);
    ASSERT_TRUE(again) << again.error().message;
    ASSERT_EQ(texts_.size(), recovered + 1);
    ASSERT_EQ(texts_.back(), "after the crash");
  }

  void check_all(Survival unsynced) {
    for (const Image& image : images_) {
      const Image copy{image.disk->clone(), image.confirmed, image.written};
      copy.disk->crash({.unsynced = unsynced});
      check(copy);
      if (HasFatalFailure()) FAIL() << "image " << &image - images_.data() << " of " << images_.size();
    }
  }

  std::vector<Image> images_;
  Texts all_;
  std::vector<std::size_t> batch_ends_;
  std::size_t confirmed_ = 0;
};

TEST_F(JournalCrash, WhatWasConfirmedSurvivesPowerLossAtEveryOperation) {
  options_.segment_bytes = 16 << 10;
  run(1);
  ASSERT_GT(images_.size(), 100u);
  check_all(Survival::kNothing);
  for (int round = 0; round < 4; ++round) check_all(Survival::kChance);
  check_all(Survival::kEverything);
}

TEST_F(JournalCrash, ManySmallSegmentsSurviveItToo) {
  options_.segment_bytes = 700;
  options_.prewrite_bytes = 300;
  run(2);
  check_all(Survival::kNothing);
  for (int round = 0; round < 4; ++round) check_all(Survival::kChance);
}

TEST_F(JournalCrash, WithoutSyncPowerLossLeavesAPrefix) {
  options_.durability = Durability::kOs;
  options_.segment_bytes = 16 << 10;
  run(3);
  check_all(Survival::kEverything);
  // Whatever is left is a beginning of what was written. When not even the names of the files are, it is refused.
  int opened_well = 0;
  for (const Image& image : images_) {
    image.disk->crash();
    const auto files = image.disk->files();
    const auto opened = try_open(*image.disk);
    if (!opened) {
      EXPECT_EQ(opened.error().code, ErrorCode::kDamaged) << opened.error().message;
      EXPECT_NE(files.front(), "/journal/0000000000000000.seg") << opened.error().message;
      continue;
    }
    ++opened_well;
    ASSERT_TRUE(std::equal(texts_.begin(), texts_.end(), all_.begin()));
  }
  EXPECT_GT(opened_well, 30);
}

TEST_F(JournalCrash, ACrashDuringRecoveryIsRecoveredFrom) {
  options_.segment_bytes = 2000;
  run(4);
  for (std::size_t i = 0; i < images_.size(); i += 3) {
    const Image& image = images_[i];
    image.disk->crash();
    std::vector<Image> inner;
    image.disk->on_operation([&](const support::OperationInfo&) {
      inner.push_back({image.disk->clone(), image.confirmed, image.written});
    });
    ASSERT_TRUE(try_open(*image.disk));
    image.disk->on_operation(nullptr);
    for (const Image& during : inner) {
      during.disk->crash();
      check(during);
      if (HasFatalFailure()) FAIL() << "image " << i;
    }
  }
}

TEST_F(JournalCrash, APowerLossWhileTheDiskIsFullLosesNothing) {
  options_.segment_bytes = 4 << 10;
  {
    auto journal = open();
    ASSERT_TRUE(journal->reserve(60'000));
    disk_.set_capacity(disk_.used_bytes());
    disk_.on_operation([this](const support::OperationInfo&) {
      images_.push_back({disk_.clone(), confirmed_, all_.size()});
    });
    for (int i = 0; i < 100; ++i) {
      all_.push_back(std::string(500, static_cast<char>('a' + i % 26)));
      commit(*journal, all_.back());
      batch_ends_.push_back(all_.size());
      confirmed_ = all_.size();
    }
    disk_.on_operation(nullptr);
  }
  for (const Image& image : images_) {
    image.disk->crash();
    image.disk->set_capacity(1 << 30);
    check(image);
    if (HasFatalFailure()) FAIL() << "image " << &image - images_.data() << " of " << images_.size();
  }
}

}  // namespace
}  // namespace bide::engine::journal
