#include "engine/clock_file.h"

#include "platform/disk.h"

namespace bide::engine {

// file = magic (8 bytes), i64 before, i64 after (microseconds), u64 address, u64 checksum of the boot's name,
//        u64 checksum (XXH3 of what is before it, seed 0)
namespace {

constexpr std::string_view kClockMagic = "BIDECLCK";
constexpr std::size_t kFileBytes = 48;

}  // namespace

std::optional<std::int64_t> ClockFile::read(const std::string& boot, journal::Address journal_end) const {
  const auto there = disk_.exists(path_);
  if (boot.empty() || !there || !*there) return std::nullopt;
  auto file = disk_.open(path_, platform::OpenMode::kReadOnly);
  if (!file) return std::nullopt;
  char bytes[kFileBytes];
  const auto got = (*file)->read(0, bytes, sizeof bytes);
  const std::string_view view(bytes, got ? *got : 0);
  if (view.size() < kFileBytes || !view.starts_with(kClockMagic)) return std::nullopt;
  journal::Decoder in(view.substr(kClockMagic.size()));
  const std::int64_t before_us = in.i64();
  const std::int64_t after_us = in.i64();
  const journal::Address at = in.u64();
  if (in.u64() != platform::checksum(boot, 0)) return std::nullopt;
  if (in.u64() != platform::checksum(view.substr(0, kFileBytes - 8), 0)) return std::nullopt;
  return journal_end > at ? after_us : before_us;
}

Status ClockFile::write(const std::string& boot, std::int64_t before_us, std::int64_t after_us, journal::Address at) const {
  std::string bytes(kClockMagic);
  journal::Encoder out(bytes);
  out.i64(before_us);
  out.i64(after_us);
  out.u64(at);
  out.u64(platform::checksum(boot, 0));
  out.u64(platform::checksum(bytes, 0));
  auto file = disk_.open(path_, platform::OpenMode::kCreate);
  Status written = file ? (*file)->write(0, bytes) : Status(file.error());
  if (!written) (void)disk_.remove(path_);
  return written;
}

Status ClockFile::remove() const {
  const auto there = disk_.exists(path_);
  if (!there) return there.error();
  return *there ? disk_.remove(path_) : Status();
}

}  // namespace bide::engine
