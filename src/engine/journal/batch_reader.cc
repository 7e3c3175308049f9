#include "engine/journal/batch_reader.h"

#include <algorithm>
#include <cstring>

namespace bide::engine::journal {

void ReadBuffer::grow(std::size_t capacity, std::size_t keep) {
  if (capacity <= capacity_) return;
  auto bytes = std::make_unique_for_overwrite<char[]>(capacity);
  if (keep > 0) std::memcpy(bytes.get(), bytes_.get(), keep);
  bytes_ = std::move(bytes);
  capacity_ = capacity;
}

void ReadBuffer::release() {
  bytes_.reset();
  capacity_ = 0;
}

BatchReader::BatchReader(platform::File& file, Address base, std::uint64_t offset, std::uint64_t limit,
                         ReadBuffer& buffer, std::size_t window)
    : file_(file), base_(base), limit_(limit), buffer_(buffer), window_(window), offset_(offset) {}

Status BatchReader::fill(std::size_t bytes) {
  if (end_ - begin_ >= bytes || offset_ + (end_ - begin_) >= limit_) return {};
  if (end_ > begin_) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  buffer_.grow(std::max(bytes, window_), end_);
  while (end_ < bytes && offset_ + end_ < limit_) {
    const std::size_t wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(std::max(bytes, window_) - end_, limit_ - offset_ - end_));
    Result<std::size_t> got = file_.read(offset_ + end_, buffer_.data() + end_, wanted);
    if (!got) return got.error();
    if (*got == 0) break;
    end_ += *got;
  }
  return {};
}

Result<BatchReader::Found> BatchReader::next() {
  offset_ += batch_.size();
  begin_ += batch_.size();
  batch_ = {};
  if (offset_ >= limit_) return Found::kEnd;
  if (Status status = fill(kBatchHeaderBytes); !status) return status.error();
  if (available().size() < kBatchHeaderBytes) return zeros_or_invalid();
  const std::optional<BatchHeader> header = load_batch_header(available().data(), address());
  if (!header || header->bytes < kBatchHeaderBytes || header->bytes > limit_ - offset_) return zeros_or_invalid();
  if (Status status = fill(header->bytes); !status) return status.error();
  if (available().size() < header->bytes) return Found::kInvalid;
  const std::string_view batch = available().substr(0, header->bytes);
  if (!batch_is_whole(batch, *header, address())) return Found::kInvalid;
  header_ = *header;
  batch_ = batch;
  return Found::kBatch;
}

bool BatchReader::has_next() const {
  const std::size_t begin = begin_ + batch_.size();
  if (offset_ + batch_.size() >= limit_) return true;
  if (end_ - begin < kBatchHeaderBytes) return false;
  const auto header = load_batch_header(buffer_.data() + begin, address() + batch_.size());
  return header && end_ - begin >= header->bytes;
}

Result<BatchReader::Found> BatchReader::zeros_or_invalid() {
  if (!all_zero(available())) return Found::kInvalid;
  Result<std::uint64_t> rest = bytes_before_zeros(file_, offset_, limit_, buffer_);
  begin_ = end_ = 0;
  if (!rest) return rest.error();
  return *rest == 0 ? Found::kZeros : Found::kInvalid;
}

Result<Address> newest_synced_point(platform::File& file, Address base, std::uint64_t offset, std::uint64_t limit,
                                    ReadBuffer& buffer) {
  Address newest = 0;
  buffer.grow(BatchReader::kWindowBytes, 0);
  offset = padded(offset);
  while (offset + kBatchHeaderBytes <= limit) {
    const std::size_t wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(BatchReader::kWindowBytes, limit - offset));
    Result<std::size_t> got = file.read(offset, buffer.data(), wanted);
    if (!got) return got.error();
    if (*got < kBatchHeaderBytes) break;
    std::size_t at = 0;
    for (; at + kBatchHeaderBytes <= *got; at += kBatchAlignment) {
      if (const auto header = load_batch_header(buffer.data() + at, base + offset + at)) {
        newest = std::max(newest, header->synced);
      }
    }
    offset += at;
  }
  return newest;
}

Result<std::uint64_t> bytes_before_zeros(platform::File& file, std::uint64_t offset, std::uint64_t limit,
                                         ReadBuffer& buffer) {
  std::uint64_t bytes = 0;
  buffer.grow(BatchReader::kWindowBytes, 0);
  for (std::uint64_t at = offset; at < limit;) {
    const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(BatchReader::kWindowBytes, limit - at));
    Result<std::size_t> got = file.read(at, buffer.data(), wanted);
    if (!got) return got.error();
    if (*got == 0) break;
    const std::string_view read(buffer.data(), *got);
    if (!all_zero(read)) bytes = at - offset + read.find_last_not_of('\0') + 1;
    at += *got;
  }
  return bytes;
}

}  // namespace bide::engine::journal
