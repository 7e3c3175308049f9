#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "support/paged_content.h"
#include "support/seeded_random.h"
#include "support/simulated_disk.h"

namespace bide::support {
namespace {

using platform::File;
using platform::OpenMode;

constexpr CrashOptions kLoseAll{.unsynced = Survival::kNothing};
constexpr CrashOptions kKillProcess{.unsynced = Survival::kEverything};

std::unique_ptr<File> create(platform::Disk& disk, const std::string& path) {
  return std::move(disk.open(path, OpenMode::kCreate)).value();
}

// A file with this content, all of it durable.
std::unique_ptr<File> create_durable(platform::Disk& disk, const std::string& path, const std::string& content) {
  auto file = create(disk, path);
  EXPECT_TRUE(file->write(0, content));
  EXPECT_TRUE(file->sync());
  EXPECT_TRUE(disk.sync_directory("/"));
  return file;
}

// What a file comes to over many seeds; "gone" when it is not there.
std::set<std::string> outcomes(const std::function<void(SimulatedDisk&)>& run, const std::string& path) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SimulatedDisk disk(seed);
    run(disk);
    disk.crash();
    seen.insert(disk.exists(path).value() ? disk.contents(path) : "gone");
  }
  return seen;
}

TEST(SimulatedDiskCrash, AnUnsyncedWriteIsLostWhenEverythingUnsyncedIs) {
  SimulatedDisk disk(1);
  auto file = create_durable(disk, "/f", "old");
  ASSERT_TRUE(file->write(0, "newer"));
  disk.crash(kLoseAll);
  EXPECT_EQ(disk.contents("/f"), "old");
}

TEST(SimulatedDiskCrash, AnUnsyncedWriteSurvivesTheDeathOfTheProcessButIsStillUnsynced) {
  SimulatedDisk disk(1);
  auto file = create_durable(disk, "/f", "old");
  ASSERT_TRUE(file->write(0, "newer"));
  create(disk, "/g");
  disk.crash(kKillProcess);
  EXPECT_EQ(disk.contents("/f"), "newer");
  EXPECT_TRUE(disk.exists("/g").value());
  disk.crash(kLoseAll);
  EXPECT_EQ(disk.contents("/f"), "old");
  EXPECT_FALSE(disk.exists("/g").value());
}

TEST(SimulatedDiskCrash, ASyncedWriteIsNeverLost) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SimulatedDisk disk(seed);
    SeededRandom random(seed);
    auto file = create_durable(disk, "/f", "");
    std::string expected;
    for (int i = 0; i < 20; ++i) {
      const auto offset = random.next_below(30'000);
      const std::string bytes(1 + random.next_below(6000), static_cast<char>('a' + i));
      ASSERT_TRUE(file->write(offset, bytes));
      if (expected.size() < offset + bytes.size()) expected.resize(offset + bytes.size());
      expected.replace(offset, bytes.size(), bytes);
    }
    ASSERT_TRUE(file->sync());
    disk.crash();
    ASSERT_EQ(disk.contents("/f"), expected) << "seed " << seed;
  }
}

TEST(SimulatedDiskCrash, PagesThatWereNotWrittenToSinceTheSyncAreNeverHarmed) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SimulatedDisk disk(seed);
    auto file = create_durable(disk, "/f", std::string(3 * kPageBytes, 'a'));
    ASSERT_TRUE(file->write(kPageBytes + 10, "b"));
    ASSERT_TRUE(file->write(3 * kPageBytes, std::string(5000, 'c')));
    disk.crash();
    const auto content = disk.contents("/f");
    ASSERT_GE(content.size(), 3 * kPageBytes);
    ASSERT_EQ(content.substr(0, kPageBytes), std::string(kPageBytes, 'a'));
    ASSERT_EQ(content.substr(2 * kPageBytes, kPageBytes), std::string(kPageBytes, 'a'));
  }
}

