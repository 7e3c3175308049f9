#include "engine/queues.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

namespace bide::engine {
namespace {

class QueuesTest : public testing::Test {
 protected:
  Slot add(std::int64_t due, int priority = 0) {
    const Slot slot = slab_.allocate();
    slab_[slot] = Entry{};
    slab_[slot].queue = queue_;
    slab_[slot].set_due(due);
    slab_[slot].priority = static_cast<std::int8_t>(priority);
    slab_[slot].set_state(EntryState::kReady);
    queues_.insert(slot);
    return slot;
  }
  Slot pop() {
    return queues_.pop(queue_, [this](Slot zombie) { dropped_.push_back(zombie); });
  }

  Slab slab_;
  Queues queues_{slab_};
  std::uint16_t queue_ = *queues_.hold("q");
  std::vector<Slot> dropped_;
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

TEST_F(QueuesTest, ZombiesAreSkippedAndHandedBack) {
  const Slot zombie = add(10);
  const Slot job = add(20);
  slab_[zombie].set_state(EntryState::kZombie);
  EXPECT_EQ(pop(), job);
  EXPECT_EQ(dropped_, std::vector<Slot>{zombie});
}

}  // namespace
}  // namespace bide::engine
