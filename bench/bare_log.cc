#include "bench/bare_log.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "bench/resources.h"

namespace bide::bench {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kOverwriteFile = 4 << 20;

Error failure(const char* what, const std::string& path) {
  return Error{ErrorCode::kIoError, std::string(what) + " " + path + ": " + std::strerror(errno)};
}

Result<int> create_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
  if (descriptor < 0) return failure("open", path);
  return descriptor;
}

Status write_at(int descriptor, std::uint64_t offset, const char* bytes, std::size_t size, const std::string& path) {
  while (size > 0) {
    const auto written = ::pwrite(descriptor, bytes, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failure("write", path);
    offset += static_cast<std::uint64_t>(written);
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
  return {};
}

void drop_file(int descriptor, const std::string& path) {
  if (descriptor < 0) return;
  ::close(descriptor);
  ::unlink(path.c_str());
}

}  // namespace

Result<BareLog> BareLog::create(const std::string& path) {
  const auto descriptor = create_file(path);
  if (!descriptor) return descriptor.error();
  return BareLog(*descriptor, path);
}

BareLog::BareLog(BareLog&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)), offset_(other.offset_) {}

BareLog::~BareLog() { drop_file(descriptor_, path_); }

Status BareLog::append(std::size_t records, std::size_t record_bytes) {
  const std::string record(record_bytes, 'r');
  buffer_.clear();
  for (std::size_t i = 0; i < records; ++i) buffer_ += record;
  if (Status written = write_at(descriptor_, offset_, buffer_.data(), buffer_.size(), path_); !written) return written;
  offset_ += buffer_.size();
  return {};
}

Status BareLog::sync() {
  if (::fdatasync(descriptor_) != 0) return failure("fdatasync", path_);
  return {};
}

Result<double> bare_cycle_rate(const std::string& directory, std::uint64_t jobs) {
  auto log = BareLog::create(directory + "/bare.log");
  if (!log) return log.error();
  const Stopwatch watch;
  for (std::uint64_t done = 0; done < jobs; done += kBatch) {
    const auto batch = static_cast<std::size_t>(std::min<std::uint64_t>(kBatch, jobs - done));
    if (Status ok = log->append(batch, kAcceptedBytes); !ok) return ok.error();
    if (Status ok = log->sync(); !ok) return ok.error();
    if (Status ok = log->append(batch, kGrantedBytes); !ok) return ok.error();
    if (Status ok = log->append(batch, kDoneBytes); !ok) return ok.error();
    if (Status ok = log->sync(); !ok) return ok.error();
  }
  return static_cast<double>(jobs) / watch.seconds();
}

Result<double> bare_load_rate(const std::string& directory, std::uint64_t jobs) {
  auto log = BareLog::create(directory + "/bare.log");
  if (!log) return log.error();
  const Stopwatch watch;
  for (std::uint64_t done = 0; done < jobs; done += kBatch) {
    const auto batch = static_cast<std::size_t>(std::min<std::uint64_t>(kBatch, jobs - done));
    if (Status ok = log->append(batch, kAcceptedBytes); !ok) return ok.error();
    if (Status ok = log->sync(); !ok) return ok.error();
  }
  return static_cast<double>(jobs) / watch.seconds();
}

Result<BareOverwrite> BareOverwrite::create(const std::string& path) {
  const auto descriptor = create_file(path);
  if (!descriptor) return descriptor.error();
  BareOverwrite file(*descriptor, path);
  const std::string zeros(kOverwriteFile, '\0');
  if (Status ok = write_at(*descriptor, 0, zeros.data(), zeros.size(), path); !ok) return ok.error();
  if (::fsync(*descriptor) != 0) return failure("fsync", path);
  return file;
}

BareOverwrite::BareOverwrite(BareOverwrite&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)), offset_(other.offset_) {}

BareOverwrite::~BareOverwrite() { drop_file(descriptor_, path_); }

Status BareOverwrite::overwrite() {
  static const std::string page(kPage, 'p');
  if (Status ok = write_at(descriptor_, offset_, page.data(), page.size(), path_); !ok) return ok;
  offset_ = (offset_ + kPage) % kOverwriteFile;
  if (::fdatasync(descriptor_) != 0) return failure("fdatasync", path_);
  return {};
}

}  // namespace bide::bench
