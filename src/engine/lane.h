// Lane: ready jobs of the same priority, in the order in which they are to run.

#pragma once

#include <cstdint>

#include "engine/run_list.h"
#include "engine/slab.h"

namespace bide::engine {

struct Lane {
  int priority = 0;
  // By due time, then arrival. Two lists, because a step of the wall clock shifts one against the other.
  RunList after_a_span;
  RunList by_the_clock;

  RunList& list_of(const Entry& entry) { return entry.due_is_wall ? by_the_clock : after_a_span; }
  bool empty() const { return after_a_span.empty() && by_the_clock.empty(); }
};

// On the clock of spans.
inline std::int64_t span_due(const Entry& entry, std::int64_t shift_ms) {
  return entry.due() - (entry.due_is_wall ? shift_ms : 0);
}

// The first entry that is not a tombstone. dropped(slot) is called for each tombstone on the way, at most `budget` times; when
// the budget is used up there may be an entry behind them.
template <class Dropped>
Slot front(Slab& slab, RunList& list, std::size_t& budget, Dropped&& dropped) {
  while (!list.empty() && slab[list.head()].entry_state() == EntryState::kTombstone) {
    if (budget == 0) return kNoSlot;
    --budget;
    dropped(list.pop_front(slab));
  }
  return list.head();
}

// The list that begins with the next entry of the lane; null: there is none, or the budget is used up.
template <class Dropped>
RunList* next_list(Slab& slab, Lane& lane, std::int64_t shift_ms, std::size_t& budget, Dropped&& dropped) {
  const Slot span = front(slab, lane.after_a_span, budget, dropped);
  const Slot clock = front(slab, lane.by_the_clock, budget, dropped);
  if (budget == 0 || (span == kNoSlot && clock == kNoSlot)) return nullptr;
  const bool by_the_clock = span == kNoSlot || (clock != kNoSlot && slab[clock].due() < slab[span].due() + shift_ms);
  return by_the_clock ? &lane.by_the_clock : &lane.after_a_span;
}

}  // namespace bide::engine
