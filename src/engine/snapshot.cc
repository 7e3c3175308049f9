#include "engine/snapshot.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <future>
#include <limits>
#include <utility>

#include "engine/journal/record_fields.h"
#include "engine/snapshot_blocks.h"
#include "platform/disk.h"
#include "platform/fatal.h"

namespace bide::engine {

using journal::Address;
using journal::Decoder;
using journal::Encoder;

// file   = magic (8 bytes), version (u32), block *
// block  = u8 type, u32 length, u64 checksum (seeded with its offset in the file; covers type, length, payload), payload
// blocks: one kMeta, in version 4 perhaps one each of kRules, kGroups and kSchedules, any number of kRows and in version 4 of
// kRelations, kSteps and kHeldKeys, one kEnd
namespace {

constexpr std::string_view kSnapshotMagic = "BIDESNAP";
// Version 1 has no length of leases, nor whether they were delivered; version 2 has no bindings, and version 3 only the blocks
// that it must have. The oldest that will do is written, so that an older bide can read it.
constexpr std::uint32_t kVersion = 4;
constexpr std::uint32_t kWithBindings = 3;
constexpr std::uint32_t kWithoutBindings = 2;
constexpr std::size_t kFileHeader = 12;
constexpr std::size_t kBlockHeader = 13;
constexpr std::size_t kBlockBytes = 256 * 1024;
constexpr std::uint64_t kUsualRow = 34;  // Bytes.
constexpr std::size_t kBlocksAhead = 32;  // Read and verified while those before them are decoded.
// Looked at in one step: most of them may be free, or saved already.
constexpr Slot kSlotsAPiece = 262'144;
constexpr std::string_view kPrefix = "snapshot-";
constexpr std::string_view kUnfinished = "snapshot.tmp";

enum BlockType : std::uint8_t { kMeta = 1, kRows, kEnd, kRules, kGroups, kSchedules, kRelations, kSteps, kHeldKeys };

enum LeaseFlag : std::uint8_t { kOutlivesProcess = 1, kCancelAsked = 2, kDelivered = 4 };

enum RowFlag : std::uint8_t { kDueIsWall = 1, kHasExpiry = 2, kHasUniqueKey = 4, kHoldsKey = 8, kHasGroup = 16 };

std::uint64_t block_checksum(std::uint8_t type, std::string_view payload, std::uint64_t offset) {
  return platform::checksum(payload, offset * 256 + type);
}

// At this offset in the file.
void append_block(std::string& into, std::uint8_t type, std::string_view payload, std::uint64_t offset) {
  Encoder header(into);
  header.u8(type);
  header.u32(static_cast<std::uint32_t>(payload.size()));
  header.u64(block_checksum(type, payload, offset));
  into += payload;
}

Error damaged(const std::string& path, std::uint64_t offset, const char* what) {
  return Error{ErrorCode::kDamaged, path + ", offset " + std::to_string(offset) + ": " + what +
                                        "; `bide store check` says more, `bide store repair` keeps what can be read"};
}

std::uint32_t version_for(const State& state) {
  const bool has_rules = !state.ruled().empty() || state.groups().size() > 1;
  const bool has_relations = !state.relations().empty() || !state.steps().empty() || !state.held_keys().empty();
  if (has_rules || has_relations || !state.schedules().all().empty()) return kVersion;
  return state.bindings().empty() ? kWithoutBindings : kWithBindings;
}

void encode_meta(Encoder& out, const State& state, Address at) {
  out.u64(at);
  const Counters& counters = state.counters();
  for (const std::uint64_t counter : {counters.accepted, counters.done, counters.cancelled, counters.deleted,
                                      counters.purged, counters.forgotten}) {
    out.count(counter);
  }
  out.u64(state.last_token());
  out.i64(state.last_time_ms());
  const auto for_each = [](const Names& names, auto&& write) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto number = static_cast<std::uint16_t>(i);
      if (names.exists(number)) write(number);
    }
  };
  out.count(state.queues().names().existing());
  for_each(state.queues().names(), [&](std::uint16_t number) {
    out.string(state.queues().names()[number]);
    out.u8(state.queues()[number].paused ? 1 : 0);
  });
  out.count(state.kinds().existing());
  for_each(state.kinds(), [&](std::uint16_t number) { out.string(state.kinds()[number]); });
  out.count(state.leases().size());
  for (const Running& running : state.leases().places()) {
    if (running.slot == kNoSlot) continue;
    out.id(state[running.slot].id);
    out.u64(running.token != 0 ? running.token : running.lost_token);
    out.i64(running.started_ms);
    out.string(state.workers()[running.worker]);
    out.u8(static_cast<std::uint8_t>((running.outlives_process ? kOutlivesProcess : 0) |
                                     (running.cancel_requested ? kCancelAsked : 0) |
                                     (running.delivered ? kDelivered : 0)));
    out.count(running.lease_ms);
  }
  if (version_for(state) < kWithBindings) return;
  out.count(state.bindings().size());
  for (const auto& [queue, binding] : state.bindings()) journal::put_binding(out, binding);
}

