// Ledger, unique keys: what a second job with a key gets that is held.

#include <algorithm>
#include <utility>

#include "core/quote.h"
#include "engine/ledger.h"

namespace bide::engine {

JobId Ledger::holder_of(const std::string& key) const {
  const Slot slot = state_.unique_keys().holder(key);
  return slot != kNoSlot ? state_[slot].id : state_.held_keys().holder(key, now_ms() - state_.shift_ms());
}

std::optional<Result<Enqueued>> Ledger::conflict_of(const Job& job) {
  if (job.unique_key.empty() || (job.past && job.past->dead)) return std::nullopt;
  const JobId holder = holder_of(job.unique_key);
  if (holder.is_nil()) return std::nullopt;
  const Slot slot = state_.unique_keys().holder(job.unique_key);
  if (job.on_conflict == OnConflict::kExisting) return Enqueued{.id = holder, .existed = true};
  const EntryState state = slot != kNoSlot ? state_[slot].entry_state() : EntryState::kFree;
  const bool waits = state == EntryState::kScheduled || state == EntryState::kReady || state == EntryState::kWaiting;
  if (job.on_conflict == OnConflict::kReplace && waits) return replace(slot, job);
  const char* since = slot != kNoSlot ? "" : ", which has ended, for a while yet";
  return Error{ErrorCode::kAlreadyExists,
               "the unique key " + core::quoted(job.unique_key) + " is held by job " + holder.to_string() + since};
}

// With the id of the one that is replaced, and what that one waits for.
Result<Enqueued> Ledger::replace(Slot slot, const Job& job) {
  if (!job.after.empty()) {
    return Error{ErrorCode::kInvalidArgument, "after: a job that waits for others cannot take the place of another (on_conflict)"};
  }
  if (!state_.has_names_left(job, 1)) return too_many_names();
  auto before = load(slot);
  if (!before) return quarantine_if_unreadable(slot, before.error());
  Job fresh = job;
  fresh.id = state_[slot].id;
  fresh.after = std::move(before->job.after);
  fresh.after_death = before->job.after_death;
  fresh.flow = before->job.flow;
  if (Status roomy = make_room(room_for(fresh), false); !roomy) return roomy.error();
  journal::Acceptance record = acceptance_of(fresh);
  record.edited = true;
  cache_.drop(slot);
  needs_sync_ = true;
  const journal::RecordRef at = append(*journal_, fresh, record);
  const auto applied = state_.apply(brief_of(fresh, record), at, slot);
  if (!applied) return applied.error();
  if (state_.queues().has_new()) attach_to_new_queues();
  return Enqueued{.id = fresh.id, .replaced = true};
}

}  // namespace bide::engine
