#include "engine/journal/synced_mark.h"

#include "platform/disk.h"

namespace bide::engine::journal {

// file = magic (8 bytes), u64 address, u64 checksum (XXH3 of what is before it, seed 0)
namespace {

constexpr std::string_view kMagic = "BIDESYNC";
constexpr std::size_t kSummedBytes = 16;
constexpr std::size_t kFileBytes = 24;

}  // namespace

Status SyncedMark::write(Address address) {
  if (!file_) {
    auto opened = disk_.open(path_, platform::OpenMode::kCreate);
    if (!opened) {
      const ErrorCode code = opened.error().code;
      return code == ErrorCode::kDiskFull || code == ErrorCode::kOverloaded ? Status() : opened.error();
    }
    file_ = std::move(*opened);
  }
  std::string bytes(kMagic);
  Encoder out(bytes);
  out.u64(address);
  out.u64(platform::checksum(bytes, 0));
  const Status written = file_->write(0, bytes);
  return !written && written.error().code == ErrorCode::kDiskFull ? Status() : written;
}

Result<Address> SyncedMark::read() {
  const auto there = disk_.exists(path_);
  if (!there) return there.error();
  if (!*there) return Address{0};
  auto file = disk_.open(path_, platform::OpenMode::kReadOnly);
  if (!file) return file.error();
  char bytes[kFileBytes];
  const auto got = (*file)->read(0, bytes, sizeof bytes);
  if (!got) return got.error();
  const std::string_view view(bytes, *got);
  if (view.size() < kFileBytes || !view.starts_with(kMagic)) return Address{0};
  Decoder in(view.substr(kMagic.size()));
  const Address address = in.u64();
  return in.u64() == platform::checksum(view.substr(0, kSummedBytes), 0) ? address : Address{0};
}

}  // namespace bide::engine::journal
