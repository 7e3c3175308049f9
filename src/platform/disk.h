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

}  // namespace bide::platform
