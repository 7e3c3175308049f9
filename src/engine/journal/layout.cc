#include "engine/journal/layout.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "platform/disk.h"

namespace bide::engine::journal {
namespace {

constexpr std::string_view kSegmentMagic = "bide.seg";
constexpr std::string_view kSegmentSuffix = ".seg";
constexpr std::uint32_t kBatchMagic = 0x48435442;  // "BTCH"

constexpr std::size_t kSegmentChecksumAt = kSegmentHeaderBytes - 8;
constexpr std::size_t kBatchChecksumAt = kBatchHeaderBytes - 8;
// Type and version are part of what a record's checksum covers.
constexpr std::size_t kRecordSumFrom = 8;

std::uint32_t record_checksum(const char* record, std::size_t bytes, Address at) {
  return static_cast<std::uint32_t>(platform::checksum({record + kRecordSumFrom, bytes - kRecordSumFrom}, at));
}

}  // namespace

std::string segment_name(Address base) {
  char name[32];
  std::snprintf(name, sizeof name, "%016llx.seg", static_cast<unsigned long long>(base));
  return name;
}

std::optional<Address> parse_segment_name(std::string_view name) {
  if (name.size() != 16 + kSegmentSuffix.size() || !name.ends_with(kSegmentSuffix)) return std::nullopt;
  Address base = 0;
  for (const char digit : name.substr(0, 16)) {
    const std::size_t value = std::string_view("0123456789abcdef").find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    base = base << 4 | value;
  }
  return base;
}

std::string encode(const SegmentHeader& header) {
  std::string out;
  Encoder encoder(out);
  encoder.raw(kSegmentMagic);
  encoder.u32(header.version);
  encoder.u32(kSegmentHeaderBytes);
  encoder.u64(header.base);
  encoder.u64(header.synced);
  out.resize(kSegmentChecksumAt, '\0');
  encoder.u64(platform::checksum(out, 0));
  return out;
}

std::optional<SegmentHeader> decode_segment_header(std::string_view bytes) {
  if (bytes.size() < kSegmentHeaderBytes || !bytes.starts_with(kSegmentMagic)) return std::nullopt;
  if (load_little_endian<std::uint64_t>(bytes.data() + kSegmentChecksumAt) !=
      platform::checksum(bytes.substr(0, kSegmentChecksumAt), 0)) {
    return std::nullopt;
  }
  Decoder decoder(bytes.substr(kSegmentMagic.size()));
  SegmentHeader header;
  header.version = decoder.u32();
  decoder.u32();  // The header's size; the same in every version so far.
  header.base = decoder.u64();
  header.synced = decoder.u64();
  return header;
}

void store_batch_header(char* into, const BatchHeader& header, Address at) {
  store_little_endian(into, kBatchMagic);
  store_little_endian(into + 4, header.bytes);
  store_little_endian(into + 8, header.records);
  store_little_endian(into + 12, header.records_sum);
  store_little_endian(into + 16, header.synced);
  store_little_endian(into + kBatchChecksumAt, platform::checksum({into, kBatchChecksumAt}, at));
}

std::optional<BatchHeader> load_batch_header(const char* bytes, Address at) {
  if (load_little_endian<std::uint32_t>(bytes) != kBatchMagic) return std::nullopt;
  if (load_little_endian<std::uint64_t>(bytes + kBatchChecksumAt) != platform::checksum({bytes, kBatchChecksumAt}, at)) {
    return std::nullopt;
  }
  BatchHeader header;
  header.bytes = load_little_endian<std::uint32_t>(bytes + 4);
  header.records = load_little_endian<std::uint32_t>(bytes + 8);
  header.records_sum = load_little_endian<std::uint32_t>(bytes + 12);
  header.synced = load_little_endian<std::uint64_t>(bytes + 16);
  return header;
}

void store_record_length(char* record, std::size_t bytes) {
  store_little_endian(record, static_cast<std::uint32_t>(bytes - kRecordHeaderBytes));
}

// Of the checksums of a batch's records, with one more.
static std::uint32_t add_to_records_sum(std::uint32_t sum, std::uint32_t record_checksum) {
  return sum * 0x9e3779b1u + record_checksum;
}

void seal_batch(char* batch, BatchHeader header, Address at) {
  std::size_t offset = kBatchHeaderBytes;
  header.records_sum = 0;
  for (std::uint32_t i = 0; i < header.records; ++i) {
    char* record = batch + offset;
    const std::size_t bytes = kRecordHeaderBytes + load_little_endian<std::uint32_t>(record);
    const std::uint32_t sum = record_checksum(record, bytes, at + offset);
    store_little_endian(record + 4, sum);
    header.records_sum = add_to_records_sum(header.records_sum, sum);
    offset += bytes;
  }
  store_batch_header(batch, header, at);
}

RecordView unsealed_record(std::string_view type_on, RecordRef ref) {
  return {.type = static_cast<std::uint8_t>(type_on[0]),
          .version = static_cast<std::uint8_t>(type_on[1]),
          .payload = type_on.substr(2),
          .at = ref};
}

std::optional<RecordView> load_record(std::string_view bytes, Address at) {
  if (bytes.size() < kRecordHeaderBytes) return std::nullopt;
  const std::size_t payload = load_little_endian<std::uint32_t>(bytes.data());
  if (payload > bytes.size() - kRecordHeaderBytes) return std::nullopt;
  const std::size_t size = kRecordHeaderBytes + payload;
  if (load_little_endian<std::uint32_t>(bytes.data() + 4) != record_checksum(bytes.data(), size, at)) {
    return std::nullopt;
  }
  RecordView view;
  view.type = static_cast<std::uint8_t>(bytes[8]);
  view.version = static_cast<std::uint8_t>(bytes[9]);
  view.payload = bytes.substr(kRecordHeaderBytes, payload);
  view.at = {at, static_cast<std::uint32_t>(size)};
  return view;
}

bool batch_is_whole(std::string_view batch, const BatchHeader& header, Address at) {
  std::size_t offset = kBatchHeaderBytes;
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < header.records; ++i) {
    const std::optional<RecordView> record = load_record(batch.substr(offset), at + offset);
    if (!record) return false;
    sum = add_to_records_sum(sum, load_little_endian<std::uint32_t>(batch.data() + offset + 4));
    offset += record->at.bytes;
  }
  return sum == header.records_sum && padded(offset) == batch.size() && all_zero(batch.substr(offset));
}

