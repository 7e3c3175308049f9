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
#include "engine/queue_lines.h"
#include "engine/slab.h"

namespace bide::engine {

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
  // Not null: ready jobs are here and not in the lanes, because it matters which group or kind they are of.
  std::unique_ptr<QueueLines> lines;
  std::uint32_t kind_subscriptions = 0;  // Of these subscriptions so many take some kinds only.

  std::uint64_t count(EntryState state) const { return counts[static_cast<std::size_t>(state)]; }
  bool has_waiting() const { return count(EntryState::kReady) > taken; }
  std::uint64_t waiting() const { return count(EntryState::kScheduled) + count(EntryState::kReady); }
  bool has_rate() const { return limits && (limits->rules.rate.count != 0 || limits->rules.group_rate.count != 0); }
  std::uint64_t starting() const { return count(EntryState::kRunning) + taken; }
};

class Queues {
 public:
  Queues(Slab& slab, GroupTable& groups) : slab_(slab), groups_(groups) {}

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

  // On the clock of spans; `shift_ms`: see State.
  void set_time(std::int64_t span_ms, std::int64_t shift_ms) {
    span_ms_ = span_ms;
    shift_ms_ = shift_ms;
  }
  // Whether a subscription that takes these kinds can be given a job.
  bool can_give(std::uint16_t number, KindFilter& takes) const {
    const Queue& queue = queues_[number];
    if (queue.paused || !queue.has_waiting() || !may_start(queue)) return false;
    return !queue.lines || queue.lines->has_any(takes);
  }
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
  // budget is used up there may be an entry behind them.
  template <class Dropped>
  Slot pop(std::uint16_t queue, KindFilter& takes, std::size_t& budget, Dropped&& dropped);
  // When the first waiting entry was due, in the ledger's time.
  template <class Dropped>
  std::optional<std::int64_t> oldest(std::uint16_t queue, std::size_t& budget, Dropped&& dropped);
  void clear_lanes();

  // After its rules or its subscriptions have changed: what matters of its jobs from now on. They are sorted by sort().
  void arrange(std::uint16_t number);
  // Sorts at most `budget` jobs of queues that were arranged anew; moved(slot) is called before one goes to its new place.
  template <class Moved, class Dropped>
  void sort(std::size_t& budget, Moved&& moved, Dropped&& dropped);
  bool is_sorted() const { return unsorted_.empty(); }
  void wake(GroupNumber group) {
    Queue& queue = queues_[groups_[group].queue];
    if (queue.lines) queue.lines->wake(group, now_of(queue));
  }
  QueueLines::Now now_of(const Queue& queue) const;

 private:
  Lane& lane(Queue& queue, int priority);

  Slab& slab_;
  GroupTable& groups_;
  Names names_;
  std::vector<Queue> queues_;
  std::vector<std::uint16_t> new_;
  std::vector<std::uint16_t> unsorted_;  // Queues whose jobs are not all where they belong.
  std::int64_t span_ms_ = 0;
  std::int64_t shift_ms_ = 0;
};

template <class Dropped>
Slot Queues::pop(std::uint16_t number, KindFilter& takes, std::size_t& budget, Dropped&& dropped) {
  Queue& queue = queues_[number];
  if (queue.lines) return queue.lines->pop(takes, now_of(queue), budget, dropped);
  const std::int64_t ageing_ms = queue.limits ? queue.limits->rules.ageing.count() : 0;
  RunList* best = nullptr;
  std::int64_t best_key = 0;
  for (Lane& lane : queue.lanes) {
    RunList* list = next_list(slab_, lane, shift_ms_, budget, dropped);
    if (budget == 0) return kNoSlot;
    if (list == nullptr) continue;
    if (ageing_ms == 0) return list->pop_front(slab_);
    // Who has waited so long for each priority that is missing comes first.
    const std::int64_t key = span_due(slab_[list->head()], shift_ms_) - lane.priority * ageing_ms;
    if (best != nullptr && key >= best_key) continue;
    best = list;
    best_key = key;
  }
  return best == nullptr ? kNoSlot : best->pop_front(slab_);
}

template <class Dropped>
std::optional<std::int64_t> Queues::oldest(std::uint16_t number, std::size_t& budget, Dropped&& dropped) {
  Queue& queue = queues_[number];
  if (queue.lines) return queue.lines->oldest(shift_ms_, budget, dropped);
  std::optional<std::int64_t> oldest;
  const auto see = [&](RunList& list) {
    const Slot slot = front(slab_, list, budget, dropped);
    if (slot == kNoSlot) return;
    const std::int64_t due = span_due(slab_[slot], shift_ms_) + shift_ms_;
    oldest = std::min(oldest.value_or(due), due);
  };
  for (Lane& lane : queue.lanes) {
    see(lane.after_a_span);
    see(lane.by_the_clock);
  }
  return oldest;
}

template <class Moved, class Dropped>
void Queues::sort(std::size_t& budget, Moved&& moved, Dropped&& dropped) {
  while (!unsorted_.empty() && budget > 0) {
    Queue& queue = queues_[unsorted_.back()];
    const Slot slot = queue.lines ? queue.lines->take_unsorted() : kNoSlot;
    if (slot == kNoSlot) {
      unsorted_.pop_back();
      continue;
    }
    --budget;
    if (slab_[slot].entry_state() == EntryState::kTombstone) {
      dropped(slot);
    } else {
      moved(slot);
      queue.lines->insert(slot, now_of(queue));
    }
  }
}

}  // namespace bide::engine
