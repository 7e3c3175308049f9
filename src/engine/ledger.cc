#include "engine/ledger.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/completion.h"
#include "core/retry_decision.h"
#include "platform/fatal.h"

namespace bide::engine {

namespace {

// A wall clock further than this from our time has been stepped; nearer, it is only being steered.
constexpr std::int64_t kClockStepUs = 100'000;
// Leases are checked at most so often: nobody minds one that runs out a little late.
constexpr std::int64_t kLeaseCheckMs = 20;
constexpr std::int64_t kReadRetryMs = 200;
// So long, or up to twice as long, a job waits for its turn that may not run beside another; see core/retry_decision.h.
constexpr std::int64_t kTurnMs = 1000;
// More leases than this wait for the next step, so that none takes long.
constexpr std::size_t kGrantsAStep = 4096;
// Of bodies: what is granted in a step is in memory at once, and often in one answer.
constexpr std::size_t kGrantedBytesAStep = 16 << 20;
// Looked at, and ended: for each of these something is read and written.
constexpr std::size_t kLeasesAStep = 65'536;
constexpr std::size_t kLeaseEndsAStep = 1024;
// Of the dead: each is written down.
constexpr std::size_t kForgottenAStep = 256;
constexpr const char* kExpiredNote = "not started before it expired";
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

}  // namespace

Ledger::Ledger(EngineOptions options)
    : options_(std::move(options)),
      disk_(*options_.disk),
      clock_(*options_.clock),
      random_(*options_.random),
      state_(options_.done_limit, options_.piece),
      warm_(options_.warm_bytes),
      finished_ids_(disk_, options_.directory, options_.id_retention, options_.id_bytes),
      clock_file_(disk_, options_.directory) {}

Status Ledger::end_leases(const std::vector<LeaseRef>& leases, WorkerEnd how) {
  needs_sync_ = true;
  for (const LeaseRef& lease : leases) {
    const Slot slot = state_.find(lease);
    if (slot == kNoSlot || state_[slot].entry_state() != EntryState::kRunning) continue;
    const Running& running = state_.leases()[state_[slot].next];
    if (running.token != lease.token) continue;
    if (Status roomy = make_room(kRoomForDeath, true); !roomy) return roomy;  // The rest runs out in time.
    Status ended;
    if (running.cancel_requested) {
      ended = remove(lease.id, journal::RemoveCause::kCancelled);
    } else if (how == WorkerEnd::kStopped) {
      ended = give_back(slot, Returned{.note = "the process that ran it was stopped"}, EndedBy::kLedger);
    } else {
      auto loaded = load(slot);
      if (!loaded && is_passing(loaded.error())) continue;  // It runs out in time.
      if (!loaded) {
        quarantine(slot);
        continue;
      }
      ++duplicate_starts_.crashed;
      ended = end_attempt(slot,
                          core::decide_after_fault(loaded->job.retry, loaded->past.counts, Fault::kCrashed,
                                                   "the process died during this attempt", random_.next(),
                                                   options_.max_crashes),
                          EndedBy::kLedger);
    }
    if (!ended) return ended;
  }
  return {};
}

Status Ledger::follow_clock() {
  const platform::Instant instant = clock_.now();
  elapsed_us_ = std::max(elapsed_us_, instant.elapsed_us);
  wall_us_ = instant.wall_us;
  const std::int64_t step_us = wall_us_ - elapsed_us_ - clock_offset_us_;
  // One at a time: the clock's file knows the offset before one record and after it, and what is not written may be lost.
  if (!clock_step_at_ && (step_us > kClockStepUs || step_us < -kClockStepUs)) {
    // Whole milliseconds, rounded up: nothing may come early by it.
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
    needs_sync_ = true;  // If it were lost with the power, what waits for a span of time would be early by the step.
    clock_offset_us_ += step_ms * 1000;
    finished_ids_.step_clock(step_ms);
    now_us_ = elapsed_us_ + clock_offset_us_;
    if (Status applied = state_.apply(step); !applied) return applied;
  }
  now_us_ = elapsed_us_ + clock_offset_us_;
  return {};
}

Status Ledger::begin() {
  if (Status followed = follow_clock(); !followed) return followed;
  state_.advance(now_ms(), wall_us_ / 1000);
  if (Status forgotten = forget_old(); !forgotten) return forgotten;
  if (Status written = write_ids(); !written) return written;
  if (!tasks_.empty()) {
    auto finished = tasks_.front().run();
    if (!finished) return finished.error();
    if (*finished) tasks_.pop_front();
  }
  return {};
}

Status Ledger::expire_leases() {
  const std::int64_t elapsed_ms = elapsed_us_ / 1000;
  if (state_.leases().size() == 0 || elapsed_ms < lease_check_ms_) return {};
  // A pass over all leases, in pieces.
  const std::vector<Running>& places = state_.leases().places();
  const std::size_t end = std::min(places.size(), next_lease_ + kLeasesAStep);
  std::size_t ended = 0;
  for (; next_lease_ < end; ++next_lease_) {
    const Running& running = places[next_lease_];
    if (running.slot == kNoSlot) continue;
    const std::int64_t deadline = std::min(running.deadline_ms, running.limit_ms);
    if (elapsed_ms < deadline) {
      earliest_deadline_ms_ = std::min(earliest_deadline_ms_, deadline);
      continue;
    }
    if (++ended > kLeaseEndsAStep) return {};
    auto over = end_overdue(running.slot, elapsed_ms >= running.limit_ms ? Fault::kTimedOut : Fault::kLost);
    if (!over) return over.error();
    if (!*over) return {};
  }
  if (next_lease_ < places.size()) return {};
  next_lease_ = 0;
  lease_check_ms_ = std::max(std::exchange(earliest_deadline_ms_, kNever), elapsed_ms + kLeaseCheckMs);
  return {};
}

// False: not now; lease_check_ms_ says when.
Result<bool> Ledger::end_overdue(Slot slot, Fault fault) {
  const std::int64_t elapsed_ms = elapsed_us_ / 1000;
  if (state_.leases()[state_[slot].next].crashed) {
    Status charged = charge_crash(slot);
    if (charged) return true;
    const bool full = charged.error().code == ErrorCode::kDiskFull;
    if (!full && !is_passing(charged.error())) return charged.error();
    lease_check_ms_ = elapsed_ms + (full ? kRoomRetryMs : kReadRetryMs);
    return false;
  }
  if (Status roomy = make_room(kRoomForDeath, true); !roomy) {
    lease_check_ms_ = elapsed_ms + kRoomRetryMs;  // Later, when there is room.
    return false;
  }
  if (state_.leases()[state_[slot].next].cancel_requested) {
    if (Status removed = remove(state_[slot].id, journal::RemoveCause::kCancelled); !removed) return removed.error();
    return true;
  }
  auto loaded = load(slot);
  if (!loaded && is_passing(loaded.error())) {
    lease_check_ms_ = elapsed_ms + kReadRetryMs;
    return false;
  }
  if (!loaded) {
    quarantine(slot);
    return true;
  }
  const Running& running = state_.leases()[state_[slot].next];
  if (running.outlives_process && running.subscription == 0 && !running.delivered) {
    if (Status ended = end_unheard(slot, std::move(loaded->past)); !ended) return ended.error();
    return true;
  }
  const bool late = fault == Fault::kTimedOut;
  ++(late ? duplicate_starts_.timed_out : duplicate_starts_.lost);
  const Outcome outcome = core::decide_after_fault(
      loaded->job.retry, loaded->past.counts, fault,
      late ? "ran longer than its time limit" : "its worker fell silent and lost the lease", random_.next(),
      options_.max_crashes);
  if (Status ended = end_attempt(slot, outcome, EndedBy::kLedger); !ended) return ended.error();
  return true;
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

std::function<void()> Ledger::take_spent() {
  auto jobs = std::make_shared<std::vector<std::vector<Job>>>(warm_.take_spent());
  std::vector<std::string> files = compactor_->take_superfluous();
  for (std::string& file : std::exchange(old_snapshots_, {})) files.push_back(std::move(file));
  for (std::string& file : finished_ids_.take_superfluous()) files.push_back(std::move(file));
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

Result<std::vector<Delivery>> Ledger::grant() {
  std::vector<Delivery> deliveries;
  more_to_grant_ = false;
  if (elapsed_us_ / 1000 >= read_retry_ms_) read_retry_ms_ = 0;
  take_from_made_queues();
  if (subscriptions_.empty() || read_retry_ms_ != 0) return deliveries;
  // In rounds, so that subscribers of one queue share it; whose turn it is to be first goes around.
  auto at = subscriptions_.upper_bound(grant_first_);
  if (at == subscriptions_.end()) at = subscriptions_.begin();
  grant_first_ = at->first;
  std::size_t idle = 0;
  std::size_t granted = 0;
  granted_bytes_ = 0;
  const auto is_enough = [&] { return granted >= kGrantsAStep || granted_bytes_ >= kGrantedBytesAStep; };
  while (idle < subscriptions_.size() && !is_enough() && read_retry_ms_ == 0) {
    auto some = grant_some(at->first, at->second, deliveries);
    if (!some) return some.error();
    granted += *some;
    idle = *some == 0 ? idle + 1 : 0;
    if (++at == subscriptions_.end()) at = subscriptions_.begin();
  }
  more_to_grant_ = is_enough();
  std::erase_if(deliveries, [](const Delivery& delivery) { return delivery.leases.empty(); });
  return deliveries;
}

bool Ledger::runs_last_chance(std::uint32_t subscription, bool outlives_process) const {
  const std::vector<Running>& all = state_.leases().places();
  return std::any_of(all.begin(), all.end(), [&](const Running& running) {
    if (running.slot == kNoSlot || !running.last_chance || running.outlives_process != outlives_process) return false;
    // Everything in this process ends with it. A worker elsewhere that has outlived the last owner may be anybody.
    return !outlives_process || running.subscription == subscription || running.subscription == 0;
  });
}

Result<std::size_t> Ledger::grant_some(std::uint32_t id, Subscriber& subscriber, std::vector<Delivery>& deliveries) {
  constexpr std::size_t kRound = 256;
  const int most = std::min(subscriber.room(), static_cast<int>(kRound));
  if (most == 0 || !subscriber.has_work(state_.queues())) return std::size_t{0};
  subscriber.one_by_one = false;
  journal::Granted record{
      .at_ms = now_ms(), .outlives_process = subscriber.outlives_process, .worker = subscriber.worker, .grants = {},
      .lease_ms = subscriber.lease_ms};
  auto delivery = std::find_if(deliveries.begin(), deliveries.end(), [id](const auto& d) { return d.subscription == id; });
  if (delivery == deliveries.end()) {
    deliveries.push_back({id, subscriber.sink, elapsed_us_, {}});
    delivery = std::prev(deliveries.end());
  }
  std::vector<Lease>& leases = delivery->leases;
  if (leases.empty()) leases.reserve(std::min<std::size_t>(static_cast<std::size_t>(subscriber.room()), kGrantsAStep));
  const std::size_t before = leases.size();
  std::vector<Slot> slots;
  slots.reserve(static_cast<std::size_t>(most));
  record.grants.reserve(static_cast<std::size_t>(most));
  std::size_t passed_over = 0;
  std::optional<bool> last_chance_runs;
  for (int n = 0; n < most && passed_over < kRound && granted_bytes_ < kGrantedBytesAStep;) {
    SubscribedQueue* from = subscriber.next_queue(state_.queues());
    if (from == nullptr) break;
    // Room for a grant, or for the death of a job that has expired.
    if (!make_room(kRoomForDeath, true)) break;
    const Slot slot = state_.take_ready(*from->queue);
    if (slot == kNoSlot) {
      passed_over += kRound;
      break;
    }
    if (state_.is_early(slot)) {
      state_.wait_again(slot);
      ++passed_over;
      continue;
    }
    const Entry& entry = state_[slot];
    Lease& lease = leases.emplace_back();
    if (entry.attempts != 0 || !warm_.take(slot, entry.id, lease.job)) {
      auto loaded = load(slot);
      if (!loaded) {
        leases.pop_back();
        if (is_passing(loaded.error())) {
          state_.put_back(slot);
          read_retry_ms_ = elapsed_us_ / 1000 + kReadRetryMs;
          break;
        }
        quarantine(slot);
        ++passed_over;
        continue;
      }
      lease.job = std::move(loaded->job);
      lease.counts = loaded->past.counts;
      lease.history = std::move(loaded->past.history);
    }
    lease.due = Time(Milliseconds(state_.due(slot)));
    if (lease.job.expires && lease.job.expires->time_since_epoch().count() <= wall_us_ / 1000) {
      const std::uint32_t attempts = static_cast<std::uint32_t>(entry.attempts);
      std::vector<Job> completions =
          completions_of(lease.job, attempts, Dead{DeadReason::kExpired, Fault::kFailed, kExpiredNote});
      journal::Changed died{.id = entry.id,
                            .cause = journal::ChangeCause::kExpired,
                            .at_ms = now_ms(),
                            .dead = DeadReason::kExpired,
                            .attempts = attempts,
                            .unique_key = {},
                            .past = {lease.counts, std::move(lease.history), kExpiredNote}};
      if (Status changed = change(std::move(died)); !changed) return changed.error();
      finished(lease.job.id);
      accept_effects(std::move(completions));
      needs_sync_ = true;
      ++passed_over;
      leases.pop_back();
      continue;
    }
    // Were its worker killed before it has begun, the job would be dead for nothing.
    if (subscriber.handlers > 0 && subscriber.unsettled + n >= subscriber.handlers &&
        core::would_die_by_crash(lease.job.retry, lease.counts, options_.max_crashes)) {
      state_.put_back(slot);
      leases.pop_back();
      subscriber.one_by_one = true;
      break;
    }
    if (core::is_last_chance(lease.counts, options_.max_crashes)) {
      if (!last_chance_runs) last_chance_runs = runs_last_chance(id, subscriber.outlives_process);
      if (*last_chance_runs) {
        const std::int64_t wait_ms = kTurnMs + static_cast<std::int64_t>(random_.next() % kTurnMs);
        journal::Changed later{.id = entry.id,
                               .cause = journal::ChangeCause::kRescheduled,
                               .at_ms = now_ms(),
                               .due_ms = (now_us_ + 999) / 1000 + wait_ms,
                               .dead = {},
                               .attempts = static_cast<std::uint32_t>(entry.attempts),
                               .unique_key = {},
                               .past = {lease.counts, std::move(lease.history),
                                        "its worker died before; jobs like that run one at a time"}};
        if (Status changed = change(std::move(later)); !changed) return changed.error();
        needs_sync_ = true;  // What it replaces may be deleted.
        ++passed_over;
        leases.pop_back();
        continue;
      }
      last_chance_runs = true;
    }
    ++n;
    granted_bytes_ += lease.job.body.size();
    lease.token = ++last_token_;
    lease.attempt = static_cast<std::uint32_t>(entry.attempts) + 1;
    record.grants.push_back({entry.id, lease.token});
    slots.push_back(slot);
  }
  if (slots.empty()) return passed_over;
  append(*journal_, record);
  if (subscriber.outlives_process) needs_sync_ = true;
  if (Status applied = state_.apply(record, slots); !applied) return applied.error();
  const std::int64_t elapsed_ms = elapsed_us_ / 1000;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Running& running = state_.leases()[state_[slots[i]].next];
    running.subscription = id;
    running.lease_ms = subscriber.lease_ms;  // Also where it is not written down.
    running.deadline_ms = elapsed_ms + subscriber.lease_ms;
    running.limit_ms = elapsed_ms + leases[before + i].job.time_limit.count();
    running.last_chance = core::is_last_chance(leases[before + i].counts, options_.max_crashes);
    running.wants_completion = core::wants_completion(leases[before + i].job);
    note_deadline(running);
  }
  subscriber.unsettled += static_cast<int>(slots.size());
  subscriber.granted += slots.size();
  return slots.size() + passed_over;
}

std::optional<std::int64_t> Ledger::next_wake_us() const {
  if (!tasks_.empty() || needs_sync_ || more_to_grant_ || !after_commit_.empty()) return elapsed_us_;
  std::int64_t wake = kNever;
  if (const auto due = state_.next_due()) wake = std::min(wake, *due * 1000 - clock_offset_us_);
  if (state_.leases().size() != 0) wake = std::min(wake, lease_check_ms_ * 1000);
  if (const auto done = state_.oldest_done()) {
    wake = std::min(wake, (*done + options_.result_retention.count() + 1) * 1000 - clock_offset_us_);
  }
  if (options_.dead_retention.count() != 0) {
    if (const auto dead = state_.oldest_dead()) {
      wake = std::min(wake, (*dead + options_.dead_retention.count() + 1) * 1000 - clock_offset_us_);
    }
  }
  if (!reserve_there_) wake = std::min(wake, reserve_retry_ms_ * 1000);
  if (read_retry_ms_ != 0) wake = std::min(wake, read_retry_ms_ * 1000);
  if (wake == kNever) return std::nullopt;
  return wake;
}

}  // namespace bide::engine
