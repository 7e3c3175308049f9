#include "metrics/histogram.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

namespace bide::metrics {
namespace {

using namespace std::chrono_literals;

constexpr std::array kBounds = {0.001, 0.1, 1.0};

TEST(Histogram, CountsWhatLiesOnABoundBelowIt) {
  Histogram histogram(kBounds);
  histogram.observe(1ms);
  histogram.observe(1'000'001ns);
  histogram.observe(1s);
  histogram.observe(2s);
  const Histogram::Reading reading = histogram.read();
  EXPECT_EQ(reading.counts, (std::vector<std::uint64_t>{1, 1, 1, 1}));
  EXPECT_DOUBLE_EQ(reading.sum_seconds, 3.002000001);
}

TEST(Histogram, CountsANegativeTimeAsNone) {
  Histogram histogram(kBounds);
  histogram.observe(-5s);
  const Histogram::Reading reading = histogram.read();
  EXPECT_EQ(reading.counts[0], 1u);
  EXPECT_EQ(reading.sum_seconds, 0);
}

TEST(Histogram, CountsManyOfTheSameAtOnce) {
  Histogram histogram(kBounds);
  histogram.observe(500ms, 4);
  EXPECT_EQ(histogram.read().counts[2], 4u);
  EXPECT_DOUBLE_EQ(histogram.read().sum_seconds, 2);
}

TEST(Histogram, LosesNothingWhenManyThreadsObserve) {
  Histogram histogram(kBounds);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 2 * kShards; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 5'000; ++n) histogram.observe(50ms);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.read().counts[1], 2 * kShards * 5'000);
}

}  // namespace
}  // namespace bide::metrics
