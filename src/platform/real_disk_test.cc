#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "platform/disk.h"
#include "support/temporary_directory.h"

namespace bide::platform {
namespace {

class RealDisk : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  std::unique_ptr<File> create(const std::string& name) {
    return std::move(disk_.open(path(name), OpenMode::kCreate)).value();
  }

  std::string content(const std::string& name) const {
    std::ifstream stream(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  void expect_error(const Error& error, ErrorCode code, const std::string& message) {
    EXPECT_EQ(error.code, code) << error.message;
    EXPECT_EQ(error.message, message);
  }

  Disk& disk_ = real_disk();
  support::TemporaryDirectory folder_;
};

TEST_F(RealDisk, WhatIsWrittenCanBeReadBack) {
  auto file = create("f");
  ASSERT_TRUE(file->write(0, "hello world"));
  ASSERT_TRUE(file->write(6, "there"));
  char buffer[16];
  EXPECT_EQ(file->read(0, buffer, 11).value(), 11u);
  EXPECT_EQ(std::string(buffer, 11), "hello there");
  EXPECT_EQ(content("f"), "hello there");
}

TEST_F(RealDisk, ReadingStopsOnlyAtTheEndOfTheFile) {
  auto file = create("f");
  ASSERT_TRUE(file->write(0, "abcdef"));
  char buffer[16];
  EXPECT_EQ(file->read(4, buffer, sizeof buffer).value(), 2u);
  EXPECT_EQ(file->read(6, buffer, sizeof buffer).value(), 0u);
  EXPECT_EQ(file->read(100, buffer, sizeof buffer).value(), 0u);
}

TEST_F(RealDisk, AGapInAFileReadsAsZeros) {
  auto file = create("f");
  ASSERT_TRUE(file->write(5000, "x"));
  EXPECT_EQ(file->size().value(), 5001u);
  EXPECT_EQ(content("f"), std::string(5000, '\0') + "x");
}

TEST_F(RealDisk, SyncSucceedsOnAFileAndOnItsDirectory) {
  auto file = create("f");
  ASSERT_TRUE(file->write(0, "abc"));
  EXPECT_TRUE(file->sync());
  EXPECT_TRUE(disk_.sync_directory(folder_.path()));
}

TEST_F(RealDisk, AllocateTakesSpaceButChangesNeitherSizeNorContent) {
  auto file = create("f");
  ASSERT_TRUE(file->write(0, "abc"));
  ASSERT_TRUE(file->allocate(0, 1 << 20));
  EXPECT_TRUE(file->allocate(0, 0));
  EXPECT_EQ(file->size().value(), 3u);
  EXPECT_EQ(content("f"), "abc");
}

TEST_F(RealDisk, AllocateSaysSoWhereTheFileSystemCannot) {
  // A file of procfs is a regular one whose file system has no fallocate.
  auto file = disk_.open("/proc/self/comm", OpenMode::kReadWrite);
  ASSERT_TRUE(file);
  EXPECT_EQ((*file)->allocate(0, 4096).error().code, ErrorCode::kUnsupported);
}

TEST_F(RealDisk, TruncateCutsAndExtends) {
  auto file = create("f");
  ASSERT_TRUE(file->write(0, "abcdef"));
  ASSERT_TRUE(file->truncate(2));
  EXPECT_EQ(content("f"), "ab");
  ASSERT_TRUE(file->truncate(4));
  EXPECT_EQ(content("f"), std::string("ab\0\0", 4));
}

TEST_F(RealDisk, CreateKeepsWhatIsThere) {
  ASSERT_TRUE(create("f")->write(0, "abc"));
  EXPECT_EQ(create("f")->size().value(), 3u);
}

TEST_F(RealDisk, FilesAreClosedToOthersAndToProgramsThatAreStarted) {
  const auto file = create("f");
  ASSERT_TRUE(disk_.make_directory(path("d")));
  EXPECT_EQ(std::filesystem::status(path("f")).permissions() & std::filesystem::perms::others_all,
            std::filesystem::perms::none);
  EXPECT_EQ(std::filesystem::status(path("d")).permissions() & std::filesystem::perms::others_all,
            std::filesystem::perms::none);
  const auto lock = disk_.lock(folder_.path());
  ASSERT_TRUE(lock);
  int ours = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (!target.starts_with(folder_.path())) continue;
    ++ours;
    EXPECT_NE(::fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC, 0) << target;
  }
  EXPECT_EQ(ours, 2);
}

TEST_F(RealDisk, ListGivesSortedNames) {
  create("b");
  create("a");
  ASSERT_TRUE(disk_.make_directory(path("c")));
  EXPECT_EQ(disk_.list(folder_.path()).value(), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(RealDisk, ExistsTellsFilesAndDirectoriesFromNothing) {
  create("f");
  EXPECT_TRUE(disk_.exists(path("f")).value());
  EXPECT_TRUE(disk_.exists(folder_.path()).value());
  EXPECT_FALSE(disk_.exists(path("g")).value());
  EXPECT_FALSE(disk_.exists(path("f/below")).value());
}

TEST_F(RealDisk, RenameReplaces) {
  ASSERT_TRUE(create("old")->write(0, "old"));
  ASSERT_TRUE(create("new")->write(0, "new"));
  ASSERT_TRUE(disk_.rename(path("new"), path("old")));
  EXPECT_EQ(content("old"), "new");
  EXPECT_EQ(disk_.list(folder_.path()).value(), (std::vector<std::string>{"old"}));
}

TEST_F(RealDisk, RemoveDeletesAFile) {
  create("f");
  ASSERT_TRUE(disk_.remove(path("f")));
  EXPECT_FALSE(disk_.exists(path("f")).value());
}

TEST_F(RealDisk, MakeDirectoryIsFineWithOneThatIsThere) {
  EXPECT_TRUE(disk_.make_directory(path("d")));
  EXPECT_TRUE(disk_.make_directory(path("d")));
  EXPECT_TRUE(disk_.list(path("d")).value().empty());
}

TEST_F(RealDisk, AMissingFileIsNotFound) {
  expect_error(disk_.open(path("f"), OpenMode::kReadOnly).error(), ErrorCode::kNotFound,
               "cannot open " + path("f") + ": No such file or directory");
  expect_error(disk_.open(path("f"), OpenMode::kReadWrite).error(), ErrorCode::kNotFound,
               "cannot open " + path("f") + ": No such file or directory");
  expect_error(disk_.remove(path("f")).error(), ErrorCode::kNotFound,
               "cannot remove " + path("f") + ": No such file or directory");
  expect_error(disk_.rename(path("f"), path("g")).error(), ErrorCode::kNotFound,
               "cannot rename " + path("f") + " to " + path("g") + ": No such file or directory");
  expect_error(disk_.list(path("f")).error(), ErrorCode::kNotFound,
               "cannot list " + path("f") + ": No such file or directory");
  expect_error(disk_.sync_directory(path("f")).error(), ErrorCode::kNotFound,
               "cannot open " + path("f") + ": No such file or directory");
}

TEST_F(RealDisk, WhatCannotBeMadeSaysSo) {
  create("f");
  expect_error(disk_.open(path("f/below"), OpenMode::kCreate).error(), ErrorCode::kCannotCreate,
               "cannot open " + path("f/below") + ": Not a directory");
  expect_error(disk_.open(path("no/f"), OpenMode::kCreate).error(), ErrorCode::kCannotCreate,
               "cannot open " + path("no/f") + ": No such file or directory");
  expect_error(disk_.make_directory(path("no/d")).error(), ErrorCode::kCannotCreate,
               "cannot make directory " + path("no/d") + ": No such file or directory");
  expect_error(disk_.make_directory(path("f")).error(), ErrorCode::kCannotCreate,
               "cannot make directory " + path("f") + ": File exists");
}

TEST_F(RealDisk, AFullDeviceIsDiskFull) {
  auto full = disk_.open("/dev/full", OpenMode::kReadWrite);
  ASSERT_TRUE(full);
  expect_error((*full)->write(0, "x").error(), ErrorCode::kDiskFull, "cannot write /dev/full: No space left on device");
}

TEST_F(RealDisk, AFailedSyncIsAnError) {
  auto device = disk_.open("/dev/null", OpenMode::kReadWrite);
  ASSERT_TRUE(device);
  expect_error((*device)->sync().error(), ErrorCode::kIoError, "cannot sync /dev/null: Invalid argument");
}

TEST_F(RealDisk, WritingThroughAReadOnlyFileIsAnError) {
  create("f");
  auto file = disk_.open(path("f"), OpenMode::kReadOnly);
  ASSERT_TRUE(file);
  expect_error((*file)->write(0, "x").error(), ErrorCode::kIoError,
               "cannot write " + path("f") + ": Bad file descriptor");
  EXPECT_EQ((*file)->truncate(0).error().code, ErrorCode::kIoError);
}

TEST_F(RealDisk, ReadingADirectoryIsAnError) {
  auto file = disk_.open(folder_.path(), OpenMode::kReadOnly);
  ASSERT_TRUE(file);
  char byte = 0;
  expect_error((*file)->read(0, &byte, 1).error(), ErrorCode::kIoError,
               "cannot read " + folder_.path() + ": Is a directory");
}

TEST_F(RealDisk, AFileThatWouldBeLargerThanTheProcessMayMakeItIsAFullDiskAndNoSignal) {
  auto file = create("f");
  ASSERT_TRUE(file->write(0, "before"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 10'000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::uint64_t limit = file_size_limit();
  const auto written = file->write(0, std::string(20'000, 'x'));
  const auto allocated = file->allocate(0, 20'000);
  const auto grown = file->truncate(20'000);
  const auto fits = file->write(9'990, std::string(10, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(limit, 10'000u);
  expect_error(written.error(), ErrorCode::kDiskFull, "cannot write " + path("f") + ": File too large");
  expect_error(allocated.error(), ErrorCode::kDiskFull, "cannot allocate " + path("f") + ": File too large");
  expect_error(grown.error(), ErrorCode::kDiskFull, "cannot truncate " + path("f") + ": File too large");
  EXPECT_TRUE(fits);
  EXPECT_EQ(content("f").substr(0, 6), "before");
}

}  // namespace
}  // namespace bide::platform
