// TimerWheel: scheduled entries by due time, to the millisecond. A wheel of six levels, each with 256 lists, one for
// each value of one byte of the time; an entry lies at the level of the highest byte in which its due time differs from
// the present, and moves down as that comes near. Insertion is O(1), and so is expiry, amortised. Entries with the same
// due time come out in the order in which they went in.
//
// Any number of entries can lie in one list, so a list is moved down in pieces. Until all of it has moved, time stands
// still for the wheel.

#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "engine/run_list.h"
#include "engine/slab.h"

namespace bide::engine {

class TimerWheel {
 public:
  explicit TimerWheel(Slab& slab) : slab_(slab) {}

  std::int64_t now() const { return static_cast<std::int64_t>(now_); }

  // The entry is due after now(), and in no list.
  void insert(Slot slot);

  // Moves now() forward and calls due(slot) for every entry that has become due, in the order of their due times.
  // Tombstones that it comes across are given to dropped(slot) instead. Entries have left the wheel when they are given.
  // moved(slot) is told of those that come into another list.
  //
  // Handles at most `budget` entries and takes them off it. False: there is more to do, and now() has not got there yet.
  template <class Due, class Dropped, class Moved>
  bool advance(std::int64_t to_ms, std::size_t& budget, Due&& due, Dropped&& dropped, Moved&& moved);

  // Moves now() back. Every entry is put into its place anew by the next calls of advance().
  void turn_back(std::int64_t to_ms);

  // Not before this time will anything be due; nothing when it is empty.
  std::optional<std::int64_t> next() const;

  // Its lists, one of which holds what is being moved; that comes last.
  static constexpr std::size_t kLists = 6 * 256 + 1;
  RunList& list(std::size_t number) { return number == kLists - 1 ? moving_ : levels_[number / 256].lists[number % 256]; }

  // Forgets every list and begins again at this time. The caller inserts the entries anew.
  void reset(std::int64_t now_ms);

 private:
  static constexpr unsigned kLevels = 6;
  using Bits = std::array<std::uint64_t, 4>;

  struct Level {
    std::array<RunList, 256> lists;
    Bits occupied{};
  };

  // Into the list where it belongs.
  void file(Slot slot);
  // The first occupied list of the level after this one; 256 when there is none.
  static unsigned next_occupied(const Bits& bits, unsigned after);
  unsigned digit(unsigned level) const { return static_cast<unsigned>(now_ >> (8 * level)) & 0xff; }

  // The start of the next list that is not empty, and its level.
  std::optional<std::uint64_t> next_list(unsigned& level, unsigned& index) const;

  Slab& slab_;
  std::uint64_t now_ = 0;
  std::array<Level, kLevels> levels_;
  // Taken out of their list to be filed anew. What is inserted for a time before moving_end_ must wait behind them: there
  // may be one with the same due time.
  RunList moving_;
  std::uint64_t moving_end_ = 0;
};

template <class Due, class Dropped, class Moved>
bool TimerWheel::advance(std::int64_t to_ms, std::size_t& budget, Due&& due, Dropped&& dropped, Moved&& moved) {
  const auto to = static_cast<std::uint64_t>(to_ms < 0 ? 0 : to_ms);
  for (;;) {
    while (!moving_.empty()) {
      if (budget == 0) return false;
      --budget;
      const Slot slot = moving_.pop_front(slab_);
      const Entry& entry = slab_[slot];
      if (!moving_.empty()) __builtin_prefetch(&slab_[moving_.head()]);
      if (entry.entry_state() == EntryState::kTombstone) {
        dropped(slot);
      } else if (entry.due_ms <= now_) {
        due(slot);
      } else {
        moved(slot);
        file(slot);
      }
    }
    unsigned level = 0;
    unsigned index = 0;
    const std::optional<std::uint64_t> start = next_list(level, index);
    if (!start || *start > to) break;
    now_ = *start;
    moving_ = levels_[level].lists[index].take();
    moving_end_ = *start + (1ull << (8 * level));
    levels_[level].occupied[index / 64] &= ~(1ull << (index % 64));
  }
  if (to > now_) now_ = to;
  return true;
}

}  // namespace bide::engine