TEST(SimulatedDiskCrash, AnOverwrittenPageIsDroppedKeptOrTornBySectors) {
  const std::string old_page(kPageBytes, 'o');
  const std::string new_page(kPageBytes, 'n');
  const auto seen = outcomes(
      [&](SimulatedDisk& disk) {
        auto file = create_durable(disk, "/f", old_page);
        ASSERT_TRUE(file->write(0, new_page));
      },
      "/f");
  EXPECT_TRUE(seen.contains(old_page));
  EXPECT_TRUE(seen.contains(new_page));
  EXPECT_GT(seen.size(), 10u);  // The rest is torn.
  for (const auto& content : seen) {
    ASSERT_EQ(content.size(), kPageBytes);
    for (std::size_t at = 0; at < kPageBytes; at += kSectorBytes) {
      const auto sector = content.substr(at, kSectorBytes);
      ASSERT_TRUE(sector == old_page.substr(0, kSectorBytes) || sector == new_page.substr(0, kSectorBytes));
    }
  }
}

TEST(SimulatedDiskCrash, PagesOfOneWriteFareIndependently) {
  const auto seen = outcomes(
      [](SimulatedDisk& disk) {
        auto file = create_durable(disk, "/f", std::string(2 * kPageBytes, 'o'));
        ASSERT_TRUE(file->write(0, std::string(2 * kPageBytes, 'n')));
      },
      "/f");
  EXPECT_TRUE(seen.contains(std::string(kPageBytes, 'o') + std::string(kPageBytes, 'n')));
  EXPECT_TRUE(seen.contains(std::string(kPageBytes, 'n') + std::string(kPageBytes, 'o')));
}

TEST(SimulatedDiskCrash, AVersionBetweenTwoUnsyncedWritesMayBeTheOneThatSurvives) {
  const auto seen = outcomes(
      [](SimulatedDisk& disk) {
        auto file = create_durable(disk, "/f", "0");
        ASSERT_TRUE(file->write(0, "1"));
        ASSERT_TRUE(file->write(0, "2"));
      },
      "/f");
  EXPECT_EQ(seen, (std::set<std::string>{"0", "1", "2"}));
}

TEST(SimulatedDiskCrash, UnsyncedGrowthMayBeThereInPartOrAsZerosOrAsNoise) {
  const std::string old_page(kPageBytes, 'o');
  const std::string grown(kPageBytes, 'n');
  const auto run = [&](SimulatedDisk& disk) {
    auto file = create_durable(disk, "/f", old_page);
    ASSERT_TRUE(file->write(kPageBytes, grown));
  };
  const auto seen = outcomes(run, "/f");
  EXPECT_TRUE(seen.contains(old_page));
  EXPECT_TRUE(seen.contains(old_page + grown));
  EXPECT_TRUE(seen.contains(old_page + std::string(kPageBytes, '\0')));
  bool part = false;
  bool noise = false;
  for (const auto& content : seen) {
    ASSERT_EQ(content.substr(0, kPageBytes), old_page);
    part = part || (content.size() > kPageBytes && content.size() < 2 * kPageBytes);
    noise = noise || content.find_first_not_of(std::string("on\0", 3)) != std::string::npos;
  }
  EXPECT_TRUE(part);
  EXPECT_TRUE(noise);
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SimulatedDisk disk(seed);
    run(disk);
    disk.crash({.stale_growth = false});
    ASSERT_EQ(disk.contents("/f").find_first_not_of(std::string("on\0", 3)), std::string::npos);
  }
}

TEST(SimulatedDiskCrash, UnsyncedGrowthMayShowPagesOfARemovedFile) {
  const auto seen = outcomes(
      [](SimulatedDisk& disk) {
        create_durable(disk, "/secret", std::string(kPageBytes, 's'));
        ASSERT_TRUE(disk.remove("/secret"));
        auto file = create_durable(disk, "/f", "");
        ASSERT_TRUE(file->write(0, std::string(kPageBytes, 'n')));
      },
      "/f");
  EXPECT_TRUE(seen.contains(std::string(kPageBytes, 's')));
}

