#include "engine/check/writing.h"

#include <cstring>

#include "engine/check/bytes.h"
#include "platform/disk.h"

namespace bide::engine::check {

namespace {

constexpr std::uint32_t kSumFactor = 0x9e3779b1u;
constexpr std::uint32_t kSegmentBytes = 64;

void put_little(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

void replace(std::string& content, std::uint64_t offset, std::string_view bytes) {
  std::memcpy(content.data() + offset, bytes.data(), bytes.size());
}

}  // namespace

void put_u32(std::string& out, std::uint32_t value) { put_little(out, value, 4); }
void put_u64(std::string& out, std::uint64_t value) { put_little(out, value, 8); }

void put_count(std::string& out, std::uint64_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

void put_id(std::string& out, const JobId& id) {
  out.append(reinterpret_cast<const char*>(id.bytes().data()), id.bytes().size());
}

std::string segment_header(std::uint64_t base) {
  std::string out = "bide.seg";
  put_u32(out, 1);
  put_u32(out, kSegmentBytes);
  put_u64(out, base);
  put_u64(out, base);
  out.append(24, '\0');
  put_u64(out, platform::checksum(out, 0));
  return out;
}

std::string framed(const NewRecord& record, std::uint64_t address) {
  std::string summed;
  summed += static_cast<char>(record.type);
  summed += static_cast<char>(record.version);
  summed += record.payload;
  std::string out;
  put_u32(out, static_cast<std::uint32_t>(record.payload.size()));
  put_u32(out, static_cast<std::uint32_t>(platform::checksum(summed, address)));
  return out + summed;
}

std::string batch_of(const std::vector<NewRecord>& records, std::uint64_t address, std::uint64_t synced) {
  std::string content(kBatchHeader, '\0');
  for (const NewRecord& record : records) content += framed(record, address + content.size());
  content.resize((content.size() + 7) / 8 * 8, '\0');
  put_batch_header(content, 0, content.size(), address, synced);
  return content;
}

void put_batch_header(std::string& content, std::uint64_t offset, std::uint64_t end, std::uint64_t base,
                      std::uint64_t synced) {
  std::uint32_t records = 0;
  std::uint32_t sum = 0;
  for (std::uint64_t at = offset + kBatchHeader; at + kRecordHeader <= end; ++records) {
    Bytes in(std::string_view(content).substr(at, kRecordHeader));
    const std::uint32_t payload = in.u32();
    sum = sum * kSumFactor + in.u32();
    at += kRecordHeader + payload;
  }
  std::string header = "BTCH";
  put_u32(header, static_cast<std::uint32_t>(end - offset));
  put_u32(header, records);
  put_u32(header, sum);
  put_u64(header, synced);
  put_u64(header, platform::checksum(header, base + offset));
  replace(content, offset, header);
}

bool put_mark(std::string& content, std::uint64_t offset, std::uint64_t end, std::uint64_t base) {
  if (end - offset < kRecordHeader) return false;
  const NewRecord mark{.type = 1, .payload = std::string(end - offset - kRecordHeader, '\0')};
  replace(content, offset, framed(mark, base + offset));
  return true;
}

}  // namespace bide::engine::check
