#include "platform/clock.h"

#include <chrono>

#include <gtest/gtest.h>

namespace bide::platform {
namespace {

TEST(RealClock, WallTimeIsTheSystemsTimeInMicroseconds) {
  using std::chrono::duration_cast;
  using std::chrono::microseconds;
  const auto system_us = [] {
    return duration_cast<microseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  };
  const auto before = system_us();
  const auto wall = real_clock().now().wall_us;
  EXPECT_LE(before, wall);
  EXPECT_LE(wall, system_us());
}

TEST(RealClock, ElapsedTimeNeverGoesBack) {
  auto last = real_clock().now().elapsed_us;
  EXPECT_GT(last, 0);
  for (int i = 0; i < 10'000; ++i) {
    const auto now = real_clock().now().elapsed_us;
    ASSERT_LE(last, now);
    last = now;
  }
}

TEST(RealClock, ElapsedTimePasses) {
  const auto start = real_clock().now().elapsed_us;
  while (real_clock().now().elapsed_us == start) {
  }
  EXPECT_GT(real_clock().now().elapsed_us, start);
}

TEST(RealClockTest, ABootHasOneName) {
  EXPECT_GE(real_clock().boot().size(), 36u);
  EXPECT_EQ(real_clock().boot(), real_clock().boot());
}

}  // namespace
}  // namespace bide::platform
