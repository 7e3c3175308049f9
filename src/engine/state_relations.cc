// State, jobs that wait for others. That a job goes on follows from the end of those it waits for, so it is not written down;
// that it is cancelled with one of them is, by the ledger. A job that many wait for tells them in bounded pieces.

#include <limits>
#include <utility>

#include "core/encoding.h"
#include "engine/state.h"

namespace bide::engine {

Status State::relate(Slot slot, const journal::AcceptedBrief& record) {
  if (record.after.empty() && record.flow.is_nil()) return {};
  slab_[slot].has_relations = 1;
  relations_.add(slot, record.flow, record.after_death);
  if (record.after.empty()) return {};
  if (Status indexed = index_ids(); !indexed) return indexed;
  bool doomed = false;
  for (core::Decoder ids(record.after); ids.left() > 0;) {
    const Slot awaited = ids_.find(ids.id());
    // One that is not there is done and forgotten: the ledger has seen to that.
    if (awaited == kNoSlot || slab_[awaited].entry_state() == EntryState::kDone) continue;
    const bool dead = slab_[awaited].entry_state() == EntryState::kDead;
    if (dead && record.after_death == AfterDeath::kRun) continue;
    doomed = doomed || (dead && record.after_death == AfterDeath::kCancel);
    touch(awaited).has_relations = 1;
    relations_.add_edge(awaited, slot);
  }
  if (doomed) relations_.doom(slot);
  return {};
}

void State::settle_down(Slot slot) {
  Entry& entry = slab_[slot];
  entry.set_state(waits(slot) ? EntryState::kWaiting : EntryState::kScheduled);
  count(entry, +1);
  if (entry.entry_state() == EntryState::kScheduled) place(slot);
}

void State::end_waits(Slot slot, Relations::End how) {
  if (!slab_[slot].has_relations) return;
  relations_.end(slot, how, last_time_ms_ - shift_ms_);
  if (how == Relations::End::kDone && !relations_.has_any(slot)) drop_relations(slot);
  tell_waiters_now();
}

// Those that are let go in the step that let them go can be granted in it. In recovery all of them are told at once: what
// follows in the journal counts on it.
void State::tell_waiters_now() {
  std::size_t budget = started_ ? piece_ - std::min(piece_, told_at_once_) : std::numeric_limits<std::size_t>::max();
  const std::size_t before = budget;
  tell_waiters(budget);
  if (started_) told_at_once_ += before - budget;
}

void State::tell_waiters(std::size_t& budget) {
  for (; relations_.has_ended() && budget > 0; --budget) {
    const Relations::Told told = relations_.tell_next();
    if (told.slot == kNoSlot || !told.released || relations_.waits_for(told.slot) != 0) continue;
    if (slab_[told.slot].entry_state() == EntryState::kWaiting) release(told.slot, told.at_ms);
  }
}

void State::release(Slot slot, std::int64_t at_ms) {
  Entry& entry = touch(slot);
  // It has not waited in its queue yet: there it must not overtake others.
  if (due(entry) <= at_ms + shift_ms_) {
    entry.due_is_wall = 0;
    entry.set_due(at_ms);
  }
  set_state(slot, EntryState::kScheduled);
  place(slot);
}

void State::drop_relations(Slot slot) {
  relations_.remove(slot);
  slab_[slot].has_relations = 0;
}

Slot State::next_to_cancel() {
  while (relations_.has_to_cancel()) {
    const Slot slot = relations_.next_to_cancel();
    if (slot == kNoSlot) return kNoSlot;
    const EntryState state = slab_[slot].entry_state();
    if (state == EntryState::kWaiting || state == EntryState::kQuarantined) return slot;
    relations_.spare_next();
  }
  return kNoSlot;
}

void State::restore_relations(const JobId& id, const JobId& flow, AfterDeath after_death) {
  const Slot slot = ids_.find(id);
  if (slot == kNoSlot) return;
  slab_[slot].has_relations = 1;
  relations_.add(slot, flow, after_death);
}

void State::restore_step(const JobId& id, Step step) {
  if (const Slot slot = ids_.find(id); slot != kNoSlot) steps_.save(slot, std::move(step));
}

void State::restore_wait(const JobId& awaited, const JobId& waiter) {
  const Slot from = ids_.find(awaited);
  const Slot to = ids_.find(waiter);
  if (from != kNoSlot && to != kNoSlot) relations_.add_edge(from, to);
}

}  // namespace bide::engine
