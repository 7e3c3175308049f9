// ReadingDisk: the real disk, with a progress bar for those who look while a large store is read from it.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal.h"
#include "platform/disk.h"

namespace bide::cli {

class ReadingDisk : public platform::Disk {
 public:
  // The bar is full when as many bytes have been read as the directory holds.
  ReadingDisk(const std::string& directory, std::string_view what);

  Result<std::unique_ptr<platform::File>> open(const std::string& path, platform::OpenMode mode) override;
  Result<std::vector<std::string>> list(const std::string& directory) override { return real_.list(directory); }
  Result<bool> exists(const std::string& path) override { return real_.exists(path); }
  Status rename(const std::string& from, const std::string& to) override { return real_.rename(from, to); }
  Status remove(const std::string& path) override { return real_.remove(path); }
  Status make_directory(const std::string& path) override { return real_.make_directory(path); }
  Status sync_directory(const std::string& path) override { return real_.sync_directory(path); }
  Result<std::unique_ptr<platform::DirectoryLock>> lock(const std::string& directory) override {
    return real_.lock(directory);
  }

  void note(std::uint64_t bytes);

 private:
  platform::Disk& real_ = platform::real_disk();
  const std::string what_;
  const std::uint64_t all_;
  std::uint64_t read_ = 0;
  std::uint64_t shown_ = 0;
  StatusLine line_;
};

// Of all files in it and below.
std::uint64_t bytes_in(const std::string& directory);

}  // namespace bide::cli
