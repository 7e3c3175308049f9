// Ledger, a step: the clock, the commit, and when the next step is due.

#include "engine/ledger.h"

#include <algorithm>
#include <utility>

#include "platform/fatal.h"
#include "platform/zone_files.h"

namespace bide::engine {

namespace {

// A wall clock further than this from the ledger's time has been stepped; a smaller difference is clock slewing.
constexpr std::int64_t kClockStepUs = 100'000;

}  // namespace

Ledger::Ledger(EngineOptions options)
    : options_(std::move(options)),
      disk_(*options_.disk),
      clock_(*options_.clock),
      random_(*options_.random),
      state_(options_.done_limit, options_.piece, options_.done_bytes),
      cache_(options_.cache_bytes),
      finished_ids_(disk_, options_.directory, options_.id_retention, options_.id_bytes),
      schedule_times_(options_.zones.read ? options_.zones
                                          : core::ZoneData{.read = platform::read_zone_file,
                                                           .version = platform::zone_file_version,
                                                           .names = platform::zone_file_names}),
      clock_file_(disk_, options_.directory) {}

Status Ledger::follow_clock() {
  const platform::Instant instant = clock_.now();
  elapsed_us_ = std::max(elapsed_us_, instant.elapsed_us);
  wall_us_ = instant.wall_us;
  const std::int64_t step_us = wall_us_ - elapsed_us_ - clock_offset_us_;
  // One step at a time: the clock file holds the offset before and after one record, and that record may still be lost.
  if (!clock_step_at_ && (step_us > kClockStepUs || step_us < -kClockStepUs)) {
    // Whole milliseconds, rounded up: no job may start early.
    const std::int64_t step_ms = step_us / 1000 + (step_us > 0 ? 1 : 0);
    if (Status roomy = make_room(64, true); !roomy) {
      if (roomy.error().code != ErrorCode::kDiskFull) return roomy;
      now_us_ = elapsed_us_ + clock_offset_us_;  // Followed when there is room; until then elapsed time is right.
      return {};
    }
    const journal::ClockStep step{step_ms};
    const journal::RecordRef at = append(*journal_, step);
    write_clock(clock_offset_us_, clock_offset_us_ + step_ms * 1000, at.address);
    clock_step_at_ = at.address;
    needs_sync_ = true;  // If it were lost with the power, delays would be early by the step.
    clock_offset_us_ += step_ms * 1000;
    finished_ids_.step_clock(step_ms);
    now_us_ = elapsed_us_ + clock_offset_us_;
    if (Status applied = state_.apply(step); !applied) return applied;
  }
  now_us_ = elapsed_us_ + clock_offset_us_;
  return {};
}

Status Ledger::begin() {
  oldest_in_step_.clear();
  if (Status followed = follow_clock(); !followed) return followed;
  count_drained();
  state_.advance(now_ms(), wall_us_ / 1000);
  if (Status cancelled = cancel_waiters(); !cancelled) return cancelled;
  if (Status forgotten = forget_old(); !forgotten) return forgotten;
  if (!idle_since_ms_.empty()) {
    if (Status retired = retire_idle(); !retired) return retired;
  }
  if (schedule_times_.first() != nullptr) {
    if (Status ran = run_schedules(); !ran) return ran;
  }
  if (Status written = write_ids(); !written) return written;
  if (!tasks_.empty()) {
    auto finished = tasks_.front().run();
    if (!finished) return finished.error();
    if (*finished) tasks_.pop_front();
  }
  return {};
}

Status Ledger::commit() {
  if (Status written = write(); !written) return written;
  if (!std::exchange(needs_sync_, false)) return {};
  Status synced = journal_->sync();
  if (!synced) failed_ = true;
  return synced;
}

Status Ledger::write() {
  if (journal_->batch_empty()) return {};
  tidy_wanted_ = true;
  Status written = journal_->write();
  if (!written) failed_ = true;
  clock_step_at_.reset();
  return written;
}

std::function<Status()> Ledger::begin_commit() {
  needs_sync_ = false;
  tidy_wanted_ = true;
  commit_end_ = journal_->end();
  return journal_->begin_commit();
}

Status Ledger::end_commit(const Status& outcome) {
  if (clock_step_at_ && *clock_step_at_ < commit_end_) clock_step_at_.reset();
  Status committed = journal_->end_commit(outcome);
  if (!committed) failed_ = true;
  return committed;
}

std::function<void()> Ledger::take_garbage() {
  auto jobs = std::make_shared<std::vector<std::vector<Job>>>(cache_.take_garbage());
  std::vector<std::string> files = compactor_->take_obsolete_files();
  for (std::string& file : std::exchange(old_snapshots_, {})) files.push_back(std::move(file));
  for (std::string& file : finished_ids_.take_obsolete_files()) files.push_back(std::move(file));
  files.insert(files.end(), std::make_move_iterator(kept_files_.begin()), std::make_move_iterator(kept_files_.end()));
  kept_files_.clear();
  // A full disk needs the room more than a backup does, which then fails.
  if (backups_ > 0 && !disk_full_) kept_files_.swap(files);
  return [&disk = disk_, jobs = std::move(jobs), files = std::move(files)] {
    jobs->clear();
    // One that cannot be deleted now is found by the next opening.
    for (const std::string& file : files) (void)disk.remove(file);
  };
}

void Ledger::abandon(const Error& error) {
  for (const auto& callback : take_callbacks()) callback(error);
  for (const Task& task : std::exchange(tasks_, {})) task.abandon(error);
  for (const auto& [id, watchers] : std::exchange(watchers_, {})) {
    for (const Watch& watch : watchers) watch.done(error);
  }
}

std::optional<std::int64_t> Ledger::next_wake_us() const {
  if (!tasks_.empty() || needs_sync_ || more_to_grant_ || !after_commit_.empty()) return elapsed_us_;
  std::int64_t wake = kNever;
  if (state_.relations().has_to_cancel()) wake = std::max(elapsed_us_, cancel_retry_ms_ * 1000);
  if (const auto due = state_.next_due()) wake = std::min(wake, *due * 1000 - clock_offset_us_);
  if (const auto start = state_.next_start()) wake = std::min(wake, *start * 1000 - clock_offset_us_);
  if (state_.leases().size() != 0) wake = std::min(wake, lease_check_ms_ * 1000);
  if (const auto done = state_.oldest_done()) {
    wake = std::min(wake, (*done + options_.result_retention.count() + 1) * 1000 - clock_offset_us_);
  }
  if (options_.dead_retention.count() != 0) {
    if (const auto dead = state_.oldest_dead()) {
      wake = std::min(wake, (*dead + options_.dead_retention.count() + 1) * 1000 - clock_offset_us_);
    }
  }
  for (const auto& [queue, since_ms] : idle_since_ms_) {
    const auto binding = state_.bindings().find(queue);
    if (binding != state_.bindings().end()) wake = std::min(wake, (since_ms + binding->second.idle.count()) * 1000);
  }
  if (const auto due = next_schedule_us()) wake = std::min(wake, *due);
  if (!has_reserve_) wake = std::min(wake, reserve_retry_ms_ * 1000);
  if (read_retry_ms_ != 0) wake = std::min(wake, read_retry_ms_ * 1000);
  if (wake == kNever) return std::nullopt;
  return wake;
}

}  // namespace bide::engine
