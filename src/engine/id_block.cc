#include "engine/id_block.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "platform/disk.h"

namespace bide::engine {

using journal::Decoder;
using journal::Encoder;

namespace {

constexpr std::string_view kIdBlockMagic = "BIDEDONE";
constexpr std::string_view kSuffix = ".ids";
constexpr std::size_t kDigits = 16;
constexpr std::size_t kSummedFrom = 24;
// With fewer tokens than this a list of them is shorter than the bits of the group.
constexpr std::size_t kMostListed = 255;

// Names its place, so that a block which belongs elsewhere never passes.
std::uint64_t sum(std::string_view block, std::uint64_t file, std::uint64_t offset) {
  return platform::checksum(block.substr(kSummedFrom), file << 40 ^ offset);
}

void put_group(Encoder& out, std::uint64_t group, const TokenBits& bits) {
  out.u64(group);
  const std::uint64_t set = bits.count();
  if (set > kMostListed) {
    out.u8(0);
    for (const std::uint64_t word : bits.words) out.u64(word);
    return;
  }
  out.u8(static_cast<std::uint8_t>(set));
  for (std::size_t i = 0; i < kTokensInAGroup; ++i) {
    if (!bits.has(i)) continue;
    out.u8(static_cast<std::uint8_t>(i));
    out.u8(static_cast<std::uint8_t>(i >> 8));
  }
}

}  // namespace

std::string id_file_name(std::uint64_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "%016" PRIx64 "%s", number, kSuffix.data());
  return name;
}

std::optional<std::uint64_t> parse_id_file_name(std::string_view name) {
  if (name.size() != kDigits + kSuffix.size() || !name.ends_with(kSuffix)) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + kDigits, number, 16);
  if (error != std::errc() || end != name.data() + kDigits) return std::nullopt;
  return number;
}

std::string encode_id_block(const IdBlockHeader& header, const std::vector<JobId>& ids, const TokenGroups::Groups& groups,
                            std::uint64_t file, std::uint64_t offset) {
  std::string block;
  block.reserve(kIdBlockHeaderBytes + ids.size() * JobId::kSize + groups.size() * 521 + kIdBlockAlignment);
  Encoder out(block);
  out.raw(kIdBlockMagic);
  out.u32(header.version);
  out.u32(0);
  out.u64(0);
  out.u64(header.from);
  out.u64(header.covered);
  out.i64(header.newest_ms);
  out.i64(header.stepped_ms);
  out.u32(static_cast<std::uint32_t>(ids.size()));
  out.u32(static_cast<std::uint32_t>(groups.size()));
  for (const JobId& id : ids) out.id(id);
  for (const auto& [group, bits] : groups) put_group(out, group, bits);
  core::store_little_endian(block.data() + 12, static_cast<std::uint32_t>(block.size()));
  core::store_little_endian(block.data() + 16, sum(block, file, offset));
  block.resize(padded_id_block(block.size()));
  return block;
}

std::optional<IdBlockHeader> decode_id_block_header(std::string_view bytes) {
  if (bytes.size() < kIdBlockHeaderBytes || !bytes.starts_with(kIdBlockMagic)) return std::nullopt;
  Decoder in(bytes.substr(kIdBlockMagic.size()));
  IdBlockHeader header;
  header.version = in.u32();
  header.bytes = in.u32();
  header.checksum = in.u64();
  header.from = in.u64();
  header.covered = in.u64();
  header.newest_ms = in.i64();
  header.stepped_ms = in.i64();
  header.ids = in.u32();
  header.groups = in.u32();
  if (header.bytes < kIdBlockHeaderBytes + std::uint64_t{header.ids} * JobId::kSize) return std::nullopt;
  return header;
}

bool is_whole_id_block(std::string_view block, const IdBlockHeader& header, std::uint64_t file, std::uint64_t offset) {
  return block.size() == header.bytes && sum(block, file, offset) == header.checksum;
}

JobId id_in_block(std::string_view block, std::size_t index) {
  std::array<std::uint8_t, JobId::kSize> bytes;
  std::memcpy(bytes.data(), block.data() + kIdBlockHeaderBytes + index * JobId::kSize, JobId::kSize);
  return JobId(bytes);
}

bool decode_token_groups(std::string_view block, const IdBlockHeader& header, TokenGroups::Groups& out) {
  Decoder in(block.substr(kIdBlockHeaderBytes + std::size_t{header.ids} * JobId::kSize));
  for (std::uint32_t left = header.groups; left > 0 && in.ok(); --left) {
    TokenBits& bits = out[in.u64()];
    const std::size_t listed = in.u8();
    if (listed == 0) {
      for (std::uint64_t& word : bits.words) word |= in.u64();
    }
    for (std::size_t i = 0; i < listed; ++i) {
      const std::uint64_t low = in.u8();
      bits.set(low | std::uint64_t{in.u8()} << 8);
    }
  }
  return in.done();
}

}  // namespace bide::engine
