// SegmentScan: the batches and records of one segment, as far as they are whole.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace bide::engine::check {

struct SegmentHeader {
  std::uint32_t version = 0;
  std::uint64_t base = 0;
  std::uint64_t synced = 0;
};

inline constexpr std::size_t kSegmentHeaderBytes = 64;
inline constexpr std::uint32_t kJournalVersion = 1;

// Nothing when it is not whole.
std::optional<SegmentHeader> read_segment_header(std::string_view content);

struct RecordAt {
  std::uint64_t address = 0;
  std::uint8_t type = 0;
  std::uint8_t version = 0;
  std::string_view payload;
};

struct BatchAt {
  std::uint64_t bytes = 0;
  std::uint64_t synced = 0;
  std::uint32_t records = 0;
};

// What begins at an offset of a segment's content.
struct BatchScan {
  // The header of a batch, if its checksum is right; the batch is whole when there is no problem besides.
  std::optional<BatchAt> batch = std::nullopt;
  std::string problem = {};
  std::uint64_t problem_offset = 0;  // In the content: of the header, or of the record that is not right.
};
BatchScan scan_batch(std::string_view content, std::uint64_t offset, std::uint64_t base,
                     const std::function<void(const RecordAt&)>& visit);

// The record at that address, its checksum verified.
std::optional<RecordAt> read_record(std::string_view content, std::uint64_t base, std::uint64_t address);

}  // namespace bide::engine::check
