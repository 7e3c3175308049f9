// Disk and File: every touch of the file system by the engine goes through here, so that a simulated disk can take its
// place. Errors: kDiskFull for ENOSPC, EDQUOT and EFBIG, kOverloaded when there are no more descriptors or no more memory,
// kPermissionDenied, kNotFound, kCannotCreate, kIoError for the rest; the message names the path and the system's reason.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bide/result.h"

namespace bide::platform {

// Not safe to share between threads, except that read() may run beside anything.
class File {
 public:
  virtual ~File() = default;

  // All of it or an error; after an error any part of the range may have changed.
  virtual Status write(std::uint64_t offset, std::string_view bytes) = 0;
  // Fewer bytes than asked for only at the end of the file.
  virtual Result<std::size_t> read(std::uint64_t offset, char* into, std::size_t size) = 0;
  // On success everything written so far survives power loss. After an error nothing may be assumed: do not try again.
  virtual Status sync() = 0;
  // Takes the space for this range from the file system without changing size or content. kUnsupported: the file system
  // cannot, and only what is written has its space.
  virtual Status allocate(std::uint64_t offset, std::uint64_t size) = 0;
  virtual Status truncate(std::uint64_t size) = 0;
  virtual Result<std::uint64_t> size() = 0;
};

enum class OpenMode { kReadOnly, kReadWrite, kCreate };  // kCreate: read and write, made when it is not there.

// Held until destroyed, and by the kernel until the process ends.
class DirectoryLock {
 public:
  virtual ~DirectoryLock() = default;
};

class Disk {
 public:
  virtual ~Disk() = default;

  virtual Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) = 0;
  virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;  // Names, sorted, without . and ..
  virtual Result<bool> exists(const std::string& path) = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;  // Replaces.
  virtual Status remove(const std::string& path) = 0;
  virtual Status make_directory(const std::string& path) = 0;  // Fine when it is there; its parent must be.
  // Created, renamed and removed names of this directory survive power loss.
  virtual Status sync_directory(const std::string& path) = 0;
  // kBusy when another process, or another owner in this one, holds it: the message names its pid.
  virtual Result<std::unique_ptr<DirectoryLock>> lock(const std::string& directory) = 0;
};

// Writes zeros from one offset to another: they take space where allocate() cannot.
Status write_zeros(File& file, std::uint64_t from, std::uint64_t to);

// Of the process: how large a file may become.
std::uint64_t file_size_limit();

Disk& real_disk();

// The checksum of the on-disk formats: XXH3, 64 bits. The seed is usually the address of the bytes, so that bytes that
// belong elsewhere do not pass.
std::uint64_t checksum(std::string_view bytes, std::uint64_t seed);

// One owner for a data directory, by a file `lock` in it that is locked and holds the owner's pid. The kernel lets go when
// the owner ends, however it ends; the file stays, since removing it would let two owners lock two different files of the
// same name.
inline constexpr char kLockFileName[] = "lock";

// "data directory /x is in use by process 1234: stop it first". An empty pid is one not yet written.
Error directory_busy(const std::string& directory, const std::string& pid);

// kBusy; kNotFound when there is no such directory; kPermissionDenied when it cannot be written to.
Result<std::unique_ptr<DirectoryLock>> lock_directory(const std::string& directory);

// For readers of a store that nobody has open: keeps owners out while it is held, and writes nothing. Readers do not mind
// one another. Null when there is no lock file, so nobody ever had it open. kBusy.
Result<std::unique_ptr<DirectoryLock>> share_directory(const std::string& directory);

// The one place where an errno becomes an Error, so that the real and the simulated disk answer alike. kCreate: something new
// was to be made, so a missing or unsuitable place is kCannotCreate instead of kNotFound.
enum class Purpose { kUse, kCreate };

// "cannot open /x/y: Permission denied"
Error system_error(int error_number, std::string_view action, std::string_view path, Purpose purpose = Purpose::kUse);

// "cannot rename /x/a to /x/b: No such file or directory"
Error rename_error(int error_number, std::string_view from, std::string_view to);

}  // namespace bide::platform
