// Ledger, jobs that wait for others: what they may wait for, why they wait, and what becomes of them when it will not come.

#include <algorithm>

#include "core/quote.h"
#include "engine/ledger.h"

namespace bide::engine {

namespace {

constexpr std::size_t kCancelledAStep = 1024;

}  // namespace

Status Ledger::check_awaited(const Job& job, const std::vector<Job>& beside) {
  for (const JobId& id : job.after) {
    const Slot slot = state_.find(id);
    if (slot != kNoSlot) {
      if (state_[slot].entry_state() != EntryState::kDead || job.after_death != AfterDeath::kCancel) continue;
      return Error{ErrorCode::kWrongState, "after: job " + id.to_string() +
                                               " is dead, and this one is to be cancelled with it: replay that one first, or "
                                               "let this one hold"};
    }
    if (std::any_of(beside.begin(), beside.end(), [&](const Job& other) { return other.id == id; })) continue;
    const auto done = finished_ids_.contains(id);
    if (!done) return done.error();
    if (*done) continue;
    return Error{ErrorCode::kNotFound, "after: there is no job " + id.to_string() +
                                           ", and none that was done lately; enqueue it before, or in the same call"};
  }
  return {};
}

Status Ledger::cancel_waiters() {
  if (elapsed_us_ / 1000 < cancel_retry_ms_) return {};
  for (std::size_t left = kCancelledAStep; left > 0; --left) {
    const Slot slot = state_.next_to_cancel();
    if (slot == kNoSlot) return {};
    if (!make_room(64, true)) {
      cancel_retry_ms_ = elapsed_us_ / 1000 + kRoomRetryMs;
      return {};
    }
    if (Status removed = remove(state_[slot].id, journal::RemoveCause::kCancelled); !removed) return removed;
  }
  return {};
}

Explanation Ledger::explain_wait(const Job& job) {
  std::size_t left = 0;
  Slot first = kNoSlot;
  bool dead = false;
  for (const JobId& id : job.after) {
    const Slot slot = state_.find(id);
    if (slot == kNoSlot || state_[slot].entry_state() == EntryState::kDone) continue;
    ++left;
    const bool is_dead = state_.shown_state(slot) == JobState::kDead;
    if (first == kNoSlot || (is_dead && !dead)) first = slot;
    dead = dead || is_dead;
  }
  if (first == kNoSlot) return {"waiting", "Everything that it waited for has ended; it goes on in a moment."};
  const std::string kind = core::quoted(state_.kinds()[static_cast<std::uint16_t>(state_[first].kind)]);
  const std::string others = left > 1 ? ", and for " + std::to_string(left - 1) + " more" : "";
  const std::string text = "It waits for job " + state_[first].id.to_string() + " (" + kind + "), which is " +
                           std::string(to_string(state_.shown_state(first))) + others + ".";
  if (!dead) return {"waiting", text};
  return {"waiting_for_dead", text + " Replay that one to let this one go on, or cancel this one."};
}

}  // namespace bide::engine