TEST(SimulatedDiskCrash, AnUnsyncedTruncateHappenedOrDidNot) {
  const std::string all(3 * kPageBytes, 'a');
  const auto seen = outcomes(
      [&](SimulatedDisk& disk) {
        auto file = create_durable(disk, "/f", all);
        ASSERT_TRUE(file->truncate(kPageBytes));
      },
      "/f");
  EXPECT_EQ(seen, (std::set<std::string>{all, all.substr(0, kPageBytes)}));
}

TEST(SimulatedDiskCrash, ASyncedTruncateStaysAndGrowingAgainShowsZeros) {
  SimulatedDisk disk(1);
  auto file = create_durable(disk, "/f", std::string(2 * kPageBytes, 'a'));
  ASSERT_TRUE(file->truncate(100));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->truncate(200));
  ASSERT_TRUE(file->sync());
  disk.crash(kLoseAll);
  EXPECT_EQ(disk.contents("/f"), std::string(100, 'a') + std::string(100, '\0'));
}

TEST(SimulatedDiskCrash, BytesBehindALostEndNeverComeBack) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SimulatedDisk disk(seed);
    auto file = create_durable(disk, "/f", std::string(100, 'a'));
    ASSERT_TRUE(file->write(100, std::string(200, 'b')));
    disk.crash();
    const auto left = disk.contents("/f");
    file = create(disk, "/f");
    ASSERT_TRUE(file->truncate(1000));
    ASSERT_EQ(disk.contents("/f"), left + std::string(1000 - left.size(), '\0')) << "seed " << seed;
  }
}

TEST(SimulatedDiskCrash, ASyncedFileWithoutASyncedNameMayBeGone) {
  const auto run = [](SimulatedDisk& disk) {
    auto file = create(disk, "/f");
    ASSERT_TRUE(file->write(0, "abc"));
    ASSERT_TRUE(file->sync());
  };
  EXPECT_EQ(outcomes(run, "/f"), (std::set<std::string>{"abc", "gone"}));
  SimulatedDisk disk(1);
  run(disk);
  disk.crash(kLoseAll);
  EXPECT_FALSE(disk.exists("/f").value());
}

TEST(SimulatedDiskCrash, ASyncedNameOfAnUnsyncedFileIsAnEmptyFileAtWorst) {
  SimulatedDisk disk(1);
  auto file = create(disk, "/f");
  ASSERT_TRUE(disk.sync_directory("/"));
  ASSERT_TRUE(file->write(0, "abc"));
  disk.crash(kLoseAll);
  EXPECT_EQ(disk.contents("/f"), "");
}

TEST(SimulatedDiskCrash, ANameNeedsEveryDirectoryAboveItToBeSynced) {
  SimulatedDisk disk(1);
  ASSERT_TRUE(disk.make_directory("/a"));
  create(disk, "/a/f");
  ASSERT_TRUE(disk.sync_directory("/a"));
  auto lost = disk.clone();
  lost->crash(kLoseAll);
  EXPECT_FALSE(lost->exists("/a").value());
  ASSERT_TRUE(disk.sync_directory("/"));
  disk.crash(kLoseAll);
  EXPECT_TRUE(disk.exists("/a/f").value());
}

TEST(SimulatedDiskCrash, SyncingOneDirectoryDoesNothingForAnother) {
  SimulatedDisk disk(1);
  ASSERT_TRUE(disk.make_directory("/a"));
  ASSERT_TRUE(disk.make_directory("/b"));
  ASSERT_TRUE(disk.sync_directory("/"));
  create(disk, "/a/f");
  create(disk, "/b/f");
  ASSERT_TRUE(disk.sync_directory("/a"));
  disk.crash(kLoseAll);
  EXPECT_EQ(disk.files(), (std::vector<std::string>{"/a/f"}));
}

