// Ledger, housekeeping: snapshots, compaction, and the room on the disk.

#include <algorithm>
#include <utility>

#include "engine/ledger.h"

namespace bide::engine {

namespace {

constexpr std::uint64_t kTidyBytes = 512 * 1024;
// A piece of a snapshot is as large as the journal has grown since the last, so that it is complete before long.
constexpr std::uint64_t kMostTidyBytes = 4 << 20;

std::string reserve_path(const std::string& directory) { return directory + "/reserve"; }

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
    if (complete.error().code != ErrorCode::kDiskFull && !is_passing(complete.error())) return complete.error();
    // What there is of it must not take the last room from whoever wants to settle.
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
  if (!reserve_there_ && elapsed_us_ / 1000 >= reserve_retry_ms_) {
    reserve_retry_ms_ = elapsed_us_ / 1000 + kRoomRetryMs;
    (void)keep_reserve();
  }
  if (Status synced = sync_ids(); !synced) return synced.error();
  if (snapshot_ != nullptr) return write_snapshot();
  if (!tidy_wanted_) return false;
  // A segment may be superfluous only because of a record that grant() has written and that would go with the power.
  if (needs_sync_) {
    if (Status committed = commit(); !committed) return committed.error();
  }
  if (Status forgotten = compactor_->forget_dead_segments(snapshot_at_); !forgotten) return forgotten.error();
  // A snapshot costs about 40 bytes a job: not more often than the journal grows by several times that.
  const std::uint64_t growth = journal_->written() - snapshot_at_;
  const std::uint64_t worth = std::max(options_.snapshot_bytes, state_.jobs() * 80);
  if (growth > worth || compactor_->wants_snapshot(snapshot_at_)) {
    if (state_.settle_epoch()) return true;
    needs_sync_ = true;
    if (Status committed = commit(); !committed) return committed.error();
    if (Status hardened = journal_->harden(); !hardened) {
      if (!is_passing(hardened.error())) return hardened.error();
      tidy_wanted_ = false;
      return false;
    }
    if (Status covered = cover_ids(); !covered) {
      if (covered.error().code != ErrorCode::kDiskFull && !is_passing(covered.error())) return covered.error();
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
    tell_unreadable_segments();
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
  // The room that was set aside for settling is not for new jobs, also while it is given back bit by bit.
  if (!may_use_reserve && !reserve_there_) {
    disk_full_ = true;
    return Error{ErrorCode::kDiskFull, options_.directory + ": the disk is full; what is left is kept for settling jobs"};
  }
  Status roomy = journal_->reserve(bytes);
  if (roomy || roomy.error().code != ErrorCode::kDiskFull) return roomy;
  disk_full_ = true;
  if (!may_use_reserve || !reserve_there_) return roomy;
  if (Status used = use_reserve(); !used) return used;
  return journal_->reserve(bytes);
}

Status Ledger::use_reserve() {
  if (!reserve_there_) return Error{ErrorCode::kDiskFull, options_.directory + ": the disk is full"};
  reserve_there_ = false;
  reserve_retry_ms_ = elapsed_us_ / 1000 + kRoomRetryMs;
  return disk_.remove(reserve_path(options_.directory));
}

void Ledger::write_clock(std::int64_t before_us, std::int64_t after_us, journal::Address at) {
  const Status written = clock_file_.write(clock_.boot(), before_us, after_us, at);
  if (written || written.error().code != ErrorCode::kDiskFull || !use_reserve()) return;
  (void)clock_file_.write(clock_.boot(), before_us, after_us, at);
}

Status Ledger::keep_reserve() {
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
  reserve_there_ = true;
  disk_full_ = false;
  tidy_wanted_ = true;
  return {};
}

Pressure Ledger::pressure() const {
  if (disk_full_) return {Pressure::Level::kBlocked, "the disk is full", Milliseconds(kRoomRetryMs)};
  if (state_.jobs() >= options_.max_jobs) {
    return {Pressure::Level::kBlocked, "the store holds as many jobs as it may (max_jobs)", Milliseconds(1000)};
  }
  if (state_.jobs() >= options_.max_jobs / 10 * 9) {
    return {Pressure::Level::kHigh, "the store is nearly full (max_jobs)", Milliseconds(100)};
  }
  if (finished_ids_.is_short()) {
    return {Pressure::Level::kHigh, "ids of done jobs are forgotten before id_retention is over (id_bytes)",
            Milliseconds(100)};
  }
  return {};
}

}  // namespace bide::engine
