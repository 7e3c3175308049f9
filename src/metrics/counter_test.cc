#include "metrics/counter.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace bide::metrics {
namespace {

TEST(Counter, StartsAtNothingAndGrowsByWhatIsAdded) {
  Counter counter;
  EXPECT_EQ(counter.value(), 0u);
  counter.add();
  counter.add(41);
  EXPECT_EQ(counter.value(), 42u);
}

TEST(Counter, LosesNothingWhenMoreThreadsThanShardsAdd) {
  Counter counter;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 2 * kShards; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10'000; ++n) counter.add();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), 2 * kShards * 10'000);
}

TEST(Counter, GivesAThreadTheSameShardForItsWholeLife) {
  const std::size_t mine = this_shard();
  EXPECT_LT(mine, kShards);
  EXPECT_EQ(this_shard(), mine);
}

}  // namespace
}  // namespace bide::metrics
