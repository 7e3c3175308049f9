#include <set>

#include <gtest/gtest.h>

#include "support/paged_content.h"
#include "support/simulated_disk.h"

namespace bide::support {
namespace {

using platform::File;
using platform::OpenMode;

constexpr CrashOptions kLoseAll{.unsynced = Survival::kNothing};

class SimulatedDiskFault : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(file_->write(0, "old"));
    ASSERT_TRUE(file_->sync());
    ASSERT_TRUE(disk_.sync_directory("/"));
  }

  SimulatedDisk disk_{1};
  std::unique_ptr<File> file_ = std::move(disk_.open("/f", OpenMode::kCreate)).value();
};

TEST_F(SimulatedDiskFault, TheNthWriteFailsOnceAndChangesNothing) {
  disk_.plan({.operation = Operation::kWrite, .nth = 2});
  EXPECT_TRUE(file_->write(0, "one"));
  const auto failed = file_->write(0, "two");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kIoError);
  EXPECT_EQ(failed.error().message, "cannot write /f: Input/output error");
  EXPECT_EQ(disk_.contents("/f"), "one");
  EXPECT_TRUE(file_->write(0, "six"));
  EXPECT_EQ(disk_.faults_fired(), 1u);
  EXPECT_EQ(disk_.faults_outstanding(), 0u);
}

TEST_F(SimulatedDiskFault, AFaultCanGoOnForAWhile) {
  disk_.plan({.operation = Operation::kRead, .times = 3});
  char byte = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(disk_.faults_outstanding(), 3u - static_cast<unsigned>(i));
    EXPECT_EQ(file_->read(0, &byte, 1).error().code, ErrorCode::kIoError);
  }
  EXPECT_TRUE(file_->read(0, &byte, 1));
}

TEST_F(SimulatedDiskFault, OperationsOfOtherKindsAreNotCounted) {
  disk_.plan({.operation = Operation::kRename});
  EXPECT_TRUE(file_->write(0, "new"));
  EXPECT_TRUE(file_->sync());
  EXPECT_EQ(disk_.faults_outstanding(), 1u);
  EXPECT_FALSE(disk_.rename("/f", "/g"));
  EXPECT_TRUE(disk_.exists("/f").value());
}

TEST_F(SimulatedDiskFault, EveryOperationOnNamesCanFail) {
  for (const auto operation : {Operation::kCreate, Operation::kRename, Operation::kRemove, Operation::kMakeDirectory,
                               Operation::kSyncDirectory, Operation::kAllocate, Operation::kTruncate}) {
    disk_.plan({.operation = operation, .fault = Fault::kDiskFull});
  }
  EXPECT_EQ(disk_.open("/g", OpenMode::kCreate).error().code, ErrorCode::kDiskFull);
  EXPECT_EQ(disk_.rename("/f", "/g").error().code, ErrorCode::kDiskFull);
  EXPECT_EQ(disk_.remove("/f").error().code, ErrorCode::kDiskFull);
  EXPECT_EQ(disk_.make_directory("/d").error().code, ErrorCode::kDiskFull);
  EXPECT_EQ(disk_.sync_directory("/").error().code, ErrorCode::kDiskFull);
  EXPECT_EQ(file_->allocate(0, 1).error().code, ErrorCode::kDiskFull);
  EXPECT_EQ(file_->truncate(0).error().code, ErrorCode::kDiskFull);
  EXPECT_EQ(disk_.files(), (std::vector<std::string>{"/f"}));
  EXPECT_EQ(disk_.contents("/f"), "old");
}