TEST(SimulatedDiskCrash, ARenameIsOneOrTheOtherAndNeverNeither) {
  const auto run = [](SimulatedDisk& disk) {
    create_durable(disk, "/f", "old");
    create_durable(disk, "/f.new", "new");
    ASSERT_TRUE(disk.rename("/f.new", "/f"));
  };
  EXPECT_EQ(outcomes(run, "/f"), (std::set<std::string>{"old", "new"}));
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SimulatedDisk disk(seed);
    run(disk);
    disk.crash();
    ASSERT_EQ(disk.exists("/f.new").value(), disk.contents("/f") == "old");
  }
}

TEST(SimulatedDiskCrash, ASyncedRenameIsNeverUndone) {
  const auto run = [](SimulatedDisk& disk) {
    create_durable(disk, "/f", "old");
    auto file = create(disk, "/f.new");
    ASSERT_TRUE(file->write(0, "new"));
    ASSERT_TRUE(file->sync());
    ASSERT_TRUE(disk.rename("/f.new", "/f"));
    ASSERT_TRUE(disk.sync_directory("/"));
  };
  EXPECT_EQ(outcomes(run, "/f"), (std::set<std::string>{"new"}));
}

TEST(SimulatedDiskCrash, ARenameBetweenDirectoriesIsAtomicWhicheverIsSynced) {
  for (const std::string synced : {"/a", "/b"}) {
    SimulatedDisk disk(1);
    ASSERT_TRUE(disk.make_directory("/a"));
    ASSERT_TRUE(disk.make_directory("/b"));
    ASSERT_TRUE(disk.sync_directory("/"));
    create(disk, "/a/f");
    ASSERT_TRUE(disk.rename("/a/f", "/b/f"));
    ASSERT_TRUE(disk.sync_directory(synced));
    disk.crash(kLoseAll);
    EXPECT_EQ(disk.files(), (std::vector<std::string>{"/b/f"})) << synced;
  }
}

TEST(SimulatedDiskCrash, AnUnsyncedRemovalMayComeBackWithItsContent) {
  const auto run = [](SimulatedDisk& disk) {
    create_durable(disk, "/f", "abc");
    ASSERT_TRUE(disk.remove("/f"));
  };
  EXPECT_EQ(outcomes(run, "/f"), (std::set<std::string>{"abc", "gone"}));
}

TEST(SimulatedDiskCrash, ChangesOfTheSameNameKeepTheirOrder) {
  const auto seen = outcomes(
      [](SimulatedDisk& disk) {
        create_durable(disk, "/f", "first");
        ASSERT_TRUE(disk.remove("/f"));
        auto file = create(disk, "/f");
        ASSERT_TRUE(file->write(0, "second"));
        ASSERT_TRUE(file->sync());
      },
      "/f");
  EXPECT_EQ(seen, (std::set<std::string>{"first", "gone", "second"}));
}

TEST(SimulatedDiskCrash, ANameThatIsTakenAgainNeverCostsTheFileThatWasRenamedAway) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SimulatedDisk disk(seed);
    create_durable(disk, "/a", "first");
    ASSERT_TRUE(disk.rename("/a", "/b"));
    auto file = create(disk, "/a");
    ASSERT_TRUE(file->write(0, "second"));
    ASSERT_TRUE(file->sync());
    disk.crash();
    const auto kept = disk.exists("/b").value() ? disk.contents("/b") : disk.contents("/a");
    ASSERT_EQ(kept, "first") << "seed " << seed;
  }
}

TEST(SimulatedDiskCrash, OpenFilesAreDeadAfterwards) {
  SimulatedDisk disk(1);
  auto file = create_durable(disk, "/f", "abc");
  disk.crash(kKillProcess);
  char byte = 0;
  EXPECT_EQ(file->write(0, "x").error().code, ErrorCode::kIoError);
  EXPECT_EQ(file->read(0, &byte, 1).error().code, ErrorCode::kIoError);
  EXPECT_EQ(file->sync().error().code, ErrorCode::kIoError);
  EXPECT_EQ(file->truncate(0).error().code, ErrorCode::kIoError);
  EXPECT_EQ(file->allocate(0, 1).error().code, ErrorCode::kIoError);
  EXPECT_EQ(file->size().error().code, ErrorCode::kIoError);
  EXPECT_EQ(disk.contents("/f"), "abc");
}

