#include "platform/disk.h"

#include <sys/file.h>
#include <unistd.h>
#include <cerrno>
#include <string_view>

#include "platform/descriptor.h"

namespace bide::platform {
namespace {

class FileLock final : public DirectoryLock {
 public:
  explicit FileLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  ~FileLock() override {
    // So that the next owner is not mistaken for this one in the moment before it has written its own pid.
    [[maybe_unused]] const int ignored = ::ftruncate(descriptor_.get(), 0);
  }

 private:
  const Descriptor descriptor_;
};

class SharedLock final : public DirectoryLock {
 public:
  explicit SharedLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

 private:
  const Descriptor descriptor_;
};

int lock_file(int descriptor, int how) {
  int outcome = 0;
  do {
    outcome = ::flock(descriptor, how | LOCK_NB);
  } while (outcome != 0 && errno == EINTR);
  return outcome;
}

std::string read_pid(int descriptor) {
  char text[32];
  const auto size = ::pread(descriptor, text, sizeof text, 0);
  const std::string_view all(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  return std::string(all.substr(0, all.find_first_not_of("0123456789")));
}

}  // namespace

Error directory_busy(const std::string& directory, const std::string& pid) {
  const std::string owner = pid.empty() ? "another process" : "process " + pid;
  return Error{ErrorCode::kBusy,
               "data directory " + directory + " is in use by " + owner + ": stop it first"};
}

Result<std::unique_ptr<DirectoryLock>> lock_directory(const std::string& directory) {
  const std::string path = directory + "/" + kLockFileName;
  auto descriptor = Descriptor::open(path, O_RDWR | O_CREAT, 0640);
  if (!descriptor.valid()) return system_error(errno, "open", path);

  const int outcome = lock_file(descriptor.get(), LOCK_EX);
  if (outcome != 0 && errno == EWOULDBLOCK) return directory_busy(directory, read_pid(descriptor.get()));
  if (outcome != 0) return system_error(errno, "lock", path);

  // The pid is for people. A full disk must not keep anybody from opening the data to make room in it.
  const std::string pid = std::to_string(::getpid()) + "\n";
  [[maybe_unused]] const int cut = ::ftruncate(descriptor.get(), 0);
  [[maybe_unused]] const auto written = ::pwrite(descriptor.get(), pid.data(), pid.size(), 0);
  return std::unique_ptr<DirectoryLock>(std::make_unique<FileLock>(std::move(descriptor)));
}

Result<std::unique_ptr<DirectoryLock>> share_directory(const std::string& directory) {
  const std::string path = directory + "/" + kLockFileName;
  auto descriptor = Descriptor::open(path, O_RDONLY);
  if (!descriptor.valid() && errno == ENOENT) return std::unique_ptr<DirectoryLock>();
  if (!descriptor.valid()) return system_error(errno, "open", path);
  const int outcome = lock_file(descriptor.get(), LOCK_SH);
  if (outcome != 0 && errno == EWOULDBLOCK) return directory_busy(directory, read_pid(descriptor.get()));
  if (outcome != 0) return system_error(errno, "lock", path);
  return std::unique_ptr<DirectoryLock>(std::make_unique<SharedLock>(std::move(descriptor)));
}

}  // namespace bide::platform
