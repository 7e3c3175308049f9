#include "engine/check/snapshot_check.h"

#include <array>
#include <numeric>

#include "engine/check/bytes.h"
#include "engine/check/record_check.h"
#include "engine/check/writing.h"
#include "platform/disk.h"
#include "platform/keyed_hash.h"

namespace bide::engine::check {

namespace {

constexpr std::string_view kMagic = "BIDESNAP";
constexpr std::uint32_t kVersion = 4;
constexpr std::size_t kFileHeader = 12;
constexpr std::size_t kBlockHeader = 13;

// Those behind kEnd in version 4.
enum BlockType : std::uint8_t { kMeta = 1, kRows, kEnd, kRules, kGroups, kSchedules, kRelations, kSteps, kHeldKeys };
constexpr std::uint8_t kLastType = kHeldKeys;

// As numbered in the file; 2 is never written.
enum RowState : std::uint8_t { kScheduled = 1, kRunning = 3, kDone = 4, kDead = 5, kWaiting = 8 };
constexpr std::uint8_t kHoldsKey = 8;
constexpr std::uint8_t kHasGroup = 16;

using Problem = std::optional<std::string>;

struct Loader {
  JobCensus& census;
  SnapshotFacts& facts;
  const std::uint32_t version;
  std::uint64_t queues = 0;
  std::uint64_t kinds = 0;
  platform::KeyedSet<JobId> leased = {};
  std::uint64_t running = 0;

  Problem meta(std::string_view payload) {
    Bytes in(payload);
    facts.address = in.u64();
    JobCensus::Counters counters;
    for (std::uint64_t* counter : {&counters.accepted, &counters.done, &counters.cancelled, &counters.deleted,
                                   &counters.purged, &counters.forgotten}) {
      *counter = in.count();
    }
    census.restore(counters);
    in.u64();
    in.u64();
    queues = in.count();
    for (std::uint64_t i = 0; i < queues && in.ok(); ++i) {
      in.string();
      if (in.u8() > 1) return "a queue that is neither paused nor open";
    }
    kinds = in.count();
    for (std::uint64_t i = 0; i < kinds && in.ok(); ++i) in.string();
    const std::uint64_t leases = in.count();
    for (std::uint64_t i = 0; i < leases && in.ok(); ++i) {
      leased.insert(in.id());
      in.u64();
      in.u64();
      in.string();
      if (in.u8() > (version > 1 ? 7 : 3)) return "a lease with unknown flags";
      if (version > 1) in.count();
    }
    if (version > 2) {
      for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) skip_binding(in);
    }
    if (!in.at_end()) return "the first block does not fit its fields";
    return std::nullopt;
  }

  Problem row(Bytes& in) {
    const JobId id = in.id();
    const std::uint8_t state = in.u8();
    const std::uint8_t flags = in.u8();
    in.u8();
    in.count();
    const std::uint64_t queue = in.count();
    const std::uint64_t kind = in.count();
    in.count();
    JobCensus::Place place;
    place.body = in.count();
    const std::uint64_t body_bytes = in.count();
    if (in.count() != 0) place.details = in.count();
    if (flags & kHoldsKey) in.string();
    if (flags & kHasGroup) in.string();
    if (!in.ok()) return "a row that is too short for its fields";
    if (flags >= (version < 4 ? 16 : 32)) return "a row with unknown flags";
    if (queue >= queues || kind >= kinds) return "a row with an unknown queue or kind";
    switch (state) {
      case kWaiting:
      case kScheduled: place.state = JobCensus::State::kWaiting; break;
      case kRunning: place.state = JobCensus::State::kRunning; break;
      case kDone: place.state = JobCensus::State::kDone; break;
      case kDead: place.state = JobCensus::State::kDead; break;
      default: return "a row in an unknown state";
    }
    if (state == kRunning && !leased.contains(id)) return "a running job without a lease";
    if (state == kRunning) ++running;
    if (state != kDone && body_bytes == 0) return "a job without a body";
    if (!census.restore(id, place)) return "job " + id.to_string() + " twice";
    ++facts.rows;
    return std::nullopt;
  }

  Problem rows(std::string_view payload) {
    Bytes in(payload);
    while (!in.at_end()) {
      if (Problem problem = row(in)) return problem;
    }
    return std::nullopt;
  }

  Problem rules(std::string_view payload) {
    Bytes in(payload);
    for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) {
      if (Problem problem = check_rules(in)) return problem;
      in.u64();
    }
    if (!in.at_end()) return "the rules of queues do not fit their fields";
    return std::nullopt;
  }