struct Meta {
  Address at = 0;
  std::vector<std::pair<JobId, Running>> leases;
  // Held until the rows are there: some may be of no job.
  std::vector<std::uint16_t> queues;
  std::vector<std::uint16_t> kinds;
};

bool decode_meta(Decoder& in, std::uint32_t version, State& state, Meta& meta) {
  meta.at = in.u64();
  Counters counters;
  for (std::uint64_t* counter : {&counters.accepted, &counters.done, &counters.cancelled, &counters.deleted,
                                 &counters.purged, &counters.forgotten}) {
    *counter = in.count();
  }
  const std::uint64_t last_token = in.u64();
  const std::int64_t last_time_ms = in.i64();
  state.restore_counters(counters, last_token, last_time_ms);
  for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) {
    journal::QueueRecord queue;
    queue.name = in.string();
    queue.paused = in.u8() != 0;
    if (!in.ok() || state.queues().names().full()) return false;
    meta.queues.push_back(state.hold_queue(queue.name));
    if (!state.apply(queue)) return false;
  }
  for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) {
    if (state.kinds().full()) return false;
    meta.kinds.push_back(state.hold_kind(in.string()));
  }
  for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) {
    const JobId id = in.id();
    Running running;
    running.token = in.u64();
    running.started_ms = in.i64();
    running.worker = state.hold_worker(in.string());
    const std::uint8_t flags = in.u8();
    if (flags & ~(kOutlivesProcess | kCancelAsked | (version > 1 ? kDelivered : 0))) return false;
    running.outlives_process = (flags & kOutlivesProcess) != 0;
    running.cancel_requested = (flags & kCancelAsked) != 0;
    running.delivered = (flags & kDelivered) != 0;
    if (version > 1) {
      const std::uint64_t lease_ms = in.count();
      if (lease_ms > std::numeric_limits<std::uint32_t>::max()) return false;
      running.lease_ms = static_cast<std::uint32_t>(lease_ms);
    }
    running.body_saved = true;  // Perhaps.
    meta.leases.emplace_back(id, running);
  }
  for (std::uint64_t left = version >= kWithBindings ? in.count() : 0; left > 0 && in.ok(); --left) {
    Binding binding;
    if (journal::get_binding(in, binding) != nullptr || !in.ok()) return false;
    if (state.queues().names().full() && !state.queues().names().find(binding.queue)) return false;
    if (!state.apply(binding)) return false;
  }
  return in.done();
}

