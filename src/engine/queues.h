// Queues: for each queue its ready jobs, in lanes by priority, and how many jobs it has in each state.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/queue_rules.h"
#include "engine/names.h"
#include "engine/run_list.h"
#include "engine/slab.h"

namespace bide::engine {

struct Lane {
  int priority = 0;
  // By due time, then arrival. Two lists, because a step of the wall clock shifts one against the other.
  RunList after_a_span;
  RunList by_the_clock;

  RunList& list_of(const Entry& entry) { return entry.due_is_wall ? by_the_clock : after_a_span; }
};

// Of a queue that has rules.
struct QueueLimits {
  QueueRules rules;
  core::TokenBucket starts;
};

struct Queue {
  bool paused = false;
  bool bound = false;  // It has a binding.
  std::uint32_t subscriptions = 0;  // Subscriptions.
  std::vector<Lane> lanes;  // Highest priority first.
  std::array<std::uint64_t, 16> counts{};  // By EntryState.
  std::uint64_t taken = 0;                // Ready, but out of their lanes, about to be granted.
  std::uint64_t waiting_bytes = 0;        // Of the records of those that are scheduled or ready.
  std::unique_ptr<QueueLimits> limits;    // Null: it has no rules.

  std::uint64_t count(EntryState state) const { return counts[static_cast<std::size_t>(state)]; }
  bool has_waiting() const { return count(EntryState::kReady) > taken; }
  std::uint64_t waiting() const { return count(EntryState::kScheduled) + count(EntryState::kReady); }
  bool has_rate() const { return limits && (limits->rules.rate.count != 0 || limits->rules.group_rate.count != 0); }
  std::uint64_t starting() const { return count(EntryState::kRunning) + taken; }
};

class Queues {
 public:
  explicit Queues(Slab& slab) : slab_(slab) {}

  // See Names. When the number is reused the lanes stay: only tombstones are left in them.
  std::optional<std::uint16_t> hold(std::string_view name) {
    const auto number = names_.hold(name);
    if (number && *number >= queues_.size()) queues_.resize(*number + 1u);
    if (number && names_.uses(*number) == 1) new_.push_back(*number);
    return number;
  }
  Names& names() { return names_; }
  const Names& names() const { return names_; }
  // Queues that came into being since the last call; some may be gone again.
  std::vector<std::uint16_t> take_new() { return std::exchange(new_, {}); }
  bool has_new() const { return !new_.empty(); }
  std::size_t size() const { return queues_.size(); }
  Queue& operator[](std::uint16_t number) { return queues_[number]; }
  const Queue& operator[](std::uint16_t number) const { return queues_[number]; }

  // On the clock of spans.
  void set_time(std::int64_t span_ms) { span_ms_ = span_ms; }
  // Whether its rules let one more job start now.
  bool may_start(const Queue& queue) const { return !queue.limits || (!is_at_once(queue) && !is_at_rate(queue)); }
  bool is_at_once(const Queue& queue) const;
  bool is_at_rate(const Queue& queue) const;
  // When its rate lets one more start.
  std::int64_t next_start(const Queue& queue) const;

  // Puts a ready entry into its lane.
  void insert(Slot slot);
  // Before all others of its lane.
  void insert_first(Slot slot);
  // The next entry to run, or kNoSlot. dropped(slot) is called for each tombstone on the way, at most `budget` times; when the
  // budget is used up there may be an entry behind them. `shift_ms`: see State.
  template <class Dropped>
  Slot pop(std::uint16_t queue, std::int64_t shift_ms, std::size_t& budget, Dropped&& dropped);
  // When the first waiting entry was due, in the ledger's time.
  template <class Dropped>
  std::optional<std::int64_t> oldest(std::uint16_t queue, std::int64_t shift_ms, std::size_t& budget, Dropped&& dropped);
  void clear_lanes();

 private:
  Lane& lane(Queue& queue, int priority);
  template <class Dropped>
  Slot front(RunList& list, std::size_t& budget, Dropped&& dropped);

  Slab& slab_;
  Names names_;
  std::vector<Queue> queues_;
  std::vector<std::uint16_t> new_;
  std::int64_t span_ms_ = 0;
};

template <class Dropped>
Slot Queues::front(RunList& list, std::size_t& budget, Dropped&& dropped) {
  while (!list.empty() && slab_[list.head()].entry_state() == EntryState::kTombstone) {
    if (budget == 0) return kNoSlot;
    --budget;
    dropped(list.pop_front(slab_));
  }
  return list.head();
}

template <class Dropped>
Slot Queues::pop(std::uint16_t number, std::int64_t shift_ms, std::size_t& budget, Dropped&& dropped) {
  for (Lane& lane : queues_[number].lanes) {
    const Slot span = front(lane.after_a_span, budget, dropped);
    const Slot clock = front(lane.by_the_clock, budget, dropped);
    if (budget == 0) return kNoSlot;
    if (span == kNoSlot && clock == kNoSlot) continue;
    const bool by_the_clock = span == kNoSlot || (clock != kNoSlot && slab_[clock].due() < slab_[span].due() + shift_ms);
    return (by_the_clock ? lane.by_the_clock : lane.after_a_span).pop_front(slab_);
  }
  return kNoSlot;
}

template <class Dropped>
std::optional<std::int64_t> Queues::oldest(std::uint16_t number, std::int64_t shift_ms, std::size_t& budget,
                                           Dropped&& dropped) {
  std::optional<std::int64_t> oldest;
  const auto see = [&](RunList& list, std::int64_t shift) {
    const Slot slot = front(list, budget, dropped);
    if (slot != kNoSlot) oldest = std::min(oldest.value_or(slab_[slot].due() + shift), slab_[slot].due() + shift);
  };
  for (Lane& lane : queues_[number].lanes) {
    see(lane.after_a_span, shift_ms);
    see(lane.by_the_clock, 0);
  }
  return oldest;
}

}  // namespace bide::engine
