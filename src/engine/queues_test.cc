#include "engine/queues.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

namespace bide::engine {
namespace {

class QueuesTest : public testing::Test {
 protected:
  Slot add(std::int64_t due, int priority = 0, bool due_is_wall = false) {
    const Slot slot = slab_.allocate();
    slab_[slot] = Entry{};
    slab_[slot].queue = queue_;
    slab_[slot].set_due(due);
    slab_[slot].priority = static_cast<std::int8_t>(priority);
    slab_[slot].due_is_wall = due_is_wall;
    slab_[slot].set_state(EntryState::kReady);
    queues_.insert(slot);
    return slot;
  }
  Slot pop() {
    std::size_t budget = 100;
    queues_.set_time(0, shift_ms_);
    return queues_.pop(queue_, all_, budget, [this](Slot tombstone) { dropped_.push_back(tombstone); });
  }

  Slab slab_;
  GroupTable groups_;
  Queues queues_{slab_, groups_};
  KindFilter all_;
  std::uint16_t queue_ = *queues_.hold("q");
  std::vector<Slot> dropped_;
  std::int64_t shift_ms_ = 0;
};

TEST_F(QueuesTest, HighestPriorityThenDueThenArrival) {
  std::mt19937 random(3);
  using Key = std::tuple<int, std::int64_t, int>;
  std::vector<std::pair<Key, Slot>> expected;
  for (int arrival = 0; arrival < 2000; ++arrival) {
    const auto due = static_cast<std::int64_t>(random() % 50);
    const int priority = static_cast<int>(random() % 5) - 2;
    expected.push_back({{-priority, due, arrival}, add(due, priority)});
  }
  std::sort(expected.begin(), expected.end());
  for (const auto& [key, slot] : expected) ASSERT_EQ(pop(), slot);
  EXPECT_EQ(pop(), kNoSlot);
}

TEST_F(QueuesTest, AJobThatComesBackGoesBeforeThoseThatWereDueLater) {
  const Slot first = add(10);
  const Slot second = add(20);
  ASSERT_EQ(pop(), first);
  queues_.insert(first);
  EXPECT_EQ(pop(), first);
  EXPECT_EQ(pop(), second);
}

TEST_F(QueuesTest, TombstonesAreSkippedAndHandedBack) {
  const Slot tombstone = add(10);
  const Slot job = add(20);
  slab_[tombstone].set_state(EntryState::kTombstone);
  EXPECT_EQ(pop(), job);
  EXPECT_EQ(dropped_, std::vector<Slot>{tombstone});
}

TEST_F(QueuesTest, SpansAndTimesOfTheClockAreComparedAsTheClockIsNow) {
  const Slot span = add(10);
  const Slot clock = add(15, 0, true);
  const Slot later_span = add(12);
  ASSERT_EQ(pop(), span);
  shift_ms_ = 10;  // The wall clock was set forward: what waits for a span is due later by it.
  EXPECT_EQ(pop(), clock);
  EXPECT_EQ(pop(), later_span);
}

TEST_F(QueuesTest, ClearingAwayTombstonesIsBounded) {
  for (int i = 0; i < 10; ++i) slab_[add(10)].set_state(EntryState::kTombstone);
  const Slot job = add(20);
  std::size_t budget = 4;
  const auto drop = [this](Slot tombstone) { dropped_.push_back(tombstone); };
  EXPECT_EQ(queues_.pop(queue_, all_, budget, drop), kNoSlot);
  EXPECT_EQ(budget, 0u);
  EXPECT_EQ(dropped_.size(), 4u);
  budget = 100;
  EXPECT_EQ(queues_.pop(queue_, all_, budget, drop), job);
}

}  // namespace
}  // namespace bide::engine