void encode_row(Encoder& out, const Entry& entry, bool waits, std::int64_t due_ms, std::uint16_t queue, std::uint16_t kind,
                std::string_view unique_key, std::string_view group) {
  out.id(entry.id);
  // Whether a scheduled job is ready, or cannot be read, is found out anew when it is loaded.
  EntryState state = entry.entry_state();
  if (state == EntryState::kReady || state == EntryState::kQuarantined) {
    state = waits ? EntryState::kWaiting : EntryState::kScheduled;
  }
  out.u8(static_cast<std::uint8_t>(state));
  out.u8(static_cast<std::uint8_t>((entry.due_is_wall ? kDueIsWall : 0) | (entry.has_expiry ? kHasExpiry : 0) |
                                   (entry.has_unique_key ? kHasUniqueKey : 0) | (unique_key.empty() ? 0 : kHoldsKey) |
                                   (group.empty() ? 0 : kHasGroup)));
  out.u8(static_cast<std::uint8_t>(entry.priority));
  out.count(static_cast<std::uint64_t>(std::max<std::int64_t>(0, due_ms)));
  out.count(queue);
  out.count(kind);
  out.count(entry.attempts);
  out.count(entry.body_address);
  out.count(entry.body_bytes);
  out.count(entry.details_bytes);
  if (entry.has_details()) out.count(entry.details_address);
  if (!unique_key.empty()) out.string(unique_key);
  if (!group.empty()) out.string(group);
}

bool decode_row(Decoder& in, std::uint32_t version, State& state) {
  Entry entry{};
  entry.id = in.id();
  const std::uint8_t entry_state = in.u8();
  const std::uint8_t flags = in.u8();
  entry.priority = static_cast<std::int8_t>(in.u8());
  entry.set_due(static_cast<std::int64_t>(in.count()));
  const std::uint64_t queue = in.count();
  const std::uint64_t kind = in.count();
  entry.attempts = in.count() & 0x7fffu;
  const std::uint64_t body_address = in.count();
  entry.set_body({body_address, static_cast<std::uint32_t>(in.count())});
  const auto details_bytes = static_cast<std::uint32_t>(in.count());
  if (details_bytes != 0) entry.set_details({in.count(), details_bytes});
  const std::string_view key = (flags & kHoldsKey) != 0 ? in.string() : std::string_view();
  const bool has_group = version == kVersion && (flags & kHasGroup) != 0;
  const std::string_view group = has_group ? in.string() : std::string_view();
  const bool is_state = (entry_state != 0 && entry_state <= static_cast<std::uint8_t>(EntryState::kDead)) ||
                        entry_state == static_cast<std::uint8_t>(EntryState::kWaiting);
  if (!in.ok() || !is_state || queue >= state.queues().size() || kind >= state.kinds().size()) {
    return false;
  }
  entry.set_state(static_cast<EntryState>(entry_state));
  entry.queue = static_cast<std::uint16_t>(queue);
  entry.kind = static_cast<std::uint16_t>(kind);
  entry.due_is_wall = (flags & kDueIsWall) != 0;
  entry.has_expiry = (flags & kHasExpiry) != 0;
  entry.has_unique_key = (flags & kHasUniqueKey) != 0;
  state.restore(entry, key, group);
  return true;
}

}  // namespace

std::string snapshot_path(const std::string& directory, Address at) {
  char name[32];
  std::snprintf(name, sizeof name, "%s%016" PRIx64, kPrefix.data(), at);
  return directory + "/" + name;
}

SnapshotWriter::SnapshotWriter(platform::Disk& disk, std::string directory, State& state, Address at)
    : disk_(disk),
      directory_(std::move(directory)),
      state_(state),
      at_(at),
      end_(state.slots()),
      queues_(numbers_in_file(state.queues().names())),
      kinds_(numbers_in_file(state.kinds())),
      shift_ms_(state.shift_ms()),
      has_held_keys_(!state.held_keys().empty()) {
  begin();
  state_.begin_epoch([this](Slot slot) { save_row(slot); });
}

SnapshotWriter::~SnapshotWriter() {
  if (complete_) {
    state_.end_epoch();
  } else {
    state_.abandon_epoch();
  }
}

