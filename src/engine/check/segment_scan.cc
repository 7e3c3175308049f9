#include "engine/check/segment_scan.h"

#include <vector>

#include "engine/check/bytes.h"
#include "platform/disk.h"

namespace bide::engine::check {

namespace {

constexpr std::string_view kSegmentMagic = "bide.seg";
constexpr std::string_view kBatchMagic = "BTCH";
constexpr std::size_t kBatchHeaderBytes = 32;
constexpr std::size_t kRecordHeaderBytes = 10;
constexpr std::uint32_t kSumFactor = 0x9e3779b1u;

std::optional<RecordAt> record_in(std::string_view bytes, std::uint64_t address, std::uint32_t* checksum) {
  if (bytes.size() < kRecordHeaderBytes) return std::nullopt;
  Bytes in(bytes);
  const std::uint32_t size = in.u32();
  const std::uint32_t expected = in.u32();
  if (size > bytes.size() - kRecordHeaderBytes) return std::nullopt;
  const auto actual = static_cast<std::uint32_t>(platform::checksum(bytes.substr(8, 2 + std::size_t{size}), address));
  if (actual != expected) return std::nullopt;
  if (checksum != nullptr) *checksum = expected;
  RecordAt record;
  record.address = address;
  record.type = in.u8();
  record.version = in.u8();
  record.payload = bytes.substr(kRecordHeaderBytes, size);
  return record;
}

std::optional<BatchAt> batch_header_in(std::string_view content, std::uint64_t offset, std::uint64_t base,
                                       std::uint32_t* sum) {
  if (offset > content.size() || content.size() - offset < kBatchHeaderBytes) return std::nullopt;
  const std::string_view header = content.substr(offset, kBatchHeaderBytes);
  if (!header.starts_with(kBatchMagic)) return std::nullopt;
  Bytes in(header);
  in.u32();
  BatchAt batch;
  batch.bytes = in.u32();
  batch.records = in.u32();
  *sum = in.u32();
  batch.synced = in.u64();
  if (in.u64() != platform::checksum(header.substr(0, 24), base + offset)) return std::nullopt;
  return batch;
}

}  // namespace

std::optional<SegmentHeader> read_segment_header(std::string_view content) {
  if (content.size() < kSegmentHeaderBytes || !content.starts_with(kSegmentMagic)) return std::nullopt;
  Bytes in(content.substr(kSegmentMagic.size(), kSegmentHeaderBytes - kSegmentMagic.size()));
  SegmentHeader header;
  header.version = in.u32();
  const std::uint32_t bytes = in.u32();
  header.base = in.u64();
  header.synced = in.u64();
  in.skip(24);
  if (in.u64() != platform::checksum(content.substr(0, 56), 0) || bytes != kSegmentHeaderBytes) return std::nullopt;
  return header;
}

BatchScan scan_batch(std::string_view content, std::uint64_t offset, std::uint64_t base,
                     const std::function<void(const RecordAt&)>& visit) {
  BatchScan scan;
  const auto wrong = [&](std::uint64_t where, const char* what) {
    scan.problem = what;
    scan.problem_offset = where;
    return scan;
  };
  std::uint32_t expected_sum = 0;
  scan.batch = batch_header_in(content, offset, base, &expected_sum);
  if (!scan.batch) return wrong(offset, "no whole batch begins here");
  if (scan.batch->bytes < kBatchHeaderBytes || scan.batch->bytes % 8 != 0) {
    scan.batch.reset();
    return wrong(offset, "a batch of an impossible size");
  }
  if (scan.batch->bytes > content.size() - offset) return wrong(offset, "a batch that is longer than its file");

  std::vector<RecordAt> records;
  std::uint32_t sum = 0;
  std::uint64_t at = offset + kBatchHeaderBytes;
  const std::uint64_t end = offset + scan.batch->bytes;
  for (std::uint32_t i = 0; i < scan.batch->records; ++i) {
    std::uint32_t checksum = 0;
    const auto record = record_in(content.substr(at, end - at), base + at, &checksum);
    if (!record) return wrong(at, "a record fails its checksum");
    sum = sum * kSumFactor + checksum;
    at += kRecordHeaderBytes + record->payload.size();
    records.push_back(*record);
  }
  if (sum != expected_sum) return wrong(offset, "the records do not belong together");
  if (end - at > 7) return wrong(at, "a batch with room that no record fills");
  for (; at < end; ++at) {
    if (content[at] != '\0') return wrong(at, "padding that is not zero");
  }
  if (visit) {
    for (const RecordAt& record : records) visit(record);
  }
  return scan;
}

std::optional<RecordAt> read_record(std::string_view content, std::uint64_t base, std::uint64_t address) {
  if (address < base || address - base >= content.size()) return std::nullopt;
  return record_in(content.substr(address - base), address, nullptr);
}

}  // namespace bide::engine::check
