// Histogram: how long things took, as counts between fixed bounds, and their sum. As cheap as a Counter, twice.

#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "metrics/counter.h"

namespace bide::metrics {

class Histogram {
 public:
  static constexpr std::size_t kMostBounds = 23;

  // Upper bounds, rising, in seconds; at most kMostBounds. They must outlive the histogram.
  explicit Histogram(std::span<const double> bounds);

  // What is negative counts as nothing: clocks of two machines may differ.
  void observe(std::chrono::nanoseconds time, std::uint64_t count = 1);

  struct Reading {
    std::span<const double> bounds;
    std::vector<std::uint64_t> counts;  // One more than bounds; each without those below.
    double sum_seconds = 0;
  };
  Reading read() const;

 private:
  struct alignas(kCacheLineBytes) Shard {
    std::array<std::atomic<std::uint64_t>, kMostBounds + 1> counts = {};
    std::atomic<std::uint64_t> sum_ns = 0;
  };

  const std::span<const double> bounds_;
  std::array<std::int64_t, kMostBounds> bounds_ns_ = {};
  std::array<Shard, kShards> shards_ = {};
};

}  // namespace bide::metrics