Status visit_batch(std::string_view batch, const BatchHeader& header, Address at, Address from,
                   const RecordVisitor& visitor) {
  std::size_t offset = kBatchHeaderBytes;
  for (std::uint32_t i = 0; i < header.records; ++i) {
    const char* record = batch.data() + offset;
    const std::size_t payload = load_little_endian<std::uint32_t>(record);
    RecordView view;
    view.type = static_cast<std::uint8_t>(record[8]);
    view.version = static_cast<std::uint8_t>(record[9]);
    view.payload = {record + kRecordHeaderBytes, payload};
    view.at = {at + offset, static_cast<std::uint32_t>(kRecordHeaderBytes + payload)};
    offset += view.at.bytes;
    if (view.type == kMarkType || view.at.address < from) continue;
    if (Status status = visitor(view); !status) return status;
  }
  return {};
}

bool all_zero(std::string_view bytes) {
  // Comparing with itself, shifted by one, runs at the speed of memcmp.
  return bytes.empty() || (bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

Error damaged(const std::string& path, std::uint64_t offset, const std::string& what) {
  return {ErrorCode::kDamaged, path + " offset " + std::to_string(offset) + ": " + what +
                                   "; `bide store check` says more, `bide store repair` keeps what can be read"};
}

}  // namespace bide::engine::journal
