// Ledger, leases after they were given: kept alive, marked as delivered, resumed by the next process.

#include <algorithm>

#include "core/completion.h"
#include "core/retry_decision.h"
#include "engine/ledger.h"
#include "platform/fatal.h"

namespace bide::engine {

using platform::require;

namespace {

// Of a lease whose record is of version 1 and does not say.
constexpr std::uint32_t kUnknownLeaseMs = 15'000;
// So often in a row a lease may come to nothing with its process before the job is suspected of it.
constexpr std::uint32_t kMostUnheard = 3;

}  // namespace

void Ledger::release_credit(Slot slot) {
  const auto found = subscriptions_.find(state_.leases()[state_[slot].next].subscription);
  if (found == subscriptions_.end()) return;
  require(found->second.unsettled > 0, "a subscription has fewer leases than end");
  --found->second.unsettled;
}

std::vector<Extended> Ledger::extend(const std::vector<LeaseRef>& leases) {
  std::vector<Extended> answers;
  answers.reserve(leases.size());
  std::vector<LeaseRef> heard_of;
  for (const LeaseRef& lease : leases) {
    const Slot slot = state_.find(lease);
    if (slot == kNoSlot || state_[slot].entry_state() != EntryState::kRunning ||
        state_.leases()[state_[slot].next].token != lease.token) {
      answers.push_back({.lost = true});
      continue;
    }
    Running& running = state_.leases()[state_[slot].next];
    running.deadline_ms = elapsed_us_ / 1000 + running.lease_ms;
    if (running.outlives_process && !running.delivered) heard_of.push_back(lease);
    answers.push_back({.cancel_requested = running.cancel_requested});
  }
  // Whoever keeps a lease has it. Without room for the mark the lease is kept all the same.
  if (!heard_of.empty()) (void)mark_delivered(heard_of);
  return answers;
}

Status Ledger::mark_delivered(const std::vector<LeaseRef>& leases) {
  journal::Delivered record;
  for (const LeaseRef& lease : leases) {
    const Slot slot = state_.find(lease);
    if (slot == kNoSlot || state_[slot].entry_state() != EntryState::kRunning) continue;
    const Running& running = state_.leases()[state_[slot].next];
    if (running.token != lease.token || !running.outlives_process || running.delivered) continue;
    record.leases.push_back({lease.id, lease.token});
  }
  if (record.leases.empty()) return {};
  if (Status roomy = make_room(64 + record.leases.size() * (JobId::kSize + 10), true); !roomy) return roomy;
  append(*journal_, record);
  return state_.apply(record);
}

// Its worker is elsewhere and gets the whole time of its lease to be heard of again.
void Ledger::resume_lease(Running& running) {
  const std::int64_t elapsed_ms = elapsed_us_ / 1000;
  if (running.lease_ms == 0) running.lease_ms = kUnknownLeaseMs;
  running.deadline_ms = elapsed_ms + running.lease_ms;
  if (const auto loaded = load(running.slot)) {
    // As far as is known: time in which the store was closed is not time of the attempt, nor of its lease.
    const std::int64_t ran_ms = std::max<std::int64_t>(0, state_.last_time_ms() - running.started_ms);
    running.limit_ms = elapsed_ms + std::max<std::int64_t>(0, loaded->job.time_limit.count() - ran_ms);
    running.last_chance = core::is_last_chance(loaded->past.counts, options_.max_crashes);
    running.wants_completion = core::wants_completion(loaded->job);
  }
  note_deadline(running);
}

void Ledger::note_deadline(const Running& running) {
  const std::int64_t deadline_ms = std::min(running.deadline_ms, running.limit_ms);
  lease_check_ms_ = std::min(lease_check_ms_, deadline_ms);
  // A pass may be under way that has come past it.
  earliest_deadline_ms_ = std::min(earliest_deadline_ms_, deadline_ms);
}

// The process that gave the lease died before it could say that the lease reached a worker. Perhaps it never did: then
// the job has not run and must not pay. Perhaps it did, and the worker died with that process: then the job may be what
// kills them, so this is not done for ever. Its number of attempts stays, so that no number is used twice.
Status Ledger::end_unheard(Slot slot, journal::Past past) {
  if (past.unheard >= kMostUnheard) {
    ++duplicate_starts_.lost;
    const Dead dead{.reason = DeadReason::kPoison,
                    .fault = Fault::kLost,
                    .error = "nothing was heard of it " + std::to_string(past.unheard + 1) +
                             " times in a row, each time after the process that gave its lease had ended"};
    return end_attempt(slot, dead, EndedBy::kLedger);
  }
  const Entry& entry = state_[slot];
  past.unheard += 1;
  past.note = "its lease was given by a process that has ended, and nobody was heard of it; not charged";
  journal::Changed record{.id = entry.id,
                          .cause = journal::ChangeCause::kReturned,
                          .at_ms = now_ms(),
                          .due_ms = state_.due(entry),
                          .due_is_wall = static_cast<bool>(entry.due_is_wall),
                          .dead = {},
                          .attempts = static_cast<std::uint32_t>(entry.attempts),
                          .unique_key = {},
                          .past = std::move(past)};
  release_credit(slot);
  needs_sync_ = true;
  return change(std::move(record));
}

}  // namespace bide::engine