  Problem relations(std::string_view payload) {
    Bytes in(payload);
    while (!in.at_end()) {
      in.id();
      const std::uint8_t flags = in.u8();
      if (flags > 7 || (flags & 3) == 3) return "relations with unknown flags";
      if (flags & 4) in.id();
      for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) in.id();
      if (!in.ok()) return "relations that are too short for their fields";
    }
    return std::nullopt;
  }

  Problem steps(std::string_view payload) {
    Bytes in(payload);
    while (!in.at_end()) {
      in.id();
      for (std::uint64_t left = 2 * in.count(); left > 0 && in.ok(); --left) in.string();
      if (!in.ok()) return "steps that are too short for their fields";
    }
    return std::nullopt;
  }

  Problem groups(std::string_view payload) {
    Bytes in(payload);
    for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) {
      in.string();
      if (in.string().empty()) return "a group without a name";
      in.u64();
    }
    if (!in.at_end()) return "the groups do not fit their fields";
    return std::nullopt;
  }

  static Problem schedules(std::string_view payload) {
    Bytes in(payload);
    while (in.ok() && !in.at_end()) {
      if (Problem problem = check_schedule(in)) return problem;
      in.id();
      for (int list = 0; list < 2; ++list) {
        for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) {
          if (Problem problem = check_decision(in)) return problem;
        }
      }
    }
    if (!in.ok()) return "a schedule that is too short for its fields";
    return std::nullopt;
  }

  Problem held_keys(std::string_view payload) {
    Bytes in(payload);
    while (!in.at_end()) {
      in.string();
      in.id();
      in.u64();
      if (!in.ok()) return "a held key that is too short for its fields";
    }
    return std::nullopt;
  }

  Problem end(std::string_view payload) {
    Bytes in(payload);
    if (in.u64() != facts.rows) return "rows are missing";
    if (!in.at_end()) return "the last block does not fit its fields";
    if (running != leased.size()) return "a lease without a job";
    return std::nullopt;
  }
};

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
  if (type < kMeta || type > kLastType || length > in.left()) return std::nullopt;
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
    if (flags & kHasGroup) in.string();
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
  out += kept;
  out += meta.substr(meta.size() - in.left());  // Bindings.
  return out;
}

}  // namespace

std::optional<SnapshotProblem> read_snapshot(std::string_view content, JobCensus& census, SnapshotFacts& facts) {
  if (content.size() < kFileHeader || !content.starts_with(kMagic)) return SnapshotProblem{0, "not a snapshot"};
  const std::uint32_t version = Bytes(content.substr(kMagic.size())).u32();
  if (version < 1 || version > kVersion) {
    return SnapshotProblem{kMagic.size(), "snapshot version " + std::to_string(version), version > kVersion};
  }
  Loader loader{census, facts, version};
  std::uint8_t last = 0;
  for (std::uint64_t offset = kFileHeader; last != kEnd;) {
    const std::string_view left = content.substr(offset);
    if (left.size() < kBlockHeader) return SnapshotProblem{offset, "the snapshot ends too early"};
    Bytes in(left);
    const std::uint8_t type = in.u8();
    const std::uint32_t length = in.u32();
    const std::uint64_t expected = in.u64();
    if (length > left.size() - kBlockHeader) return SnapshotProblem{offset, "a block that is longer than the file"};
    const std::string_view payload = left.substr(kBlockHeader, length);
    if (platform::checksum(payload, offset * 256 + type) != expected) return SnapshotProblem{offset, "a block fails its checksum"};
    if ((offset == kFileHeader) != (type == kMeta)) return SnapshotProblem{offset, "blocks in the wrong order"};
    Problem problem;
    switch (type) {
      case kMeta: problem = loader.meta(payload); break;
      case kRows: problem = loader.rows(payload); break;
      case kEnd: problem = loader.end(payload); break;
      case kGroups: problem = version < 4 ? "an unknown block" : loader.groups(payload); break;
      case kRules: problem = version < 4 ? "an unknown block" : loader.rules(payload); break;
      case kRelations: problem = version < 4 ? "an unknown block" : loader.relations(payload); break;
      case kSteps: problem = version < 4 ? "an unknown block" : loader.steps(payload); break;
      case kSchedules: problem = version > 3 ? Loader::schedules(payload) : "an unknown block"; break;
      case kHeldKeys: problem = version < 4 ? "an unknown block" : loader.held_keys(payload); break;
      default: problem = "an unknown block"; break;
    }
    if (problem) return SnapshotProblem{offset, *problem};
    last = type;
    offset += kBlockHeader + length;
    if (last == kEnd && offset != content.size()) return SnapshotProblem{offset, "something follows the last block"};
  }
  return std::nullopt;
}

std::optional<SnapshotRepair> repair_snapshot(std::string_view content, const std::set<JobId>& without) {
  if (content.size() < kFileHeader) return std::nullopt;
  const std::uint32_t version = Bytes(content.substr(kMagic.size())).u32();
  const auto meta = block_at(content, kFileHeader);
  if (!meta || meta->type != kMeta) return std::nullopt;
  SnapshotRepair repair;
  Rows rows;
  std::vector<std::string> kept;
  std::vector<Block> others;  // That only a later version has.
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
    if (block && block->type > kEnd) others.push_back(*block);
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
  repair.content = kMagic;
  put_u32(repair.content, version);
  append_block(repair.content, kMeta, for_rows(meta->payload, version, rows));
  for (const Block& block : others) append_block(repair.content, block.type, block.payload);
  for (const std::string& payload : kept) append_block(repair.content, kRows, payload);
  std::string end;
  put_u64(end, rows.count);
  append_block(repair.content, kEnd, end);
  for (std::size_t i = 0; i < before.size(); ++i) repair.losses[i].records_after = rows.count - before[i];
  return repair;
}

}  // namespace bide::engine::check
