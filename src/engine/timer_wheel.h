// TimerWheel: scheduled entries by due time, to the millisecond. A wheel of six levels, each with 256 lists, one for
// each value of one byte of the time; an entry lies at the level of the highest byte in which its due time differs from
// the present, and moves down as that comes near. Insertion is O(1), and so is expiry, amortised. Entries with the same
// due time come out in the order in which they went in.

#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "engine/slab.h"

namespace bide::engine {

class TimerWheel {
 public:
  explicit TimerWheel(Slab& slab) : slab_(slab) {}

  std::int64_t now() const { return static_cast<std::int64_t>(now_); }

  // The entry is due after now(), and in no list.
  void insert(Slot slot);

  // Moves now() forward and calls due(slot) for every entry that has become due, in the order of their due times.
  // Zombies that it comes across are given to dropped(slot) instead. Entries have left the wheel when they are given.
  template <class Due, class Dropped>
  void advance(std::int64_t to_ms, Due&& due, Dropped&& dropped);

  // Not before this time will anything be due; nothing when it is empty.
  std::optional<std::int64_t> next() const;

  // Shows every list.
  template <class See>
  void for_each_list(See&& see) {
    for (Level& level : levels_) {
      for (SlotList& list : level.lists) see(list);
    }
  }

  // Forgets every list and begins again at this time. The caller inserts the entries anew.
  void reset(std::int64_t now_ms);

 private:
  static constexpr unsigned kLevels = 6;
  using Bits = std::array<std::uint64_t, 4>;

  struct Level {
    std::array<SlotList, 256> lists;
    Bits occupied{};
  };

  // The first occupied list of the level after this one; 256 when there is none.
  static unsigned next_occupied(const Bits& bits, unsigned after);
  unsigned digit(unsigned level) const { return static_cast<unsigned>(now_ >> (8 * level)) & 0xff; }

  // The start of the next list that is not empty, and its level.
  std::optional<std::uint64_t> next_list(unsigned& level, unsigned& index) const;

  Slab& slab_;
  std::uint64_t now_ = 0;
  std::array<Level, kLevels> levels_;
};

template <class Due, class Dropped>
void TimerWheel::advance(std::int64_t to_ms, Due&& due, Dropped&& dropped) {
  const auto to = static_cast<std::uint64_t>(to_ms < 0 ? 0 : to_ms);
  if (to <= now_) return;
  for (;;) {
    unsigned level = 0;
    unsigned index = 0;
    const std::optional<std::uint64_t> start = next_list(level, index);
    if (!start || *start > to) break;
    now_ = *start;
    SlotList list = levels_[level].lists[index].take();
    levels_[level].occupied[index / 64] &= ~(1ull << (index % 64));
    while (!list.empty()) {
      const Slot slot = list.pop_front(slab_);
      const Entry& entry = slab_[slot];
      if (!list.empty()) __builtin_prefetch(&slab_[list.head]);
      if (entry.entry_state() == EntryState::kZombie) {
        dropped(slot);
      } else if (entry.due_ms <= now_) {
        due(slot);
      } else {
        insert(slot);
      }
    }
  }
  now_ = to;
}

}  // namespace bide::engine
