// Ledger, opening and closing: recovery of what the last process left, and leases that ended with it.

#include <algorithm>
#include <utility>

#include "core/completion.h"
#include "core/retry_decision.h"
#include "engine/check/store_files.h"
#include "engine/ledger.h"
#include "platform/fatal.h"

namespace bide::engine {

namespace {

std::string journal_directory(const std::string& directory) { return directory + "/journal"; }
std::string parent_of(const std::string& directory) {
  const std::size_t slash = directory.find_last_of('/', directory.find_last_not_of('/'));
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : directory.substr(0, slash);
}

}  // namespace

Result<std::unique_ptr<Ledger>> Ledger::open(EngineOptions options) {
  std::unique_ptr<Ledger> ledger(new Ledger(std::move(options)));
  if (Status recovered = ledger->recover(); !recovered) {
    ledger->failed_ = true;
    return recovered.error();
  }
  return ledger;
}

Ledger::~Ledger() {
  if (failed_ || journal_ == nullptr) return;
  // An orderly end: leases of this process are returned uncharged.
  std::vector<Slot> held;
  for (const Running& running : state_.leases().places()) {
    if (running.slot != kNoSlot && !running.outlives_process && !running.crashed) held.push_back(running.slot);
  }
  for (const Slot slot : held) {
    if (!make_room(kRoomForChange, true)) break;  // The rest is charged with a crash by the next opening.
    const Status ended = lease_of(slot).cancel_requested
                             ? remove(state_[slot].id, journal::RemoveCause::kCancelled)
                             : give_back(slot, Returned{.note = "the process that ran it was stopped"}, EndedBy::kLedger);
    // One that cannot be read is charged with a crash by the next opening, if it can be read then.
    if (!ended && failed_) return;
    if (journal_->batch_bytes() >= options_.call_bytes && !write()) return;
  }
  needs_sync_ = true;
  (void)commit();
}

Status Ledger::recover() {
  if (Status made = disk_.make_directory(options_.directory); !made) return made;
  const auto unfinished = disk_.exists(options_.directory + "/" + check::kUnfinishedBackup);
  if (!unfinished) return unfinished.error();
  if (*unfinished) {
    return Error{ErrorCode::kDamaged, options_.directory + ": a backup that was not finished: something is missing"};
  }
  auto lock = disk_.lock(options_.directory);
  if (!lock) return lock.error();
  lock_ = std::move(*lock);
  const auto used_before = disk_.exists(journal_directory(options_.directory));
  if (!used_before) return used_before.error();
  if (!*used_before) {
    // The entry of a new directory in its parent must be durable too.
    if (Status synced = disk_.sync_directory(parent_of(options_.directory)); !synced) return synced;
  }
  if (Status made = disk_.make_directory(journal_directory(options_.directory)); !made) return made;
  if (Status synced = disk_.sync_directory(options_.directory); !synced) return synced;

  const bool two_threads = &disk_ == &platform::real_disk();
  if (two_threads) state_.use_second_thread();
  const auto snapshot = load_snapshot(disk_, options_.directory, state_, two_threads);
  if (!snapshot) return snapshot.error();
  snapshot_at_ = snapshot->value_or(0);
  if (Status read = finished_ids_.open(snapshot_at_); !read) return read;
  collect_ids();
  const journal::JournalOptions journal_options{.segment_bytes = options_.segment_bytes,
                                                .durability = options_.durability,
                                                .read_ahead = two_threads};
  auto opened = journal::Journal::open(disk_, journal_directory(options_.directory), journal_options, snapshot_at_,
                                       [this](const journal::RecordView& view) { return apply_recovered(view); });
  if (!opened) return opened.error();
  journal_ = std::move(*opened);
  if (Status indexed = state_.index_ids(); !indexed) return indexed;
  if (Status removed = remove_other_snapshots(disk_, options_.directory, snapshot_at_); !removed) return removed;
  compactor_ = std::make_unique<Compactor>(*journal_, state_, options_.segment_bytes, options_.reserve_bytes);
  // Before anything is written. A store opens without a reserve too.
  (void)create_reserve();

  // Grants within a process are not synced, so power loss may take some. A random gap keeps their tokens from being used
  // again.
  last_token_ = state_.last_token() + (random_.next() >> 33);
  if (Status recovered = recover_clock(); !recovered) return recovered;
  if (const Slot damaged = state_.start(now_ms(), wall_us_ / 1000, *journal_); damaged != kNoSlot) {
    for (const journal::RecordRef ref : {state_[damaged].body(), state_[damaged].details()}) {
      if (ref.bytes == 0) continue;
      if (const auto read = journal_->read(ref); !read) return read.error();
    }
  }
  start_ids();
  state_.forget_done(now_ms() - options_.result_retention.count(), std::numeric_limits<std::size_t>::max());
  open_report_.jobs = state_.jobs();
  open_report_.torn_tails = journal_->torn_tails();
  for (const auto& [queue, binding] : state_.bindings()) note_idle(queue);
  if (Status charged = charge_crashes(); !charged) return charged;
  start_schedules();
  needs_sync_ = true;
  if (Status committed = commit(); !committed) return committed;
  // After the commit: the journal must know of the step first.
  if (!open_report_.elapsed_known) write_clock(clock_offset_us_, clock_offset_us_, 0);
  return {};
}

Status Ledger::recover_clock() {
  const platform::Instant instant = clock_.now();
  elapsed_us_ = instant.elapsed_us;
  wall_us_ = instant.wall_us;
  clock_offset_us_ = wall_us_ - elapsed_us_;
  now_us_ = wall_us_;
  // Within one boot of the machine elapsed time goes on while the store is closed, and a step of the wall clock is detected as
  // it is when the store is open.
  const auto known_us = clock_file_.read(clock_.boot(), journal_->end());
  open_report_.elapsed_known = known_us.has_value();
  if (known_us) {
    clock_offset_us_ = *known_us;
    write_clock(clock_offset_us_, clock_offset_us_, 0);
    return follow_clock();
  }
  // Otherwise the wall clock is believed, except that time does not go back: a delay still has what was left of it at the
  // last record.
  const std::int64_t back_ms = now_ms() - state_.last_time_ms();
  if (back_ms >= 0) return {};
  if (Status roomy = make_room(64, true); !roomy) {
    if (roomy.error().code != ErrorCode::kDiskFull) return roomy;
    // Time goes on from where it was; the step back is followed when there is room to write it down.
    now_us_ = state_.last_time_ms() * 1000;
    clock_offset_us_ = now_us_ - elapsed_us_;
    return {};
  }
  // What the file says is of before this step.
  if (Status removed = clock_file_.remove(); !removed) return removed;
  const journal::ClockStep step{back_ms};
  append(*journal_, step);
  finished_ids_.step_clock(back_ms);
  return state_.apply(step);
}

Status Ledger::charge_crashes() {
  std::vector<Slot> crashed;
  for (Running& running : state_.leases().places()) {
    if (running.slot == kNoSlot) continue;
    if (running.outlives_process) {
      resume_lease(running);
    } else {
      crashed.push_back(running.slot);
    }
  }
  for (const Slot slot : crashed) {
    Status charged = charge_crash(slot);
    if (charged) {
      // Each takes its history along, and a batch of the journal has less than 4 GiB.
      if (journal_->batch_bytes() < options_.call_bytes) continue;
      if (Status written = write(); !written) return written;
      continue;
    }
    if (charged.error().code != ErrorCode::kDiskFull) return charged;
    // There is no reserve either. Making room may need the store, so it opens, and the crash is charged later.
    Running& running = lease_of(slot);
    running.crashed = true;
    running.lost_token = std::exchange(running.token, 0);  // Whoever has it has lost the lease.
    running.lease_ms = 0;
    running.deadline_ms = elapsed_us_ / 1000;
    lease_check_ms_ = std::min(lease_check_ms_, elapsed_us_ / 1000 + kRoomRetryMs);
  }
  return {};
}

Status Ledger::charge_crash(Slot slot) {
  if (Status roomy = make_room(kRoomForDeath, true); !roomy) return roomy;
  if (lease_of(slot).cancel_requested) {
    return remove(state_[slot].id, journal::RemoveCause::kCancelled);
  }
  auto loaded = load(slot);
  if (!loaded && is_transient(loaded.error())) return loaded.error();
  if (!loaded) {
    quarantine(slot);
    return {};
  }
  ++open_report_.crashed_attempts;
  ++duplicate_starts_.crashed;
  lease_of(slot).wants_completion = core::wants_completion(loaded->job);
  const Outcome outcome = core::decide_after_fault(loaded->job.retry, loaded->past.counts, Fault::kCrashed,
                                                   "the process died during this attempt", random_.next(),
                                                   options_.max_crashes);
  return end_attempt(slot, outcome, EndedBy::kLedger);
}

}  // namespace bide::engine
