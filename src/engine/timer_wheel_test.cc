#include "engine/timer_wheel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace bide::engine {
namespace {

class TimerWheelTest : public testing::Test {
 protected:
  TimerWheelTest() { wheel_.reset(kStart); }

  Slot insert(std::int64_t due) {
    const Slot slot = slab_.allocate();
    slab_[slot] = Entry{};
    slab_[slot].set_state(EntryState::kScheduled);
    slab_[slot].set_due(due);
    wheel_.insert(slot);
    return slot;
  }
  // The due times that come out, in order.
  std::vector<std::int64_t> advance(std::int64_t to) {
    std::vector<std::int64_t> due;
    fired_.clear();
    wheel_.advance(
        to,
        [&](Slot slot) {
          due.push_back(slab_[slot].due());
          fired_.push_back(slot);
        },
        [&](Slot slot) { dropped_.push_back(slot); });
    return due;
  }

  static constexpr std::int64_t kStart = 1'700'000'000'123;
  Slab slab_;
  TimerWheel wheel_{slab_};
  std::vector<Slot> fired_;
  std::vector<Slot> dropped_;
};

TEST_F(TimerWheelTest, NothingIsDueBeforeItsMillisecond) {
  insert(kStart + 1000);
  EXPECT_TRUE(advance(kStart + 999).empty());
  EXPECT_EQ(advance(kStart + 1000).size(), 1u);
  EXPECT_FALSE(wheel_.next());
}

TEST_F(TimerWheelTest, EntriesWithTheSameTimeComeOutInTheOrderInWhichTheyWentIn) {
  const std::int64_t due = kStart + 100'000'000;
  std::vector<Slot> expected = {insert(due), insert(due)};
  advance(due - 70'000);  // The first two have moved down a level; the others join them there.
  expected.push_back(insert(due));
  advance(due - 3);
  expected.push_back(insert(due));
  advance(due);
  EXPECT_EQ(fired_, expected);
}

TEST_F(TimerWheelTest, NextNeverLiesBehindTheEarliestEntry) {
  insert(kStart + 5'000'000'000);
  while (advance(*wheel_.next()).empty()) {
    ASSERT_LE(wheel_.now(), kStart + 5'000'000'000);
  }
  EXPECT_EQ(wheel_.now(), kStart + 5'000'000'000);
}

TEST_F(TimerWheelTest, ZombiesAreDroppedOnTheWay) {
  const Slot zombie = insert(kStart + 10);
  slab_[zombie].set_state(EntryState::kZombie);
  EXPECT_TRUE(advance(kStart + 10).empty());
  EXPECT_EQ(dropped_, std::vector<Slot>{zombie});
}

TEST_F(TimerWheelTest, ComesOutLikeASortedList) {
  std::mt19937_64 random(7);
  std::vector<std::int64_t> expected;
  std::vector<std::int64_t> seen;
  std::int64_t now = kStart;
  for (int round = 0; round < 400; ++round) {
    for (int i = 0; i < 25; ++i) {
      // Spans from a millisecond to years, evenly over the levels.
      const std::int64_t due = now + 1 + static_cast<std::int64_t>(random() >> (24 + random() % 38));
      expected.push_back(due);
      insert(due);
    }
    now += static_cast<std::int64_t>(random() >> (26 + random() % 37));
    const auto fired = advance(now);
    for (const std::int64_t due : fired) EXPECT_LE(due, now);
    seen.insert(seen.end(), fired.begin(), fired.end());
    EXPECT_TRUE(std::is_sorted(fired.begin(), fired.end()));
  }
  const auto rest = advance((1ll << 47));
  seen.insert(seen.end(), rest.begin(), rest.end());
  std::sort(expected.begin(), expected.end());
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, expected);
}

}  // namespace
}  // namespace bide::engine