void SnapshotWriter::begin() {
  head_ = kSnapshotMagic;
  Encoder(head_).u32(version_for(state_));
  const auto add = [this](BlockType type, const auto& encode) {
    std::string payload;
    Encoder out(payload);
    encode(out);
    append_block(head_, type, payload, head_.size());
  };
  add(kMeta, [this](Encoder& out) { encode_meta(out, state_, at_); });
  if (!state_.ruled().empty()) add(kRules, [this](Encoder& out) { encode_rules(out, state_); });
  if (state_.groups().size() > 1) add(kGroups, [this](Encoder& out) { encode_groups(out, state_); });
  if (!state_.schedules().all().empty()) add(kSchedules, [this](Encoder& out) { state_.schedules().encode(out); });
}

std::vector<std::uint16_t> SnapshotWriter::numbers_in_file(const Names& names) {
  std::vector<std::uint16_t> numbers(names.size());
  std::uint16_t next = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (names.exists(static_cast<std::uint16_t>(i))) numbers[i] = next++;
  }
  return numbers;
}

void SnapshotWriter::save_row(Slot slot) {
  Encoder out(block_);
  const Entry& entry = state_[slot];
  encode_row(out, entry, state_.waits(slot), State::due(entry, shift_ms_), queues_[entry.queue], kinds_[entry.kind],
             state_.unique_keys().key_of(slot), state_.group_name(slot));
  ++rows_;
  encode_steps(steps_, state_, slot);
  encode_relations(relations_, state_, slot);
}

Status SnapshotWriter::flush_block(std::uint8_t type, std::string& block) {
  std::string framed;
  framed.reserve(block.size() + kBlockHeader);
  append_block(framed, type, block, offset_);
  block.clear();
  if (Status written = file_->write(offset_, framed); !written) return written;
  offset_ += framed.size();
  return {};
}

// What there is besides rows, where it is at least so many bytes.
Status SnapshotWriter::flush_more(std::size_t least) {
  if (relations_.size() >= least) {
    if (Status flushed = flush_block(kRelations, relations_); !flushed) return flushed;
  }
  return steps_.size() >= least ? flush_block(kSteps, steps_) : Status();
}

Result<bool> SnapshotWriter::step(std::size_t bytes) {
  if (file_ == nullptr) {
    auto opened = disk_.open(directory_ + "/" + std::string(kUnfinished), platform::OpenMode::kCreate);
    if (!opened) return opened.error();
    file_ = std::move(*opened);
    if (Status cut = file_->truncate(0); !cut) return cut.error();
    if (Status written = file_->write(0, head_); !written) return written.error();
    offset_ = head_.size();
  }
  const std::uint64_t until = offset_ + bytes;
  const Slot stop = end_ - cursor_ > kSlotsAPiece ? cursor_ + kSlotsAPiece : end_;
  while (offset_ < until && cursor_ < stop) {
    while (cursor_ < stop && block_.size() < kBlockBytes) {
      const Slot slot = cursor_++;
      const EntryState state = state_[slot].entry_state();
      if (state == EntryState::kFree || state == EntryState::kTombstone || state_.in_epoch(slot)) continue;
      save_row(slot);
      state_.enter_epoch(slot);
    }
    if (Status flushed = flush_block(kRows, block_); !flushed) return flushed.error();
    if (Status flushed = flush_more(kBlockBytes); !flushed) return flushed.error();
  }
  // Synced piece by piece: one sync of all of it would hold up everybody.
  if (Status synced = file_->sync(); !synced) return synced.error();
  if (cursor_ < end_) return false;
  if (!block_.empty()) {
    if (Status flushed = flush_block(kRows, block_); !flushed) return flushed.error();
  }
  if (Status flushed = flush_more(1); !flushed) return flushed.error();
  if (has_held_keys_) {
    has_held_keys_ = encode_held_keys(block_, state_, held_key_, shift_ms_);
    if (Status flushed = flush_block(kHeldKeys, block_); !flushed) return flushed.error();
    if (has_held_keys_) return false;
  }
  Encoder out(block_);
  out.u64(rows_);
  if (Status flushed = flush_block(kEnd, block_); !flushed) return flushed.error();
  if (Status synced = file_->sync(); !synced) return synced.error();
  const std::string from = directory_ + "/" + std::string(kUnfinished);
  if (Status renamed = disk_.rename(from, snapshot_path(directory_, at_)); !renamed) return renamed.error();
  if (Status synced = disk_.sync_directory(directory_); !synced) return synced.error();
  complete_ = true;
  return true;
}

