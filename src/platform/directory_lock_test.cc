
#include <sys/fsuid.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "platform/disk.h"
#include "support/temporary_directory.h"

namespace bide::platform {
namespace {

class DirectoryLockTest : public ::testing::Test {
 protected:
  std::string busy_with(pid_t pid) const {
    return "data directory " + folder_.path() + " is in use by process " + std::to_string(pid) +
           ": stop it first";
  }

  support::TemporaryDirectory folder_;
};

TEST_F(DirectoryLockTest, ASecondOwnerInTheSameProcessIsRefused) {
  const auto first = real_disk().lock(folder_.path());
  ASSERT_TRUE(first);
  const auto second = real_disk().lock(folder_.path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kBusy);
  EXPECT_EQ(second.error().message, busy_with(::getpid()));
}

TEST_F(DirectoryLockTest, ItIsFreeAgainOnceTheOwnerLetGo) {
  { ASSERT_TRUE(real_disk().lock(folder_.path())); }
  EXPECT_TRUE(real_disk().lock(folder_.path()));
}

TEST_F(DirectoryLockTest, AnotherProcessIsNamedAndItsDeathFreesTheLock) {
  int ready[2];
  int hold[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(hold), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(hold[1]);  // So that the child ends with its parent, however that comes about.
    const auto lock = real_disk().lock(folder_.path());
    char answer = lock ? 'y' : 'n';
    if (::write(ready[1], &answer, 1) == 1 && ::read(hold[0], &answer, 1) == 0) ::_exit(0);
    ::_exit(1);
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');

  const auto refused = real_disk().lock(folder_.path());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kBusy);
  EXPECT_EQ(refused.error().message, busy_with(child));

  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(real_disk().lock(folder_.path()));
  for (const int end : {ready[0], ready[1], hold[0], hold[1]}) ::close(end);
}

TEST_F(DirectoryLockTest, AnOwnerThatHasNotWrittenItsPidYetIsAnotherProcess) {
  const auto lock = real_disk().lock(folder_.path());
  ASSERT_TRUE(lock);
  std::filesystem::resize_file(folder_.path() + "/lock", 0);
  EXPECT_EQ(real_disk().lock(folder_.path()).error().message,
            "data directory " + folder_.path() + " is in use by another process: stop it first");
}

TEST_F(DirectoryLockTest, TheDirectoryMustExist) {
  const auto lock = real_disk().lock(folder_.path() + "/no");
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(lock.error().message, "cannot open " + folder_.path() + "/no/lock: No such file or directory");

  std::ofstream(folder_.path() + "/file") << "x";
  EXPECT_EQ(real_disk().lock(folder_.path() + "/file").error().code, ErrorCode::kNotFound);
}

TEST_F(DirectoryLockTest, ADirectoryThatCannotBeWrittenToIsPermissionDenied) {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  // For root no mode is a hindrance: touch files as nobody meanwhile. For anybody else this changes nothing.
  const int before = ::setfsuid(65534);
  const auto lock = real_disk().lock(folder_.path());
  ::setfsuid(static_cast<uid_t>(before));
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(lock.error().message, "cannot open " + folder_.path() + "/lock: Permission denied");
}

}  // namespace
}  // namespace bide::platform
