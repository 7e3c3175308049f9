#include "platform/random.h"

#include <bit>
#include <set>

#include <gtest/gtest.h>

namespace bide::platform {
namespace {

TEST(Xoshiro, FollowsThePublishedSequence) {
  // The first outputs of the reference implementation from the state 1, 2, 3, 4.
  std::uint64_t state[4] = {1, 2, 3, 4};
  EXPECT_EQ(xoshiro_next(state), 11520u);
  EXPECT_EQ(xoshiro_next(state), 0u);
  EXPECT_EQ(xoshiro_next(state), 1509978240u);
  EXPECT_EQ(xoshiro_next(state), 1215971899390074240u);
}

TEST(SystemRandom, TwoSourcesDiffer) {
  SystemRandom one;
  SystemRandom other;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    seen.insert(one.next());
    seen.insert(other.next());
  }
  EXPECT_EQ(seen.size(), 2000u);
}

TEST(SystemRandom, EveryBitIsSetAboutHalfTheTime) {
  SystemRandom random;
  int counts[64] = {};
  for (int i = 0; i < 4096; ++i) {
    const auto value = random.next();
    for (int bit = 0; bit < 64; ++bit) counts[bit] += static_cast<int>(value >> bit & 1);
  }
  // Ten standard deviations of 32 to either side: a fair source never gets there.
  for (const int count : counts) EXPECT_NEAR(count, 2048, 320);
}

}  // namespace
}  // namespace bide::platform
