// Ledger, operating: what people do to jobs and queues by hand.

#include <algorithm>
#include <utility>

#include "core/job_rules.h"
#include "core/quote.h"
#include "engine/ledger.h"

namespace bide::engine {

using journal::ChangeCause;

namespace {

// In one step; each removal is written.
constexpr std::size_t kRemovedAPiece = 2048;

std::string_view state_name(EntryState state) {
  switch (state) {
    case EntryState::kScheduled: return "scheduled";
    case EntryState::kReady: return "ready";
    case EntryState::kRunning: return "running";
    case EntryState::kDone: return "done";
    case EntryState::kDead: return "dead";
    case EntryState::kQuarantined: return "quarantined";
    case EntryState::kWaiting: return "waiting";
    default: return "gone";
  }
}

}  // namespace

Error wrong_state(const JobId& id, EntryState state, const char* allowed) {
  return Error{ErrorCode::kWrongState,
               "job " + id.to_string() + " is " + std::string(state_name(state)) + "; this works for " + allowed + " jobs"};
}

std::vector<Status> Ledger::cancel(const std::vector<JobId>& ids, const CancelOptions& options) {
  std::vector<Status> statuses;
  for (const JobId& id : ids) {
    const Slot slot = state_.find(id);
    if (slot == kNoSlot) {
      statuses.push_back(no_such_job(id));
      continue;
    }
    const EntryState state = state_[slot].entry_state();
    if (options.state && state_.shown_state(slot) != *options.state) {
      statuses.push_back(wrong_state(id, state, std::string(to_string(*options.state)).c_str()));
    } else if (state == EntryState::kDone) {
      statuses.push_back(wrong_state(id, state, "scheduled, ready, waiting, running and dead"));
    } else if (Status roomy = make_room(64, true); !roomy) {
      statuses.push_back(roomy);
    } else if (state == EntryState::kRunning && lease_of(slot).cancel_requested) {
      needs_sync_ = true;
      statuses.push_back({});
    } else if (state == EntryState::kRunning) {
      const journal::CancelAsked record{.id = id, .at_ms = now_ms()};
      append(*journal_, record);
      needs_sync_ = true;
      statuses.push_back(state_.apply(record));
    } else {
      const bool dead = state == EntryState::kDead || state == EntryState::kQuarantined;
      statuses.push_back(remove(id, dead ? journal::RemoveCause::kDeleted : journal::RemoveCause::kCancelled));
    }
  }
  return statuses;
}

Status Ledger::reschedule(const JobId& id, Time due) {
  const Slot slot = state_.find(id);
  if (slot == kNoSlot) return no_such_job(id);
  const EntryState state = state_[slot].entry_state();
  if (state != EntryState::kScheduled && state != EntryState::kReady && state != EntryState::kWaiting) {
    return wrong_state(id, state, "scheduled, ready and waiting");
  }
  if (due - Time(Milliseconds(now_ms())) > Limits::kDelay) {
    return Error{ErrorCode::kInvalidArgument, "due: too far away; at most 100 years from now"};
  }
  if (Status roomy = make_room(kRoomForChange, true); !roomy) return roomy;
  auto past = load_past(slot);
  if (!past) return quarantine_if_unreadable(slot, past.error());
  cache_.drop(slot);
  const std::int64_t due_ms = due.time_since_epoch().count();
  journal::Changed record = change_of(slot, ChangeCause::kRescheduled, std::move(*past));
  record.due_ms = std::max(due_ms, now_ms());
  record.due_is_wall = due_ms > now_ms();
  needs_sync_ = true;
  return change(record);
}

std::vector<Status> Ledger::replay(const std::vector<JobId>& ids, const ReplayOptions& options) {
  const auto replay_one = [&](const JobId& id) -> Status {
    const Slot slot = state_.find(id);
    if (slot == kNoSlot) return no_such_job(id);
    const EntryState state = state_[slot].entry_state();
    const bool quarantined = state == EntryState::kQuarantined;  // It may be readable again.
    if (state != EntryState::kDead && !quarantined) return wrong_state(id, state, "dead");
    if (Status roomy = make_room(kRoomForChange, true); !roomy) return roomy;
    auto loaded = load(slot);
    if (!loaded) return loaded.error();
    if (quarantined) compactor_->look_again();
    // A job in quarantine still holds its key.
    const std::string key = quarantined ? std::string() : loaded->job.unique_key;
    if (!key.empty() && state_.unique_keys().holder(key) != kNoSlot) {
      return Error{ErrorCode::kAlreadyExists, "job " + id.to_string() + " cannot be replayed: its unique key " +
                                                  core::quoted(key) + " is held by job " +
                                                  state_[state_.unique_keys().holder(key)].id.to_string()};
    }
    if (!options.keep_attempts) loaded->past.counts = {};
    loaded->past.note = "replayed";
    journal::Changed record = change_of(slot, ChangeCause::kReplayed, std::move(loaded->past));
    record.due_ms = due_after(options.delay);
    if (!options.keep_attempts) record.attempts = 0;
    record.unique_key = key;
    return change(record);
  };
  std::vector<Status> statuses;
  for (const JobId& id : ids) statuses.push_back(replay_one(id));
  needs_sync_ = true;
  return statuses;
}

Status Ledger::pause(const std::string& queue, bool paused) {
  if (!core::is_name(queue)) {
    return Error{ErrorCode::kInvalidArgument, "queue " + core::quoted(queue) + " is not a valid name"};
  }
  if (paused && state_.queues().names().full() && !state_.queues().names().find(queue)) {
    return Error{ErrorCode::kOverloaded, "there are too many different queues already"};
  }
  if (Status roomy = make_room(256, true); !roomy) return roomy;
  const journal::QueueRecord record{queue, paused};
  append(*journal_, record);
  needs_sync_ = true;
  return state_.apply(record);
}

void Ledger::purge(const std::string& queue, Completion<std::uint64_t> done) {
  if (!state_.queues().names().find(queue)) {
    answer_after_commit<std::uint64_t>(
        done, Error{ErrorCode::kNotFound, "there is no queue " + core::quoted(queue)});
    return;
  }
  remove_waiting(queue, [this, done](Result<std::uint64_t> removed) {
    answer_after_commit<std::uint64_t>(done, std::move(removed));
  });
}

void Ledger::remove_waiting(const std::string& queue, Completion<std::uint64_t> done) {
  auto run = [this, queue, done, cursor = Slot{0}, removed = std::uint64_t{0}]() mutable -> Result<bool> {
    // The queue is gone with its last job, and its number may be given to another.
    const auto is_here = [this, &queue](const Entry& entry) { return state_.queues().names().find(queue) == entry.queue; };
    const Slot end = piece_end(cursor);
    for (std::size_t left = kRemovedAPiece; cursor < end && left > 0; ++cursor) {
      const Entry& entry = state_[cursor];
      const EntryState state = entry.entry_state();
      const bool waits = state == EntryState::kScheduled || state == EntryState::kReady || state == EntryState::kWaiting;
      if (!waits || !is_here(entry)) continue;
      if (Status roomy = make_room(64, true); !roomy) {
        done(roomy.error());
        return true;
      }
      if (Status gone = remove(entry.id, journal::RemoveCause::kPurged); !gone) return gone.error();
      ++removed;
      --left;
    }
    if (cursor < state_.slots()) return false;
    done(removed);
    return true;
  };
  tasks_.push_back({std::move(run), [done](const Error& error) { done(error); }});
}

}  // namespace bide::engine
