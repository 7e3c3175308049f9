#include "engine/timer_wheel.h"

#include <bit>

#include "platform/fatal.h"

namespace bide::engine {

void TimerWheel::insert(Slot slot) {
  const std::uint64_t due = slab_[slot].due_ms;
  platform::require(due > now_, "a timer must be set for later");
  if (!moving_.empty() && due < moving_end_) {
    moving_.push_back(slab_, slot);
  } else {
    file(slot);
  }
}

void TimerWheel::file(Slot slot) {
  const std::uint64_t due = slab_[slot].due_ms;
  const unsigned level = (63u - static_cast<unsigned>(std::countl_zero(due ^ now_))) / 8;
  const unsigned index = static_cast<unsigned>(due >> (8 * level)) & 0xff;
  levels_[level].lists[index].push_back(slab_, slot);
  levels_[level].occupied[index / 64] |= 1ull << (index % 64);
}

unsigned TimerWheel::next_occupied(const Bits& bits, unsigned after) {
  unsigned from = after + 1;
  while (from < 256) {
    const std::uint64_t word = bits[from / 64] >> (from % 64);
    if (word != 0) return from + static_cast<unsigned>(std::countr_zero(word));
    from = (from / 64 + 1) * 64;
  }
  return 256;
}

std::optional<std::uint64_t> TimerWheel::next_list(unsigned& level, unsigned& index) const {
  for (level = 0; level < kLevels; ++level) {
    index = next_occupied(levels_[level].occupied, digit(level));
    if (index == 256) continue;
    const std::uint64_t above = level + 1 == kLevels ? 0 : now_ >> (8 * (level + 1)) << (8 * (level + 1));
    return above | static_cast<std::uint64_t>(index) << (8 * level);
  }
  return std::nullopt;
}

std::optional<std::int64_t> TimerWheel::next() const {
  if (!moving_.empty()) return now();
  unsigned level = 0;
  unsigned index = 0;
  const std::optional<std::uint64_t> start = next_list(level, index);
  if (!start) return std::nullopt;
  return static_cast<std::int64_t>(*start);
}

void TimerWheel::turn_back(std::int64_t to_ms) {
  // Those of the same time are in one list, or some of them are being moved into it and these come behind.
  RunList all;
  for (Level& level : levels_) {
    for (RunList& list : level.lists) all.append(list.take());
    level.occupied = {};
  }
  all.append(moving_.take());
  moving_ = all.take();
  moving_end_ = ~0ull;
  now_ = static_cast<std::uint64_t>(to_ms < 0 ? 0 : to_ms);
}

void TimerWheel::reset(std::int64_t now_ms) {
  for (Level& level : levels_) level = Level();
  moving_ = RunList();
  now_ = static_cast<std::uint64_t>(now_ms < 0 ? 0 : now_ms);
}

}  // namespace bide::engine
