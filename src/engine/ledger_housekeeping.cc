// Ledger, housekeeping: snapshots, compaction, room on the disk, and what is kept for a limited time only.

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/ledger.h"

namespace bide::engine {

namespace {

constexpr std::uint64_t kTidyBytes = 512 * 1024;
// Upper limit for a piece of a snapshot. A piece is as large as the journal has grown since the last one, so that the
// snapshot is complete in time.
constexpr std::uint64_t kMostTidyBytes = 4 << 20;

std::string reserve_path(const std::string& directory) { return directory + "/reserve"; }

// Unsynced ids beyond this are synced between snapshots, so that no snapshot has to wait for more.
constexpr std::uint64_t kSyncBytes = 4 << 20;
// Dead jobs; each removal is written.
constexpr std::size_t kForgottenAStep = 256;

}  // namespace

bool Ledger::is_snapshot_behind() const {
  return snapshot_ != nullptr && journal_->end() - snapshot_grown_ >= kMostTidyBytes;
}

Result<bool> Ledger::write_snapshot() {
  const std::uint64_t grown = journal_->end() - std::exchange(snapshot_grown_, journal_->end());
  auto complete = snapshot_->step(std::clamp(grown, kTidyBytes, kMostTidyBytes));
  if (!complete) {
    snapshot_.reset();
    // A snapshot only saves time: without room for it the journal is kept whole.
    if (complete.error().code != ErrorCode::kDiskFull && !is_transient(complete.error())) return complete.error();
    // The unfinished file must not take the last room from settlements.
    (void)remove_other_snapshots(disk_, options_.directory, snapshot_at_);
    tidy_wanted_ = false;
    return false;
  }
  if (*complete) {
    const journal::Address old = std::exchange(snapshot_at_, snapshot_->at());
    if (old != snapshot_at_) old_snapshots_.push_back(snapshot_path(options_.directory, old));
    finished_ids_.set_snapshot(snapshot_at_);
    snapshot_.reset();
    tidy_wanted_ = true;
  }
  return true;
}

Result<bool> Ledger::tidy(bool busy) {
  compactor_->set_busy(busy);
  if (!has_reserve_ && elapsed_us_ / 1000 >= reserve_retry_ms_) {
    reserve_retry_ms_ = elapsed_us_ / 1000 + kRoomRetryMs;
    (void)create_reserve();
  }
  // What is kept for those who ask is the first to go.
  if (disk_full_) state_.drop_bodies_of_done(0, options_.piece);
  if (Status synced = sync_ids(); !synced) return synced.error();
  if (snapshot_ != nullptr) return write_snapshot();
  if (!tidy_wanted_) return false;
  // A segment may be obsolete because of a record that grant() has written and that is not synced yet.
  if (needs_sync_) {
    if (Status committed = commit(); !committed) return committed.error();
  }
  if (Status forgotten = compactor_->forget_dead_segments(snapshot_at_); !forgotten) return forgotten.error();
  // A snapshot costs about 40 bytes a job: not more often than the journal grows by several times that.
  const std::uint64_t growth = journal_->written() - snapshot_at_;
  const std::uint64_t worth = std::max(options_.snapshot_bytes, state_.jobs() * 80);
  // A snapshot does not say who is still to be told of the end of another.
  const bool told = !state_.relations().has_ended() && !state_.relations().has_to_cancel();
  if (told && (growth > worth || compactor_->wants_snapshot(snapshot_at_))) {
    if (state_.settle_epoch()) return true;
    needs_sync_ = true;
    if (Status committed = commit(); !committed) return committed.error();
    if (Status hardened = journal_->harden(); !hardened) {
      if (!is_transient(hardened.error())) return hardened.error();
      tidy_wanted_ = false;
      return false;
    }
    if (Status covered = cover_ids(); !covered) {
      if (covered.error().code != ErrorCode::kDiskFull && !is_transient(covered.error())) return covered.error();
      tidy_wanted_ = false;
      return false;
    }
    snapshot_ = std::make_unique<SnapshotWriter>(disk_, options_.directory, state_, journal_->end());
    snapshot_grown_ = journal_->end();
    return true;
  }
  if (compactor_->over_budget()) {
    auto moved = compactor_->move(kTidyBytes);
    if (!moved) return moved.error();
    report_unreadable_segments();
    if (*moved || compactor_->seal_if_mostly_garbage()) {
      const journal::Address active = journal_->segments().back().base;
      needs_sync_ = true;
      if (Status committed = commit(); !committed) return committed.error();
      // A full disk has no room for a new segment.
      if (*moved || journal_->segments().back().base != active) return true;
    }
  }
  auto more = journal_->idle();
  if (!more) {
    failed_ = true;
    return more.error();
  }
  tidy_wanted_ = busy;
  return false;
}

Status Ledger::make_room(std::size_t bytes, bool may_use_reserve) {
  // The reserve is for settling, not for new jobs, also while it is being created again.
  if (!may_use_reserve && !has_reserve_) {
    disk_full_ = true;
    return Error{ErrorCode::kDiskFull, options_.directory + ": the disk is full; what is left is kept for settling jobs"};
  }
  Status roomy = journal_->reserve(bytes);
  if (roomy || roomy.error().code != ErrorCode::kDiskFull) return roomy;
  disk_full_ = true;
  if (!may_use_reserve || !has_reserve_) return roomy;
  if (Status used = release_reserve(); !used) return used;
  return journal_->reserve(bytes);
}

Status Ledger::release_reserve() {
  if (!has_reserve_) return Error{ErrorCode::kDiskFull, options_.directory + ": the disk is full"};
  has_reserve_ = false;
  reserve_retry_ms_ = elapsed_us_ / 1000 + kRoomRetryMs;
  return disk_.remove(reserve_path(options_.directory));
}

Status Ledger::create_reserve() {
  auto file = disk_.open(reserve_path(options_.directory), platform::OpenMode::kCreate);
  if (!file) return file.error();
  Status taken = (*file)->allocate(0, options_.reserve_bytes);
  if (!taken && taken.error().code == ErrorCode::kUnsupported) {
    const auto size = (*file)->size();
    taken = size ? platform::write_zeros(**file, *size, options_.reserve_bytes) : Status(size.error());
  }
  if (!taken) {
    (void)disk_.remove(reserve_path(options_.directory));
    return taken;
  }
  has_reserve_ = true;
  disk_full_ = false;
  tidy_wanted_ = true;
  return {};
}

void Ledger::write_clock(std::int64_t before_us, std::int64_t after_us, journal::Address at) {
  const Status written = clock_file_.write(clock_.boot(), before_us, after_us, at);
  if (written || written.error().code != ErrorCode::kDiskFull || !release_reserve()) return;
  (void)clock_file_.write(clock_.boot(), before_us, after_us, at);
}

void Ledger::count_drained() {
  const std::uint64_t left = state_.counters().done + state_.counters().removed();
  if (drained_ && left > *drained_) drain_rate_.drained(left - *drained_, drain_moment());
  drained_ = left;
}

Pressure Ledger::pressure() const {
  using Cause = Pressure::Cause;
  if (disk_full_) return {Pressure::Level::kBlocked, "the disk is full", Milliseconds(kRoomRetryMs), Cause::kDisk};
  if (state_.jobs() >= options_.max_jobs) {
    // Room for a hundredth of it, so that those who come back do not find it full at once.
    const Milliseconds drained = drain_rate_.time_to_drain(options_.max_jobs / 100, drain_moment());
    return {Pressure::Level::kBlocked, "the store holds as many jobs as it may (max_jobs)",
            std::clamp(drained, Milliseconds(100), Milliseconds(60'000)), Cause::kQueueLength};
  }
  if (state_.jobs() >= options_.max_jobs / 10 * 9) {
    return {Pressure::Level::kHigh, "the store is nearly full (max_jobs)", Milliseconds(100), Cause::kQueueLength};
  }
  if (finished_ids_.is_short()) {
    return {Pressure::Level::kHigh, "ids of done jobs are forgotten before id_retention is over (id_bytes)",
            Milliseconds(100), Cause::kMemory};
  }
  return {};
}

Status Ledger::forget_old() {
  state_.forget_done(now_ms() - options_.result_retention.count(), options_.piece);
  finished_ids_.forget_old(now_ms());
  if (options_.dead_retention.count() == 0) return {};
  for (std::size_t left = kForgottenAStep; left > 0; --left) {
    const Slot slot = state_.dead_before(now_ms() - options_.dead_retention.count());
    if (slot == kNoSlot || !make_room(64, true)) return {};
    if (Status removed = remove(state_[slot].id, journal::RemoveCause::kForgotten); !removed) return removed;
  }
  return {};
}

Status Ledger::apply_recovered(const journal::RecordView& view) {
  if (Status applied = state_.apply(view); !applied) return applied;
  if (view.at.address < finished_ids_.covered()) return {};
  const journal::Address end = view.at.address + view.at.bytes;
  switch (static_cast<journal::RecordType>(view.type)) {
    case journal::RecordType::kDone: {
      journal::DoneRecord record;
      if (Status decoded = decode(view, record); !decoded) return decoded;
      finished_ids_.add(record.id, record.token, record.at_ms, end);
      return {};
    }
    case journal::RecordType::kClock: {
      journal::ClockStep record;
      if (Status decoded = decode(view, record); !decoded) return decoded;
      finished_ids_.step_clock(record.by_ms);
      return {};
    }
    default: return {};
  }
}

void Ledger::collect_ids() {
  if (finished_ids_.is_anchored()) return;
  // A store of a bide that remembered no ids: as far as the snapshot knows its done jobs, they are remembered from now on.
  // Afterwards it may be too late: records of done jobs that were forgotten since are perhaps gone.
  std::vector<std::pair<std::int64_t, JobId>> done;
  for (Slot slot = 0; slot < state_.slots(); ++slot) {
    const Entry& entry = state_[slot];
    if (entry.entry_state() == EntryState::kDone) done.emplace_back(entry.due(), entry.id);
  }
  std::sort(done.begin(), done.end());
  for (const auto& [finished_ms, id] : done) finished_ids_.add(id, 0, finished_ms, snapshot_at_);
}

void Ledger::start_ids() {
  finished_ids_.start(now_ms());
  if (!options_.on_damage) return;
  for (const Damage& damage : finished_ids_.damage()) options_.on_damage(damage);
}

Status Ledger::write_ids() {
  if (!finished_ids_.has_unwritten() || elapsed_us_ / 1000 < ids_retry_ms_) return {};
  Status written = finished_ids_.write(journal_->synced());
  if (written) return {};
  // The journal has them until there is room.
  ids_retry_ms_ = elapsed_us_ / 1000 + kRoomRetryMs;
  if (written.error().code == ErrorCode::kDiskFull || is_transient(written.error())) return {};
  failed_ = true;
  return written;
}

Status Ledger::sync_ids() {
  if (finished_ids_.unsynced_bytes() < kSyncBytes) return {};
  Status synced = finished_ids_.sync();
  if (!synced) failed_ = true;
  return synced;
}

Status Ledger::cover_ids() {
  finished_ids_.close_block(journal_->end());
  if (Status written = finished_ids_.write(journal_->end(), true); !written) {
    failed_ = written.error().code != ErrorCode::kDiskFull && !is_transient(written.error());
    return written;
  }
  Status synced = finished_ids_.sync();
  if (!synced) failed_ = true;
  return synced;
}

}  // namespace bide::engine
