#include "support/virtual_clock.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace bide::support {
namespace {

TEST(VirtualClock, StandsStillByItself) {
  const VirtualClock clock({.wall_us = 500, .elapsed_us = 20});
  EXPECT_EQ(clock.now().wall_us, 500);
  EXPECT_EQ(clock.now().elapsed_us, 20);
}

TEST(VirtualClock, AdvanceMovesBothClocks) {
  VirtualClock clock({.wall_us = 500, .elapsed_us = 20});
  clock.advance(30);
  EXPECT_EQ(clock.now().wall_us, 30'500);
  EXPECT_EQ(clock.now().elapsed_us, 30'020);
  clock.advance(std::chrono::microseconds(1));
  EXPECT_EQ(clock.now().wall_us, 30'501);
  EXPECT_EQ(clock.now().elapsed_us, 30'021);
}

TEST(VirtualClock, WhoeverWatchesIsToldOfEveryMove) {
  VirtualClock clock;
  int moves = 0;
  auto watch = clock.watch([&] { ++moves; });
  clock.advance(1);
  EXPECT_EQ(moves, 1);
  clock.step_wall(-1);
  EXPECT_EQ(moves, 2);
  watch.reset();
  clock.advance(1);
  EXPECT_EQ(moves, 2);
}

TEST(VirtualClock, SteppingTheWallLeavesElapsedTimeAlone) {
  VirtualClock clock({.wall_us = 500, .elapsed_us = 20});
  clock.step_wall(-400);
  EXPECT_EQ(clock.now().wall_us, -399'500);
  EXPECT_EQ(clock.now().elapsed_us, 20);
  clock.step_wall(std::chrono::seconds(1));
  EXPECT_EQ(clock.now().wall_us, 600'500);
  EXPECT_EQ(clock.now().elapsed_us, 20);
}

TEST(VirtualClock, BothClocksAreReadAtTheSameMoment) {
  VirtualClock clock({.wall_us = 0, .elapsed_us = 0});
  std::atomic<bool> stop = false;
  std::thread mover([&] {
    for (int i = 0; i < 10'000; ++i) clock.advance(1);
    stop = true;
  });
  while (!stop) {
    const auto now = clock.now();
    EXPECT_EQ(now.wall_us, now.elapsed_us);
  }
  mover.join();
  EXPECT_EQ(clock.now().elapsed_us, 10'000'000);
}

}  // namespace
}  // namespace bide::support
