// Writing, for repairs only: the fields, records and batches of docs/formats/journal.md, put together by that page.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job_id.h"

namespace bide::engine::check {

void put_u32(std::string& out, std::uint32_t value);
void put_u64(std::string& out, std::uint64_t value);
void put_count(std::string& out, std::uint64_t value);
void put_id(std::string& out, const JobId& id);

// The 64 bytes at the beginning of a segment.
std::string segment_header(std::uint64_t base);

struct NewRecord {
  std::uint8_t type = 1;
  std::string payload = {};
  std::uint8_t version = 1;
};

// A record as it has to stand at that address.
std::string framed(const NewRecord& record, std::uint64_t address);

// A whole batch at that address, padded to a multiple of 8.
std::string batch_of(const std::vector<NewRecord>& records, std::uint64_t address, std::uint64_t synced);

// A header for the records that fill content[offset, end), which are whole but for up to 7 zeros at the end.
void put_batch_header(std::string& content, std::uint64_t offset, std::uint64_t end, std::uint64_t base,
                      std::uint64_t synced);

// Turns content[offset, end) into a record that nobody looks at. False: there is no room for one.
bool put_mark(std::string& content, std::uint64_t offset, std::uint64_t end, std::uint64_t base);

inline constexpr std::size_t kBatchHeader = 32;
inline constexpr std::size_t kRecordHeader = 10;

}  // namespace bide::engine::check