namespace {

// At most a few hundred KiB, or what its header says.
struct Block {
  std::uint8_t type = 0;
  std::uint64_t at = 0;
  std::string payload;
};

// Reads the file block by block.
class BlockReader {
 public:
  BlockReader(platform::File& file, std::string path) : file_(file), path_(std::move(path)) {}

  Status header() {
    char bytes[kFileHeader];
    const auto got = file_.read(0, bytes, sizeof bytes);
    if (!got) return got.error();
    const std::string_view view(bytes, *got);
    if (*got < kFileHeader || view.substr(0, kSnapshotMagic.size()) != kSnapshotMagic) return damaged(path_, 0, "not a snapshot");
    Decoder in(view.substr(kSnapshotMagic.size()));
    const std::uint32_t version = in.u32();
    if (version > kVersion) {
      return Error{ErrorCode::kNewerVersion, path_ + ": written by a newer bide (snapshot version " +
                                                 std::to_string(version) + "): use that version"};
    }
    if (version == 0) return damaged(path_, kSnapshotMagic.size(), "unknown version");
    offset_ = kFileHeader;
    version_ = version;
    return {};
  }

  Status next(Block& block) {
    char bytes[kBlockHeader];
    const auto got = file_.read(offset_, bytes, sizeof bytes);
    if (!got) return got.error();
    if (*got < kBlockHeader) return damaged(path_, offset_, "the snapshot ends too early");
    Decoder in(std::string_view(bytes, kBlockHeader));
    block.type = in.u8();
    const std::uint32_t length = in.u32();
    const std::uint64_t expected = in.u64();
    const auto size = file_.size();
    if (!size) return size.error();
    if (length > *size - offset_ - kBlockHeader) return damaged(path_, offset_, "a block is longer than the file");
    block.payload.resize(length);
    const auto body = file_.read(offset_ + kBlockHeader, block.payload.data(), length);
    if (!body) return body.error();
    if (*body < length || block_checksum(block.type, block.payload, offset_) != expected) {
      return damaged(path_, offset_, "a block fails its checksum");
    }
    block.at = offset_;
    offset_ += kBlockHeader + length;
    return {};
  }

  // Up to the last block of the file, into the memory of `blocks`.
  Result<std::vector<Block>> next_few(std::vector<Block> blocks) {
    blocks.resize(kBlocksAhead);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (Status ok = next(blocks[i]); !ok) return ok.error();
      if (blocks[i].type == kEnd) blocks.resize(i + 1);
    }
    return blocks;
  }

  std::uint32_t version() const { return version_; }

 private:
  platform::File& file_;
  const std::string path_;
  std::uint64_t offset_ = 0;
  std::uint32_t version_ = 0;
};

