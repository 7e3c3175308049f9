#include "engine/check/snapshot_repair.h"

#include <array>
#include <numeric>

#include "engine/check/bytes.h"
#include "engine/check/writing.h"
#include "platform/checksum.h"
#include "platform/keyed_hash.h"

namespace bide::engine::check {

namespace {

constexpr std::size_t kVersionAt = 8, kFileHeader = 12;
constexpr std::size_t kBlockHeader = 13;
constexpr std::uint8_t kMeta = 1, kRows = 2, kEnd = 3;
constexpr std::uint8_t kRunning = 3, kDone = 4;
constexpr std::uint8_t kHoldsKey = 8;

struct Block {
  std::uint8_t type = 0;
  std::string_view payload;
};

std::optional<Block> block_at(std::string_view content, std::uint64_t offset) {
  if (offset + kBlockHeader > content.size()) return std::nullopt;
  Bytes in(content.substr(offset));
  const std::uint8_t type = in.u8();
  const std::uint32_t length = in.u32();
  const std::uint64_t expected = in.u64();
  if (type < kMeta || type > kEnd || length > in.left()) return std::nullopt;
  const std::string_view payload = content.substr(offset + kBlockHeader, length);
  if (platform::checksum(payload, offset * 256 + type) != expected) return std::nullopt;
  return Block{type, payload};
}

void append_block(std::string& content, std::uint8_t type, std::string_view payload) {
  const std::uint64_t offset = content.size();
  content += static_cast<char>(type);
  put_u32(content, static_cast<std::uint32_t>(payload.size()));
  put_u64(content, platform::checksum(payload, offset * 256 + type));
  content += payload;
}

struct Rows {
  std::uint64_t count = 0;
  std::uint64_t live = 0;
  platform::KeyedSet<JobId> running = {};
};

// The rows that stay; nothing when they do not fit their fields.
std::optional<std::string> read_rows(std::string_view payload, const std::set<JobId>& without, Rows& rows) {
  std::string kept;
  Bytes in(payload);
  while (!in.at_end()) {
    const std::size_t from = payload.size() - in.left();
    const JobId id = in.id();
    const std::uint8_t state = in.u8();
    const std::uint8_t flags = in.u8();
    in.u8();
    for (int i = 0; i < 6; ++i) in.count();  // Due, queue, kind, attempts, address and size of the body.
    if (in.count() != 0) in.count();
    if (flags & kHoldsKey) in.string();
    if (!in.ok()) return std::nullopt;
    if (state == kDone && without.contains(id)) continue;
    kept += payload.substr(from, payload.size() - in.left() - from);
    ++rows.count;
    if (state != kDone) ++rows.live;
    if (state == kRunning) rows.running.insert(id);
  }
  return kept;
}

// The first block for those jobs only whose rows are there: without the leases of others, which count as deleted.
std::string for_rows(std::string_view meta, std::uint32_t version, const Rows& rows) {
  constexpr std::size_t kAccepted = 0, kDeleted = 3;
  Bytes in(meta);
  std::string out;
  put_u64(out, in.u64());
  std::array<std::uint64_t, 6> counters{};
  for (std::uint64_t& counter : counters) counter = in.count();
  const std::uint64_t known = std::accumulate(counters.begin() + 1, counters.end(), rows.live);
  if (counters[kAccepted] > known) counters[kDeleted] += counters[kAccepted] - known;
  for (const std::uint64_t counter : counters) put_count(out, counter);
  const std::size_t fixed = meta.size() - in.left();
  in.u64();
  in.u64();
  for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) {
    in.string();
    in.u8();
  }
  for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) in.string();
  out += meta.substr(fixed, meta.size() - in.left() - fixed);
  std::string kept;
  std::uint64_t count = 0;
  for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) {
    const std::size_t from = meta.size() - in.left();
    const JobId id = in.id();
    in.u64();
    in.u64();
    in.string();
    in.u8();
    if (version > 1) in.count();
    if (!in.ok() || !rows.running.contains(id)) continue;
    kept += meta.substr(from, meta.size() - in.left() - from);
    ++count;
  }
  put_count(out, count);
  return out + kept;
}

}  // namespace

std::optional<SnapshotRepair> repair_snapshot(std::string_view content, const std::set<JobId>& without) {
  if (content.size() < kFileHeader) return std::nullopt;
  const std::uint32_t version = Bytes(content.substr(kVersionAt)).u32();
  const auto meta = block_at(content, kFileHeader);
  if (!meta || meta->type != kMeta) return std::nullopt;
  SnapshotRepair repair;
  Rows rows;
  std::vector<std::string> kept;
  std::vector<std::uint64_t> before;  // Rows before each loss.
  std::uint64_t offset = kFileHeader + kBlockHeader + meta->payload.size();
  while (offset < content.size()) {
    const auto block = block_at(content, offset);
    Rows found = rows;
    auto some = block && block->type == kRows ? read_rows(block->payload, without, found) : std::nullopt;
    if (some) {
      rows = std::move(found);
      kept.push_back(std::move(*some));
    }
    if (block) {
      offset += kBlockHeader + block->payload.size();
      continue;
    }
    std::uint64_t next = offset + 1;
    while (next < content.size() && !block_at(content, next)) ++next;
    before.push_back(rows.count);
    repair.losses.push_back({.offset = offset,
                             .bytes = next - offset,
                             .text = "a block of the snapshot fails its checksum: the jobs in it are lost"});
    offset = next;
  }
  repair.content = "BIDESNAP";
  put_u32(repair.content, version);
  append_block(repair.content, kMeta, for_rows(meta->payload, version, rows));
  for (const std::string& payload : kept) append_block(repair.content, kRows, payload);
  std::string end;
  put_u64(end, rows.count);
  append_block(repair.content, kEnd, end);
  for (std::size_t i = 0; i < before.size(); ++i) repair.losses[i].records_after = rows.count - before[i];
  return repair;
}

}  // namespace bide::engine::check
