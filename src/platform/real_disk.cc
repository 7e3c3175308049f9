#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "platform/descriptor.h"
#include "platform/disk.h"

namespace bide::platform {
namespace {

// Bodies of jobs may be secret: nothing for others; the group may read, for backups.
constexpr mode_t kFileMode = 0640;
constexpr mode_t kDirectoryMode = 0750;

class RealFile final : public File {
 public:
  RealFile(Descriptor descriptor, std::string path) : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  Status write(std::uint64_t offset, std::string_view bytes) override {
    if (offset + bytes.size() > file_size_limit()) return system_error(EFBIG, "write", path_);
    while (!bytes.empty()) {
      const auto written = ::pwrite(descriptor_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      // Zero is not an error to the kernel, but trying again could go on for ever.
      if (written <= 0) return system_error(written < 0 ? errno : EIO, "write", path_);
      offset += static_cast<std::uint64_t>(written);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
  }

  Result<std::size_t> read(std::uint64_t offset, char* into, std::size_t size) override {
    std::size_t done = 0;
    while (done < size) {
      const auto got = ::pread(descriptor_.get(), into + done, size - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return system_error(errno, "read", path_);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  // Once, whatever it says: after a failure the kernel counts the lost pages as clean, and a second call would succeed.
  Status sync() override {
    if (::fdatasync(descriptor_.get()) != 0) return system_error(errno, "sync", path_);
    return {};
  }

  Status allocate(std::uint64_t offset, std::uint64_t size) override {
    if (size == 0) return {};
    // The kernel takes space beyond the limit, too, and refuses to write into it.
    if (offset + size > file_size_limit()) return system_error(EFBIG, "allocate", path_);
    int outcome = 0;
    do {
      outcome =
          ::fallocate(descriptor_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(size));
    } while (outcome != 0 && errno == EINTR);
    if (outcome != 0) return system_error(errno, "allocate", path_);
    return {};
  }

  Status truncate(std::uint64_t size) override {
    if (size > file_size_limit()) return system_error(EFBIG, "truncate", path_);
    int outcome = 0;
    do {
      outcome = ::ftruncate(descriptor_.get(), static_cast<off_t>(size));
    } while (outcome != 0 && errno == EINTR);
    if (outcome != 0) return system_error(errno, "truncate", path_);
    return {};
  }

  Result<std::uint64_t> size() override {
    struct stat status {};
    if (::fstat(descriptor_.get(), &status) != 0) return system_error(errno, "measure", path_);
    return static_cast<std::uint64_t>(status.st_size);
  }

 private:
  const Descriptor descriptor_;
  const std::string path_;
};

class RealDisk final : public Disk {
 public:
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    int flags = O_RDONLY;
    if (mode == OpenMode::kReadWrite) flags = O_RDWR;
    if (mode == OpenMode::kCreate) flags = O_RDWR | O_CREAT;
    auto descriptor = Descriptor::open(path, flags, kFileMode);
    if (!descriptor.valid()) {
      return system_error(errno, "open", path, mode == OpenMode::kCreate ? Purpose::kCreate : Purpose::kUse);
    }
    return std::unique_ptr<File>(std::make_unique<RealFile>(std::move(descriptor), path));
  }

  Result<std::vector<std::string>> list(const std::string& directory) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), ::closedir);
    if (!stream) return system_error(errno, "list", directory);
    std::vector<std::string> names;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(stream.get());
      if (entry == nullptr) break;
      std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(std::move(name));
    }
    if (errno != 0) return system_error(errno, "list", directory);
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<bool> exists(const std::string& path) override {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return system_error(errno, "look for", path);
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return rename_error(errno, from, to);
    return {};
  }

  Status remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return system_error(errno, "remove", path);
    return {};
  }

  Status make_directory(const std::string& path) override {
    if (::mkdir(path.c_str(), kDirectoryMode) == 0) return {};
    const int reason = errno;
    struct stat status {};
    if (reason == EEXIST && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return {};
    return system_error(reason, "make directory", path, Purpose::kCreate);
  }

  Status sync_directory(const std::string& path) override {
    const auto descriptor = Descriptor::open(path, O_RDONLY | O_DIRECTORY);
    if (!descriptor.valid()) return system_error(errno, "open", path);
    // EINVAL: a file system that has no sync for directories, because it keeps their order by itself.
    if (::fsync(descriptor.get()) != 0 && errno != EINVAL) return system_error(errno, "sync", path);
    return {};
  }

  Result<std::unique_ptr<DirectoryLock>> lock(const std::string& directory) override {
    return lock_directory(directory);
  }
};

}  // namespace

Status write_zeros(File& file, std::uint64_t from, std::uint64_t to) {
  static const std::string zeros(64 << 10, '\0');
  while (from < to) {
    const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(zeros.size(), to - from));
    if (Status written = file.write(from, std::string_view(zeros).substr(0, size)); !written) return written;
    from += size;
  }
  return {};
}

// Asked for before each growth: writing beyond it is the end of a process that does not ignore SIGXFSZ.
std::uint64_t file_size_limit() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

Disk& real_disk() {
  static RealDisk disk;
  return disk;
}

std::uint64_t checksum(std::string_view bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace bide::platform