Result<Address> load(platform::Disk& disk, const std::string& path, State& state, bool read_ahead) {
  auto file = disk.open(path, platform::OpenMode::kReadOnly);
  if (!file) return file.error();
  BlockReader reader(**file, path);
  if (Status ok = reader.header(); !ok) return ok.error();
  Block first;
  if (Status ok = reader.next(first); !ok) return ok.error();
  Meta meta;
  Decoder in(first.payload);
  if (first.type != kMeta || !decode_meta(in, reader.version(), state, meta)) {
    return damaged(path, first.at, "the first block is not right");
  }
  if (const auto bytes = (*file)->size()) state.expect(*bytes / kUsualRow);
  const auto start = [&](std::vector<Block> memory) {
    return std::async(read_ahead ? std::launch::async : std::launch::deferred,
                      [&reader, memory = std::move(memory)]() mutable { return reader.next_few(std::move(memory)); });
  };
  std::uint64_t rows = 0;
  std::vector<std::pair<std::uint64_t, std::string>> relations;  // Blocks, by their offsets.
  std::vector<std::pair<std::uint64_t, std::string>> steps;
  std::vector<Block> memory;
  auto ahead = start({});
  for (bool at_end = false; !at_end;) {
    Result<std::vector<Block>> blocks = ahead.get();
    if (!blocks) return blocks.error();
    at_end = blocks->back().type == kEnd;
    if (!at_end) ahead = start(std::move(memory));
    for (const Block& block : *blocks) {
      Decoder content(block.payload);
      if (block.type == kEnd) {
        if (content.u64() != rows) return damaged(path, block.at, "rows are missing");
        break;
      }
      if (block.type == kRules && reader.version() == kVersion) {
        if (!decode_rules(content, state)) return damaged(path, block.at, "the rules of queues are not right");
        continue;
      }
      if (block.type == kGroups && reader.version() == kVersion) {
        if (!decode_groups(content, state)) return damaged(path, block.at, "the groups are not right");
        continue;
      }
      if (block.type == kHeldKeys && reader.version() == kVersion) {
        if (!decode_held_keys(content, state)) return damaged(path, block.at, "the held keys are not right");
        continue;
      }
      if ((block.type == kRelations || block.type == kSteps) && reader.version() == kVersion) {
        (block.type == kSteps ? steps : relations).emplace_back(block.at, block.payload);
        continue;
      }
      if (block.type == kSchedules && reader.version() == kVersion) {
        if (!state.restore_schedules(content)) return damaged(path, block.at, "a schedule is not right");
        continue;
      }
      if (block.type != kRows) return damaged(path, block.at, "unknown block");
      while (!content.done()) {
        if (!decode_row(content, reader.version(), state)) return damaged(path, block.at, "a row is not right");
        ++rows;
      }
    }
    memory = std::move(*blocks);
  }
  if (!meta.leases.empty() || !relations.empty() || !steps.empty()) {
    if (Status indexed = state.index_ids(); !indexed) return damaged(path, kFileHeader, "a job is there twice");
  }
  for (const auto& [id, running] : meta.leases) {
    const Slot slot = state.find(id);
    if (slot == kNoSlot || state[slot].entry_state() != EntryState::kRunning) {
      return damaged(path, kFileHeader, "a lease has no job");
    }
    state.restore_running(id, running);
  }
  for (const auto& [offset, payload] : steps) {
    Decoder content(payload);
    if (!decode_steps(content, state)) return damaged(path, offset, "the steps of jobs are not right");
  }
  for (const bool waits : {false, true}) {
    for (const auto& [offset, payload] : relations) {
      Decoder content(payload);
      if (!decode_relations(content, state, waits)) return damaged(path, offset, "what jobs wait for is not right");
    }
  }
  for (const std::uint16_t queue : meta.queues) state.release_queue(queue);
  for (const std::uint16_t kind : meta.kinds) state.release_kind(kind);
  return meta.at;
}

}  // namespace

Result<std::optional<Address>> load_snapshot(platform::Disk& disk, const std::string& directory, State& state,
                                             bool read_ahead) {
  const auto names = disk.list(directory);
  if (!names) return names.error();
  std::string newest;
  for (const std::string& name : *names) {
    if (name.starts_with(kPrefix)) newest = std::max(newest, name);
  }
  if (newest.empty()) return std::optional<Address>();
  const auto at = load(disk, directory + "/" + newest, state, read_ahead);
  if (!at) return at.error();
  return std::optional<Address>(*at);
}

Status remove_other_snapshots(platform::Disk& disk, const std::string& directory, Address keep) {
  const auto names = disk.list(directory);
  if (!names) return names.error();
  Status removed;
  for (const std::string& name : *names) {
    const std::string path = directory + "/" + name;
    const bool old = name.starts_with(kPrefix) && path != snapshot_path(directory, keep);
    if (!old && name != kUnfinished) continue;
    // An old one may just be deleted by another thread; that must not save the others.
    if (Status gone = disk.remove(path); !gone && removed) removed = gone;
  }
  return removed;
}

}  // namespace bide::engine