TEST(SimulatedDiskCrash, ACrashInTheHookComesBeforeTheOperation) {
  SimulatedDisk disk(1);
  auto file = create_durable(disk, "/f", "abc");
  disk.on_operation([&](const OperationInfo& info) {
    if (info.operation == Operation::kSync) disk.crash(kLoseAll);
  });
  ASSERT_TRUE(file->write(0, "xyz"));
  EXPECT_EQ(file->sync().error().code, ErrorCode::kIoError);
  EXPECT_EQ(disk.contents("/f"), "abc");
}

TEST(SimulatedDiskCrash, AHaltedDiskRefusesEverythingUntilTheCrash) {
  SimulatedDisk disk(1);
  auto file = create_durable(disk, "/f", "abc");
  disk.halt();
  const auto count = disk.operation_count();
  char byte = 0;
  EXPECT_FALSE(file->write(0, "x"));
  EXPECT_FALSE(file->read(0, &byte, 1));
  EXPECT_FALSE(file->sync());
  EXPECT_FALSE(file->size());
  EXPECT_FALSE(disk.open("/f", OpenMode::kReadOnly));
  EXPECT_FALSE(disk.open("/g", OpenMode::kCreate));
  EXPECT_FALSE(disk.rename("/f", "/g"));
  EXPECT_FALSE(disk.remove("/f"));
  EXPECT_FALSE(disk.make_directory("/d"));
  EXPECT_FALSE(disk.sync_directory("/"));
  EXPECT_FALSE(disk.lock("/"));
  EXPECT_FALSE(disk.list("/"));
  EXPECT_FALSE(disk.exists("/f"));
  EXPECT_EQ(disk.operation_count(), count);
  disk.crash();
  EXPECT_EQ(disk.list("/").value(), (std::vector<std::string>{"f"}));
  EXPECT_EQ(disk.contents("/f"), "abc");
}

std::uint64_t busy_life(std::uint64_t seed) {
  SimulatedDisk disk(seed);
  SeededRandom random(1);  // The same operations for every seed of the disk.
  for (int life = 0; life < 3; ++life) {
    for (int step = 0; step < 60; ++step) {
      const std::string path = "/f" + std::to_string(random.next_below(5));
      auto file = create(disk, path);
      EXPECT_TRUE(file->write(random.next_below(20'000), std::string(random.next_below(5000), 'x')));
      if (random.chance(0.2)) {
        EXPECT_TRUE(file->sync());
      }
      if (random.chance(0.1)) {
        EXPECT_TRUE(disk.rename(path, "/f9"));
      }
      if (random.chance(0.1)) {
        EXPECT_TRUE(disk.sync_directory("/"));
      }
    }
    disk.crash();
  }
  return disk.fingerprint();
}

TEST(SimulatedDiskCrash, SameSeedSameFateAndAnotherSeedAnother) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(busy_life(seed), busy_life(seed));
    EXPECT_NE(busy_life(seed), busy_life(seed + 1));
  }
}

TEST(SimulatedDiskCrash, ASeedForTheCrashAloneDecidesWhatSurvives) {
  SimulatedDisk disk(1);
  auto file = create_durable(disk, "/f", std::string(10 * kPageBytes, 'o'));
  ASSERT_TRUE(file->write(0, std::string(10 * kPageBytes, 'n')));
  std::set<std::uint64_t> different;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto one = disk.clone();
    const auto other = disk.clone();
    one->crash({.seed = seed});
    other->crash({.seed = seed});
    EXPECT_EQ(one->fingerprint(), other->fingerprint());
    different.insert(one->fingerprint());
  }
  EXPECT_GT(different.size(), 10u);
}

}  // namespace
}  // namespace bide::support