TEST_F(SimulatedDiskFault, AShortWriteLeavesABeginningAndFails) {
  std::set<std::size_t> lengths;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(file_->truncate(0));
    disk_.plan({.operation = Operation::kWrite, .fault = Fault::kShortWrite});
    ASSERT_EQ(file_->write(0, std::string(10'000, 'x')).error().code, ErrorCode::kIoError);
    const auto content = disk_.contents("/f");
    ASSERT_EQ(content, std::string(content.size(), 'x'));
    ASSERT_LT(content.size(), 10'000u);
    lengths.insert(content.size());
  }
  EXPECT_GT(lengths.size(), 10u);
}

TEST_F(SimulatedDiskFault, AfterAFailedSyncTheNextSucceedsAndTheDataIsLostAllTheSame) {
  bool lost = false;
  bool arrived = false;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SimulatedDisk disk(seed);
    auto file = std::move(disk.open("/f", OpenMode::kCreate)).value();
    ASSERT_TRUE(file->write(0, "old"));
    ASSERT_TRUE(file->sync());
    ASSERT_TRUE(disk.sync_directory("/"));
    ASSERT_TRUE(file->write(0, "new"));
    disk.plan({.operation = Operation::kSync});
    ASSERT_EQ(file->sync().error().code, ErrorCode::kIoError);
    EXPECT_EQ(disk.contents("/f"), "new");
    ASSERT_TRUE(file->sync());
    EXPECT_EQ(disk.contents("/f"), "new");
    disk.crash(kLoseAll);
    lost = lost || disk.contents("/f") == "old";
    arrived = arrived || disk.contents("/f") == "new";
  }
  EXPECT_TRUE(lost);
  EXPECT_TRUE(arrived);
}

TEST_F(SimulatedDiskFault, AfterAFailedSyncAPageThatIsWrittenAgainIsSafeAgain) {
  ASSERT_TRUE(file_->write(0, std::string(3 * kPageBytes, 'x')));
  disk_.plan({.operation = Operation::kSync});
  ASSERT_FALSE(file_->sync());
  ASSERT_TRUE(file_->write(0, std::string(3 * kPageBytes, 'y')));
  ASSERT_TRUE(file_->sync());
  disk_.crash();
  EXPECT_EQ(disk_.contents("/f"), std::string(3 * kPageBytes, 'y'));
}

TEST_F(SimulatedDiskFault, AfterAFailedDirectorySyncTheNextSucceedsWithoutTheNames) {
  std::move(disk_.open("/g", OpenMode::kCreate)).value();
  disk_.plan({.operation = Operation::kSyncDirectory});
  ASSERT_FALSE(disk_.sync_directory("/"));
  ASSERT_TRUE(disk_.sync_directory("/"));
  disk_.crash(kLoseAll);
  EXPECT_EQ(disk_.files(), (std::vector<std::string>{"/f"}));
}

TEST_F(SimulatedDiskFault, AWriteStopsWhereTheDiskIsFull) {
  disk_.set_capacity(disk_.used_bytes() + 2 * kPageBytes);
  const auto failed = file_->write(0, std::string(10 * kPageBytes, 'x'));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kDiskFull);
  EXPECT_EQ(failed.error().message, "cannot write /f: No space left on device");
  EXPECT_EQ(disk_.contents("/f"), std::string(3 * kPageBytes, 'x'));
  EXPECT_TRUE(file_->write(0, std::string(3 * kPageBytes, 'y')));  // Its own pages are not new.
  disk_.set_capacity(UINT64_MAX);
  EXPECT_TRUE(file_->write(0, std::string(10 * kPageBytes, 'z')));
}

TEST_F(SimulatedDiskFault, AllocatedSpaceIsThereWhenTheDiskIsFull) {
  ASSERT_TRUE(file_->allocate(0, 4 * kPageBytes));
  EXPECT_EQ(disk_.used_bytes(), 4 * kPageBytes);
  EXPECT_EQ(file_->size().value(), 3u);
  disk_.set_capacity(0);
  EXPECT_TRUE(file_->write(0, std::string(4 * kPageBytes, 'x')));
  EXPECT_EQ(file_->write(4 * kPageBytes, "x").error().code, ErrorCode::kDiskFull);
  EXPECT_EQ(file_->allocate(0, 5 * kPageBytes).error().code, ErrorCode::kDiskFull);
  EXPECT_EQ(disk_.used_bytes(), 4 * kPageBytes);
}

TEST_F(SimulatedDiskFault, TruncatingAndRemovingGiveSpaceBack) {
  ASSERT_TRUE(file_->write(0, std::string(4 * kPageBytes, 'x')));
  ASSERT_TRUE(file_->truncate(kPageBytes + 1));
  EXPECT_EQ(disk_.used_bytes(), 2 * kPageBytes);
  ASSERT_TRUE(disk_.remove("/f"));
  EXPECT_EQ(disk_.used_bytes(), 2 * kPageBytes);  // Still open.
  file_.reset();
  EXPECT_EQ(disk_.used_bytes(), 0u);
}

TEST_F(SimulatedDiskFault, SyncedReservationsSurviveACrashAndUnsyncedOnesMayNot) {
  ASSERT_TRUE(file_->allocate(0, 2 * kPageBytes));
  ASSERT_TRUE(file_->sync());
  ASSERT_TRUE(file_->allocate(0, 8 * kPageBytes));
  disk_.crash(kLoseAll);
  EXPECT_EQ(disk_.used_bytes(), 2 * kPageBytes);
}

}  // namespace
}  // namespace bide::support
