#include "cli/reading_progress.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace bide::cli {

namespace {

constexpr std::uint64_t kStep = 4ull << 20;  // Between two looks at the bar.

class ReadingFile : public platform::File {
 public:
  ReadingFile(std::unique_ptr<platform::File> real, ReadingDisk& disk) : real_(std::move(real)), disk_(disk) {}

  Status write(std::uint64_t offset, std::string_view bytes) override { return real_->write(offset, bytes); }
  Result<std::size_t> read(std::uint64_t offset, char* into, std::size_t size) override {
    auto got = real_->read(offset, into, size);
    if (got) disk_.note(*got);
    return got;
  }
  Status sync() override { return real_->sync(); }
  Status allocate(std::uint64_t offset, std::uint64_t size) override { return real_->allocate(offset, size); }
  Status truncate(std::uint64_t size) override { return real_->truncate(size); }
  Result<std::uint64_t> size() override { return real_->size(); }

 private:
  const std::unique_ptr<platform::File> real_;
  ReadingDisk& disk_;
};

}  // namespace

std::uint64_t bytes_in(const std::string& directory) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (auto each = std::filesystem::recursive_directory_iterator(directory, error);
       !error && each != std::filesystem::recursive_directory_iterator(); each.increment(error)) {
    std::error_code ignored;
    if (each->is_regular_file(ignored)) bytes += each->file_size(ignored);
  }
  return bytes;
}

ReadingDisk::ReadingDisk(const std::string& directory, std::string_view what)
    : what_(what), all_(std::max<std::uint64_t>(1, bytes_in(directory))) {
  line_.show(progress_bar(0) + " " + what_);
}

Result<std::unique_ptr<platform::File>> ReadingDisk::open(const std::string& path, platform::OpenMode mode) {
  auto file = real_.open(path, mode);
  if (!file) return file;
  return std::unique_ptr<platform::File>(std::make_unique<ReadingFile>(std::move(*file), *this));
}

void ReadingDisk::note(std::uint64_t bytes) {
  read_ += bytes;
  if (read_ - shown_ < kStep) return;
  shown_ = read_;
  line_.show(progress_bar(static_cast<double>(read_) / static_cast<double>(all_)) + " " + what_);
}

}  // namespace bide::cli
