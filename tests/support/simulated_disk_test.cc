#include "support/simulated_disk.h"

#include <thread>

#include <gtest/gtest.h>

#include "support/paged_content.h"
#include "support/seeded_random.h"

namespace bide::support {
namespace {

using platform::File;
using platform::OpenMode;

std::unique_ptr<File> create(platform::Disk& disk, const std::string& path) {
  return std::move(disk.open(path, OpenMode::kCreate)).value();
}

TEST(SimulatedDisk, WhatIsWrittenCanBeReadBack) {
  SimulatedDisk disk(1);
  auto file = create(disk, "/f");
  ASSERT_TRUE(file->write(0, "hello world"));
  ASSERT_TRUE(file->write(6, "there"));
  char buffer[32];
  EXPECT_EQ(file->read(0, buffer, sizeof buffer).value(), 11u);
  EXPECT_EQ(std::string(buffer, 11), "hello there");
  EXPECT_EQ(file->read(11, buffer, sizeof buffer).value(), 0u);
  EXPECT_EQ(disk.contents("f"), "hello there");
  EXPECT_EQ(disk.durable_contents("f"), "");
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(disk.durable_contents("f"), "hello there");
}

TEST(SimulatedDisk, BehavesLikeAPlainFileUnderAnyMixOfOperations) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SimulatedDisk disk(seed);
    SeededRandom random(seed);
    auto file = create(disk, "/f");
    std::string expected;
    for (int step = 0; step < 200; ++step) {
      const auto offset = random.next_below(20'000);
      switch (random.next_below(6)) {
        case 0:
          ASSERT_TRUE(file->sync());
          break;
        case 1:
          ASSERT_TRUE(file->truncate(offset));
          expected.resize(offset);
          break;
        case 2:
          ASSERT_TRUE(file->allocate(offset, random.next_below(9000)));
          break;
        default: {
          const std::string bytes(1 + random.next_below(9000), static_cast<char>('a' + random.next_below(26)));
          ASSERT_TRUE(file->write(offset, bytes));
          if (expected.size() < offset + bytes.size()) expected.resize(offset + bytes.size());
          expected.replace(offset, bytes.size(), bytes);
        }
      }
      ASSERT_EQ(file->size().value(), expected.size());
      ASSERT_EQ(disk.contents("/f"), expected) << "seed " << seed << " step " << step;
    }
    ASSERT_TRUE(file->sync());
    ASSERT_EQ(disk.durable_contents("/f"), expected);
  }
}

TEST(SimulatedDisk, PathsMayBeWrittenInSeveralWays) {
  SimulatedDisk disk(1);
  ASSERT_TRUE(disk.make_directory("/data/"));
  create(disk, "data//x");
  EXPECT_TRUE(disk.exists("/data/./x").value());
  EXPECT_EQ(disk.files(), (std::vector<std::string>{"/data/x"}));
}

TEST(SimulatedDisk, ListGivesSortedNamesOfOneDirectory) {
  SimulatedDisk disk(1);
  ASSERT_TRUE(disk.make_directory("/d"));
  create(disk, "/d/b");
  create(disk, "/d/a");
  create(disk, "/other");
  EXPECT_EQ(disk.list("/d").value(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(disk.list("/").value(), (std::vector<std::string>{"d", "other"}));
}

TEST(SimulatedDisk, RenameReplacesAndRemoveRemoves) {
  SimulatedDisk disk(1);
  ASSERT_TRUE(create(disk, "/old")->write(0, "old"));
  ASSERT_TRUE(create(disk, "/new")->write(0, "new"));
  ASSERT_TRUE(disk.rename("/new", "/old"));
  EXPECT_EQ(disk.contents("/old"), "new");
  EXPECT_EQ(disk.files().size(), 1u);
  ASSERT_TRUE(disk.remove("/old"));
  EXPECT_TRUE(disk.files().empty());
}

TEST(SimulatedDisk, ARenamedDirectoryTakesItsFilesAlong) {
  SimulatedDisk disk(1);
  ASSERT_TRUE(disk.make_directory("/a"));
  ASSERT_TRUE(create(disk, "/a/f")->write(0, "x"));
  ASSERT_TRUE(disk.rename("/a", "/b"));
  EXPECT_EQ(disk.contents("/b/f"), "x");
  EXPECT_FALSE(disk.exists("/a/f").value());
  EXPECT_EQ(disk.rename("/b", "/b/c").error().code, ErrorCode::kIoError);
}

TEST(SimulatedDisk, ErrorsAreThoseOfARealDisk) {
  SimulatedDisk disk(1);
  create(disk, "/f");
  const auto code = [](const auto& result) { return result.error().code; };
  EXPECT_EQ(disk.open("/no", OpenMode::kReadOnly).error().message, "cannot open /no: No such file or directory");
  EXPECT_EQ(code(disk.open("/no", OpenMode::kReadWrite)), ErrorCode::kNotFound);
  EXPECT_EQ(code(disk.open("/no/f", OpenMode::kCreate)), ErrorCode::kCannotCreate);
  EXPECT_EQ(code(disk.open("/f/below", OpenMode::kCreate)), ErrorCode::kCannotCreate);
  EXPECT_EQ(code(disk.make_directory("/no/d")), ErrorCode::kCannotCreate);
  EXPECT_EQ(code(disk.make_directory("/f")), ErrorCode::kCannotCreate);
  EXPECT_EQ(code(disk.remove("/no")), ErrorCode::kNotFound);
  EXPECT_EQ(code(disk.rename("/no", "/x")), ErrorCode::kNotFound);
  EXPECT_EQ(code(disk.list("/no")), ErrorCode::kNotFound);
  EXPECT_EQ(code(disk.sync_directory("/no")), ErrorCode::kNotFound);
  EXPECT_EQ(code(disk.lock("/no")), ErrorCode::kNotFound);
  EXPECT_FALSE(disk.exists("/f/below").value());
  auto read_only = std::move(disk.open("/f", OpenMode::kReadOnly)).value();
  EXPECT_EQ(code(read_only->write(0, "x")), ErrorCode::kIoError);
}

TEST(SimulatedDisk, AnOpenFileOutlivesItsNameAndTheDisk) {
  auto disk = std::make_unique<SimulatedDisk>(1);
  auto file = create(*disk, "/f");
  ASSERT_TRUE(file->write(0, "abc"));
  ASSERT_TRUE(disk->remove("/f"));
  disk.reset();
  EXPECT_EQ(file->size().value(), 3u);
}

TEST(SimulatedDisk, OnlyOneOwnerCanLockADirectoryAtATime) {
  SimulatedDisk disk(1);
  ASSERT_TRUE(disk.make_directory("/d"));
  {
    const auto first = disk.lock("/d");
    ASSERT_TRUE(first);
    const auto second = disk.lock("/d");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kBusy);
    EXPECT_EQ(second.error().message, "data directory /d is in use by process 1: stop it first");
  }
  EXPECT_TRUE(disk.lock("/d"));
}

TEST(SimulatedDisk, ACrashReleasesLocksAndAnOldOwnerCannotReleaseANewOnes) {
  SimulatedDisk disk(1);
  ASSERT_TRUE(disk.make_directory("/d"));
  ASSERT_TRUE(disk.sync_directory("/"));
  auto old_owner = disk.lock("/d");
  disk.crash();
  const auto new_owner = disk.lock("/d");
  ASSERT_TRUE(new_owner);
  old_owner = Error{ErrorCode::kIoError, "gone"};
  EXPECT_EQ(disk.lock("/d").error().code, ErrorCode::kBusy);
}

TEST(SimulatedDisk, ACloneAndItsOriginalGoTheirOwnWays) {
  SimulatedDisk disk(1);
  auto file = create(disk, "/f");
  ASSERT_TRUE(file->write(0, "one"));
  const auto copy = disk.clone();
  ASSERT_TRUE(file->write(0, "two"));
  auto other = std::move(copy->open("/f", OpenMode::kReadWrite)).value();
  ASSERT_TRUE(other->write(3, "!"));
  ASSERT_TRUE(copy->rename("/f", "/g"));
  EXPECT_EQ(disk.contents("/f"), "two");
  EXPECT_EQ(copy->contents("/g"), "one!");
}

TEST(SimulatedDisk, ACloneKnowsWhatWasNotSynced) {
  SimulatedDisk disk(1);
  auto file = create(disk, "/f");
  ASSERT_TRUE(file->write(0, "one"));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(disk.sync_directory("/"));
  ASSERT_TRUE(file->write(0, "two"));
  const auto copy = disk.clone();
  ASSERT_TRUE(file->sync());
  copy->crash({.unsynced = Survival::kNothing});
  EXPECT_EQ(copy->contents("/f"), "one");
  disk.crash({.unsynced = Survival::kNothing});
  EXPECT_EQ(disk.contents("/f"), "two");
}

TEST(SimulatedDisk, ClonesMayBeUsedInDifferentThreads) {
  SimulatedDisk disk(1);
  auto file = create(disk, "/f");
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(file->write(static_cast<std::uint64_t>(i) * 1000, std::string(1000, 'x')));
    threads.emplace_back([i, copy = std::shared_ptr<SimulatedDisk>(disk.clone())] {
      auto own = std::move(copy->open("/f", OpenMode::kReadWrite)).value();
      for (int round = 0; round < 20; ++round) EXPECT_TRUE(own->write(0, std::string(20'000, 'y')));
      copy->crash({.seed = static_cast<std::uint64_t>(i)});
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(disk.contents("/f"), std::string(20'000, 'x'));
}

TEST(SimulatedDisk, TheHookSeesEachOperationBeforeItHappens) {
  SimulatedDisk disk(1);
  std::vector<std::string> seen;
  disk.on_operation([&](const OperationInfo& info) {
    EXPECT_EQ(info.index, seen.size());
    seen.push_back(to_string(info.operation) + std::string(" ") + std::string(info.path));
    if (info.operation == Operation::kWrite) {
      EXPECT_EQ(info.offset, 5u);
      EXPECT_EQ(info.bytes, 3u);
      EXPECT_EQ(disk.contents("/d/f"), "");
    }
  });
  ASSERT_TRUE(disk.make_directory("/d"));
  auto file = create(disk, "/d/f");
  create(disk, "/d/f");  // Is there already: not an operation.
  ASSERT_TRUE(file->write(5, "abc"));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->allocate(0, 10));
  ASSERT_TRUE(file->truncate(2));
  ASSERT_TRUE(disk.rename("/d/f", "/d/g"));
  ASSERT_TRUE(disk.sync_directory("/d"));
  ASSERT_TRUE(disk.remove("/d/g"));
  char byte = 0;
  ASSERT_TRUE(file->read(0, &byte, 1));
  EXPECT_EQ(seen,
            (std::vector<std::string>{"make directory /d", "create /d/f", "write /d/f", "sync /d/f", "allocate /d/f",
                                      "truncate /d/f", "rename /d/f", "sync directory /d", "remove /d/g"}));
  EXPECT_EQ(disk.operation_count(), seen.size());
  EXPECT_EQ(disk.operation_count(Operation::kWrite), 1u);
  EXPECT_EQ(disk.operation_count(Operation::kRead), 1u);
}

TEST(SimulatedDisk, ImagesTakenByTheHookAreThoseOfEachBoundary) {
  SimulatedDisk disk(1);
  std::vector<std::unique_ptr<SimulatedDisk>> images;
  auto file = create(disk, "/f");
  disk.on_operation([&](const OperationInfo&) { images.push_back(disk.clone()); });
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(file->write(static_cast<std::uint64_t>(i), std::string(1, 'x')));
  ASSERT_EQ(images.size(), 10u);
  for (std::size_t i = 0; i < images.size(); ++i) EXPECT_EQ(images[i]->contents("/f").size(), i);
}

TEST(SimulatedDisk, TheTestsOwnHandsReachTheMediumAtOnce) {
  SimulatedDisk disk(1);
  auto file = create(disk, "/f");
  ASSERT_TRUE(file->write(0, std::string(10'000, 'a')));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(disk.sync_directory("/"));
  const auto untouched = disk.clone();
  disk.overwrite("/f", 4090, "0123456789");
  disk.flip_bit("/f", 0, 1);
  disk.truncate("/f", 5000);
  const auto expected = "c" + std::string(4089, 'a') + "0123456789" + std::string(900, 'a');
  EXPECT_EQ(disk.contents("/f"), expected);
  EXPECT_EQ(untouched->contents("/f"), std::string(10'000, 'a'));
  disk.crash({.unsynced = Survival::kNothing});
  EXPECT_EQ(disk.contents("/f"), expected);
}

TEST(SimulatedDisk, TheFingerprintIsThatOfTheDurableState) {
  SimulatedDisk disk(1);
  const auto empty = disk.fingerprint();
  auto file = create(disk, "/f");
  ASSERT_TRUE(file->write(0, "abc"));
  EXPECT_EQ(disk.fingerprint(), empty);
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(disk.fingerprint(), empty);
  ASSERT_TRUE(disk.sync_directory("/"));
  const auto named = disk.fingerprint();
  EXPECT_NE(named, empty);
  EXPECT_EQ(disk.clone()->fingerprint(), named);
  disk.flip_bit("/f", 2, 7);
  EXPECT_NE(disk.fingerprint(), named);
  disk.flip_bit("/f", 2, 7);
  EXPECT_EQ(disk.fingerprint(), named);
  ASSERT_TRUE(disk.rename("/f", "/g"));
  EXPECT_EQ(disk.fingerprint(), named);
  ASSERT_TRUE(disk.sync_directory("/"));
  EXPECT_NE(disk.fingerprint(), named);
}

}  // namespace
}  // namespace bide::support
