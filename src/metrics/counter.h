// Counter: a number that only grows, added to by any thread at the price of one addition that no other thread is in the
// way of: each thread has a cell of its own, as far as there are enough of them.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace bide::metrics {

inline constexpr std::size_t kShards = 8;
inline constexpr std::size_t kCacheLineBytes = 64;

// The shard of this thread: the same for its whole life.
inline std::size_t this_shard() {
  static std::atomic<std::size_t> next = 0;
  thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed) % kShards;
  return mine;
}

class Counter {
 public:
  void add(std::uint64_t count = 1) { cells_[this_shard()].value.fetch_add(count, std::memory_order_relaxed); }

  std::uint64_t value() const {
    std::uint64_t sum = 0;
    for (const Cell& cell : cells_) sum += cell.value.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  struct alignas(kCacheLineBytes) Cell {
    std::atomic<std::uint64_t> value = 0;
  };
  std::array<Cell, kShards> cells_ = {};
};

}  // namespace bide::metrics
