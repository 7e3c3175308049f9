#include "engine/journal/record_reader.h"

#include <algorithm>

#include "engine/journal/layout.h"

namespace bide::engine::journal {

Result<std::string_view> RecordReader::read(const Segment& segment, RecordRef ref) {
  // Records between that are not wanted any more do not make a reader random.
  const bool in_order = ref.address >= last_end_ && ref.address - last_end_ <= std::max(read_ahead_, kSmallestWindow);
  last_end_ = ref.address + ref.bytes;
  if (ref.address >= window_at_ && ref.address + ref.bytes <= window_at_ + window_bytes_) {
    return std::string_view(buffer_.data() + (ref.address - window_at_), ref.bytes);
  }
  read_ahead_ = in_order ? std::clamp(read_ahead_ * 2, kSmallestWindow, kLargestWindow) : 0;
  const std::uint64_t available = segment.end - ref.address;
  const std::size_t wanted =
      static_cast<std::size_t>(std::min<std::uint64_t>(std::max<std::size_t>(ref.bytes, read_ahead_), available));
  window_bytes_ = 0;
  if (buffer_.capacity() > kLargestWindow && wanted <= kLargestWindow) buffer_.release();
  buffer_.grow(wanted, 0);
  Result<platform::File*> from = file(segment);
  if (!from) return from.error();
  Result<std::size_t> got = (*from)->read(ref.address - segment.base, buffer_.data(), wanted);
  if (!got) return got.error();
  window_at_ = ref.address;
  window_bytes_ = *got;
  return std::string_view(buffer_.data(), std::min<std::size_t>(ref.bytes, *got));
}

Result<platform::File*> RecordReader::file(const Segment& segment) {
  auto shared = shared_file(segment);
  if (!shared) return shared.error();
  return shared->get();
}

Result<std::shared_ptr<platform::File>> RecordReader::shared_file(const Segment& segment) {
  ++uses_;
  auto oldest = files_.end();
  for (auto entry = files_.begin(); entry != files_.end(); ++entry) {
    if (entry->base == segment.base) {
      entry->used = uses_;
      return entry->file;
    }
    if (oldest == files_.end() || entry->used < oldest->used) oldest = entry;
  }
  Result<std::unique_ptr<platform::File>> opened = disk_.open(segment.path, platform::OpenMode::kReadOnly);
  if (!opened && opened.error().code == ErrorCode::kOverloaded && !files_.empty()) {
    // No descriptors left: one of our own is enough to go on.
    close_files();
    opened = disk_.open(segment.path, platform::OpenMode::kReadOnly);
  }
  if (!opened) return opened.error();
  if (files_.size() < kOpenFiles) {
    files_.push_back({segment.base, uses_, std::move(*opened)});
    return files_.back().file;
  }
  *oldest = {segment.base, uses_, std::move(*opened)};
  return oldest->file;
}

void RecordReader::forget(const Segment& segment) {
  std::erase_if(files_, [&](const OpenFile& entry) { return entry.base == segment.base; });
  if (window_at_ >= segment.base && window_at_ < segment.end) window_bytes_ = 0;
}

}  // namespace bide::engine::journal
