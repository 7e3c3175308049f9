#include "metrics/histogram.h"

#include <algorithm>
#include <cmath>

#include "platform/fatal.h"

namespace bide::metrics {

Histogram::Histogram(std::span<const double> bounds) : bounds_(bounds) {
  platform::require(bounds.size() <= kMostBounds, "a histogram has too many bounds");
  std::transform(bounds.begin(), bounds.end(), bounds_ns_.begin(),
                 [](double seconds) { return static_cast<std::int64_t>(std::llround(seconds * 1e9)); });
}

void Histogram::observe(std::chrono::nanoseconds time, std::uint64_t count) {
  const std::int64_t ns = std::max<std::int64_t>(time.count(), 0);
  // A bound belongs to what is below it.
  const auto end = bounds_ns_.begin() + static_cast<std::ptrdiff_t>(bounds_.size());
  const auto bucket = static_cast<std::size_t>(std::lower_bound(bounds_ns_.begin(), end, ns) - bounds_ns_.begin());
  Shard& shard = shards_[this_shard()];
  shard.counts[bucket].fetch_add(count, std::memory_order_relaxed);
  shard.sum_ns.fetch_add(static_cast<std::uint64_t>(ns) * count, std::memory_order_relaxed);
}

Histogram::Reading Histogram::read() const {
  Reading reading;
  reading.bounds = bounds_;
  reading.counts.resize(bounds_.size() + 1);
  for (const Shard& shard : shards_) {
    for (std::size_t i = 0; i < reading.counts.size(); ++i) {
      reading.counts[i] += shard.counts[i].load(std::memory_order_relaxed);
    }
    reading.sum_seconds += static_cast<double>(shard.sum_ns.load(std::memory_order_relaxed)) / 1e9;
  }
  return reading;
}

}  // namespace bide::metrics
