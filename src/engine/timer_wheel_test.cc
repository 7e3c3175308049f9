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
    fired_.clear();
    std::size_t budget = 1'000'000;
    return advance_by(to, budget);
  }
  std::vector<std::int64_t> advance_by(std::int64_t to, std::size_t& budget) {
    std::vector<std::int64_t> due;
    is_there_ = wheel_.advance(
        to, budget,
        [&](Slot slot) {
          due.push_back(slab_[slot].due());
          fired_.push_back(slot);
        },
        [&](Slot slot) { dropped_.push_back(slot); }, [](Slot) {});
    return due;
  }

  static constexpr std::int64_t kStart = 1'700'000'000'123;
  Slab slab_;
  TimerWheel wheel_{slab_};
  std::vector<Slot> fired_;
  std::vector<Slot> dropped_;
  bool is_there_ = false;
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

TEST_F(TimerWheelTest, TombstonesAreDroppedOnTheWay) {
  const Slot tombstone = insert(kStart + 10);
  slab_[tombstone].set_state(EntryState::kTombstone);
  EXPECT_TRUE(advance(kStart + 10).empty());
  EXPECT_EQ(dropped_, std::vector<Slot>{tombstone});
}

TEST_F(TimerWheelTest, APieceHandlesNoMoreThanItsBudgetAndTheOrderIsKept) {
  const std::int64_t due = kStart + 100'000;
  std::vector<Slot> expected;
  for (int i = 0; i < 1000; ++i) expected.push_back(insert(due));
  const Slot last = insert(due + 1);
  int pieces = 0;
  for (is_there_ = false; !is_there_; ++pieces) {
    std::size_t budget = 10;
    const std::size_t before = fired_.size();
    advance_by(due + 5, budget);
    EXPECT_LE(fired_.size() - before, 10u);
    // Until all of them have come, they keep their turn before those that are inserted for the same time.
    EXPECT_TRUE(is_there_ || *wheel_.next() <= due + 5);
    if (wheel_.now() < due && pieces % 7 == 0) expected.push_back(insert(due));
  }
  EXPECT_GE(pieces, 100);
  expected.push_back(last);
  EXPECT_EQ(fired_, expected);
  EXPECT_EQ(wheel_.now(), due + 5);
}

TEST_F(TimerWheelTest, TurnedBackItHoldsEveryEntryUntilItsTimeComesAgain) {
  std::mt19937_64 random(11);
  std::vector<std::int64_t> expected;
  for (int i = 0; i < 2000; ++i) {
    expected.push_back(kStart + 10'000 + static_cast<std::int64_t>(random() % 10'000'000));
    insert(expected.back());
  }
  std::sort(expected.begin(), expected.end());
  wheel_.turn_back(kStart - 5'000'000);
  std::vector<std::int64_t> seen;
  std::int64_t now = wheel_.now();
  while (seen.size() < expected.size()) {
    if (is_there_) now = *wheel_.next();
    std::size_t budget = 50;
    for (const std::int64_t due : advance_by(now, budget)) {
      ASSERT_LE(due, now);
      seen.push_back(due);
    }
  }
  EXPECT_EQ(seen, expected);
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
