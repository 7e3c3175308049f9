// The layout of segments, batches and records: what lies where, and whether it is whole. Drawn in
// docs/formats/journal.md; nothing else in the program knows an offset.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bide/result.h"
#include "engine/journal/journal.h"

namespace bide::engine::journal {

inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::size_t kSegmentHeaderBytes = 64;
inline constexpr std::size_t kBatchHeaderBytes = 32;
inline constexpr std::size_t kRecordHeaderBytes = 10;
inline constexpr std::size_t kBatchAlignment = 8;
inline constexpr std::size_t kMaxBatchBytes = 0xffff'fff8;
inline constexpr std::uint8_t kMarkType = 1;  // RecordType::kMark: the journal's own, shown to nobody.

std::string segment_name(Address base);
std::optional<Address> parse_segment_name(std::string_view name);

struct SegmentHeader {
  std::uint32_t version = kFormatVersion;
  Address base = 0;
  Address synced = 0;  // Everything before it was durable when the segment was made.
};

std::string encode(const SegmentHeader& header);
// Empty: these bytes were never completely written, or have changed since. A version from the future is not empty.
std::optional<SegmentHeader> decode_segment_header(std::string_view bytes);

struct BatchHeader {
  std::uint32_t bytes = 0;  // All of it: header, records, padding.
  std::uint32_t records = 0;
  std::uint32_t records_sum = 0;  // Of their checksums: ties the records of one batch to one another.
  Address synced = 0;             // Everything before it was durable when the batch was written.
};

void store_batch_header(char* into, const BatchHeader& header, Address at);
// `bytes` has at least kBatchHeaderBytes.
std::optional<BatchHeader> load_batch_header(const char* bytes, Address at);

inline constexpr std::size_t padded(std::size_t bytes) {
  return (bytes + kBatchAlignment - 1) / kBatchAlignment * kBatchAlignment;
}

// `record` begins with room for the record's header and ends with its payload. Its checksum comes with its batch's.
void store_record_length(char* record, std::size_t bytes);
// Gives a batch its header and every record its checksum. `batch` is as long as header.bytes; the sum of the header is
// found here.
void seal_batch(char* batch, BatchHeader header, Address at);
// A record that has no checksum yet, or whose checksum another thread is writing: only type, version and payload are
// looked at.
RecordView unsealed_record(std::string_view type_on, RecordRef ref);
// The record at the front of `bytes`; empty when it is not whole.
std::optional<RecordView> load_record(std::string_view bytes, Address at);

// Whether every record of a batch is whole and they fill it exactly.
bool batch_is_whole(std::string_view batch, const BatchHeader& header, Address at);
// Shows the records of a batch that is whole, from the address `from` on, marks left out.
Status visit_batch(std::string_view batch, const BatchHeader& header, Address at, Address from,
                   const RecordVisitor& visitor);

bool all_zero(std::string_view bytes);

// kDamaged, in the one form in which it is always said.
Error damaged(const std::string& path, std::uint64_t offset, const std::string& what);

}  // namespace bide::engine::journal
