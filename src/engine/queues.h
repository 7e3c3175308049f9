// Queues: for each queue its ready jobs, in lanes by priority, and how many jobs it has in each state.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/names.h"
#include "engine/slab.h"

namespace bide::engine {

struct Lane {
  int priority = 0;
  SlotList list;  // By due time, then arrival.
};

struct Queue {
  bool paused = false;
  std::uint32_t takers = 0;  // Subscriptions.
  std::vector<Lane> lanes;  // Highest priority first.
  std::array<std::uint64_t, 8> counts{};  // By EntryState.
  std::uint64_t taken = 0;                // Ready, but out of their lanes, about to be granted.

  std::uint64_t count(EntryState state) const { return counts[static_cast<std::size_t>(state)]; }
  bool has_waiting() const { return count(EntryState::kReady) > taken; }
};

class Queues {
 public:
  explicit Queues(Slab& slab) : slab_(slab) {}

  // As Names does. A queue keeps its lanes when its number is given to another: what is left in them are zombies.
  std::optional<std::uint16_t> hold(std::string_view name) {
    const auto number = names_.hold(name);
    if (number && *number >= queues_.size()) queues_.resize(*number + 1u);
    if (number && names_.uses(*number) == 1) made_.push_back(*number);
    return number;
  }
  Names& names() { return names_; }
  const Names& names() const { return names_; }
  // Numbers that were given to a queue since this was last asked; it may have gone since.
  std::vector<std::uint16_t> take_made() { return std::exchange(made_, {}); }
  bool has_made() const { return !made_.empty(); }
  std::size_t size() const { return queues_.size(); }
  Queue& operator[](std::uint16_t number) { return queues_[number]; }
  const Queue& operator[](std::uint16_t number) const { return queues_[number]; }

  // Puts a ready entry into its lane.
  void insert(Slot slot);
  // Before all others of its lane.
  void insert_first(Slot slot);
  // The next entry to run, or kNoSlot. Zombies on the way are given to dropped(slot).
  template <class Dropped>
  Slot pop(std::uint16_t queue, Dropped&& dropped);
  // The same, left in its place.
  template <class Dropped>
  Slot front(std::uint16_t queue, Dropped&& dropped);
  void clear_lanes();

 private:
  SlotList& lane(Queue& queue, int priority);

  Slab& slab_;
  Names names_;
  std::vector<Queue> queues_;
  std::vector<std::uint16_t> made_;
};

template <class Dropped>
Slot Queues::front(std::uint16_t number, Dropped&& dropped) {
  for (Lane& lane : queues_[number].lanes) {
    while (!lane.list.empty()) {
      if (slab_[lane.list.head].entry_state() != EntryState::kZombie) return lane.list.head;
      dropped(lane.list.pop_front(slab_));
    }
  }
  return kNoSlot;
}

template <class Dropped>
Slot Queues::pop(std::uint16_t number, Dropped&& dropped) {
  const Slot slot = front(number, dropped);
  if (slot != kNoSlot) lane(queues_[number], static_cast<int>(slab_[slot].priority)).pop_front(slab_);
  return slot;
}

}  // namespace bide::engine
