#include "platform/clock.h"

#include <sys/timex.h>
#include <chrono>
#include <cstdlib>
#include <semaphore>

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

TEST(RealClock, WhoeverWatchesIsToldWhenTheWallClockIsSet) {
  // By a microsecond: that is a step, too. Still, it is the clock of everybody on this machine.
  if (std::getenv("BIDE_MAY_SET_CLOCK") == nullptr) GTEST_SKIP() << "the wall clock is set only if BIDE_MAY_SET_CLOCK is";
  std::binary_semaphore jumped(0);
  auto watch = real_clock().watch([&] { jumped.release(); });
  for (const long by_us : {1L, 999'999L}) {
    timex change{};
    change.modes = ADJ_SETOFFSET;
    change.time = {.tv_sec = by_us == 1 ? 0 : -1, .tv_usec = by_us};
    ASSERT_GE(::clock_adjtime(CLOCK_REALTIME, &change), 0);
    jumped.acquire();
  }
  watch.reset();
}

TEST(RealClock, AWatchCanEndAtOnce) {
  for (int i = 0; i < 100; ++i) (void)real_clock().watch([] { FAIL() << "nothing has happened"; });
}

TEST(RealClockTest, ABootHasOneName) {
  EXPECT_GE(real_clock().boot().size(), 36u);
  EXPECT_EQ(real_clock().boot(), real_clock().boot());
}

}  // namespace
}  // namespace bide::platform
