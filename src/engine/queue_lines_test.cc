#include "engine/queue_lines.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace bide::engine {
namespace {

// Lines against a list of jobs that is searched from the beginning each time.
class QueueLinesTest : public ::testing::Test {
 protected:
  void start(const QueueRules& rules, bool by_kind = false) {
    rules_ = rules;
    lines_.tell_apart(core::tells_groups_apart(rules), by_kind);
  }
  QueueLines::Now now() const { return {rules_, time_, 0}; }

  Slot add(const std::string& group, std::int64_t due = 0, int priority = 0, std::uint16_t kind = 0) {
    const Slot slot = slab_.allocate();
    slab_[slot] = Entry{};
    slab_[slot].next = kNoSlot;
    slab_[slot].set_due(due);
    slab_[slot].priority = static_cast<std::int8_t>(priority);
    slab_[slot].kind = kind;
    slab_[slot].set_body({++bodies_, 10});
    slab_[slot].set_state(EntryState::kReady);
    if (!group.empty()) {
      const GroupNumber number = groups_.find_or_make(1, group);
      ++groups_[number].jobs;
      groups_.put(slot, number);
      slab_[slot].has_group = 1;
    }
    lines_.insert(slot, now());
    return slot;
  }
  // The next job, which runs from now on.
  Slot pop(std::size_t budget = 1000) {
    const Slot slot = lines_.pop(all_, now(), budget, [this](Slot tombstone) { slab_.release(tombstone); });
    if (slot == kNoSlot) return slot;
    slab_[slot].set_state(EntryState::kRunning);
    if (slab_[slot].has_group) {
      Group& group = groups_[groups_.of(slot)];
      ++group.running;
      if (rules_.group_rate.count != 0) group.starts.take(rules_.group_rate, time_, 1);
    }
    return slot;
  }
  void end(Slot slot) {
    slab_[slot].set_state(EntryState::kDone);
    if (!slab_[slot].has_group) return;
    const GroupNumber number = groups_.of(slot);
    --groups_[number].running;
    if (groups_[number].held) lines_.wake(number, now());
    --groups_[number].jobs;
    groups_.drop_if_unused(number, time_);
  }
  std::string group_of(Slot slot) { return slab_[slot].has_group ? groups_[groups_.of(slot)].name : ""; }
  std::vector<std::string> popped(int count) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) names.push_back(group_of(pop()));
    return names;
  }

  Slab slab_;
  GroupTable groups_;
  QueueRules rules_;
  QueueLines lines_{slab_, groups_};
  KindFilter all_;
  std::int64_t time_ = 1000;
  std::uint64_t bodies_ = 0;
};

TEST_F(QueueLinesTest, JobsOfManyGroupsComeInTheOrderInWhichTheyAreDueAsIfThereWereNone) {
  start({.queue = "q", .group_at_once = 1'000'000});
  std::mt19937 random(5);
  using Key = std::tuple<int, std::int64_t, int>;
  std::vector<std::pair<Key, Slot>> expected;
  for (int arrival = 0; arrival < 3000; ++arrival) {
    const auto due = static_cast<std::int64_t>(random() % 200);
    const int priority = static_cast<int>(random() % 3);
    const std::string group = random() % 5 == 0 ? "" : "g" + std::to_string(random() % 40);
    expected.push_back({{-priority, due, arrival}, add(group, due, priority)});
  }
  std::sort(expected.begin(), expected.end());
  for (const auto& [key, slot] : expected) ASSERT_EQ(pop(), slot);
  EXPECT_EQ(pop(), kNoSlot);
  EXPECT_TRUE(lines_.empty());
}

TEST_F(QueueLinesTest, LimitsHoldAndWhatMayStartDoesWhateverComesAndGoes) {
  constexpr std::uint32_t kAtOnce = 2;
  for (const bool fair : {false, true}) {
    QueueLines& lines = lines_;
    lines.clear();
    start({.queue = "q", .group_at_once = kAtOnce, .fair = fair});
    std::mt19937 random(7);
    std::vector<Slot> running;
    std::map<std::string, std::uint32_t> waiting;
    const auto may_start = [&] {
      return std::any_of(waiting.begin(), waiting.end(), [&](const auto& each) {
        if (each.second == 0) return false;
        return each.first.empty() || std::count_if(running.begin(), running.end(), [&](Slot slot) {
                                       return group_of(slot) == each.first;
                                     }) < kAtOnce;
      });
    };
    for (int round = 0; round < 5000; ++round) {
      switch (random() % 3) {
        case 0: {
          const std::string group = random() % 6 == 0 ? "" : "g" + std::to_string(random() % 12);
          add(group, static_cast<std::int64_t>(random() % 100), static_cast<int>(random() % 2));
          ++waiting[group];
          break;
        }
        case 1: {
          const bool expected = may_start();
          const Slot slot = pop();
          ASSERT_EQ(slot != kNoSlot, expected) << round;
          if (slot == kNoSlot) break;
          --waiting[group_of(slot)];
          running.push_back(slot);
          break;
        }
        default:
          if (running.empty()) break;
          std::swap(running[random() % running.size()], running.back());
          end(running.back());
          running.pop_back();
      }
    }
    for (const Slot slot : running) end(slot);
    while (pop() != kNoSlot || lines_.has_any(all_)) {
      for (GroupNumber group = 1; group < groups_.size(); ++group) {
        groups_[group].running = 0;
        lines_.wake(group, now());
      }
    }
  }
}

TEST_F(QueueLinesTest, TurnsAreByWeightAndWhoWasAwayDoesNotCatchUp) {
  start({.queue = "q", .fair = true, .weights = {{"two", 2}}});
  for (int i = 0; i < 100; ++i) add("one");
  for (int i = 0; i < 100; ++i) add("two");
  std::vector<std::string> names = popped(30);
  EXPECT_EQ(std::count(names.begin(), names.end(), "one"), 10);
  for (int i = 0; i < 100; ++i) add("late");
  names = popped(40);
  EXPECT_NEAR(static_cast<double>(std::count(names.begin(), names.end(), "late")), 10, 1);
}

TEST_F(QueueLinesTest, AHeldGroupCostsNothingUntilItIsWoken) {
  start({.queue = "q", .group_at_once = 1});
  for (int i = 0; i < 1000; ++i) add("busy");
  add("quiet", 5);
  const Slot first = pop();
  EXPECT_EQ(group_of(first), "busy");
  EXPECT_EQ(group_of(pop()), "quiet");
  EXPECT_EQ(pop(), kNoSlot);
  EXPECT_FALSE(lines_.has_any(all_));
  end(first);
  EXPECT_TRUE(lines_.has_any(all_));
  EXPECT_EQ(group_of(pop()), "busy");
  EXPECT_EQ(pop(), kNoSlot);
}

TEST_F(QueueLinesTest, AGroupThatWaitsForItsRateIsNotedForTheTimeOfItsNextStart) {
  start({.queue = "q", .group_rate = {.count = 1, .period = Milliseconds(500)}});
  add("g");
  add("g");
  ASSERT_NE(pop(), kNoSlot);
  ASSERT_EQ(pop(), kNoSlot);
  ASSERT_EQ(groups_.next_time(), std::optional<std::int64_t>(1500));
  EXPECT_EQ(groups_.take_timed(1499), kNoGroup);
  time_ = 1500;
  lines_.wake(groups_.take_timed(time_), now());
  EXPECT_NE(pop(), kNoSlot);
}

TEST_F(QueueLinesTest, WhatIsToldApartLaterIsSortedInPieces) {
  start({.queue = "q", .fair = true});
  std::vector<Slot> all;
  for (int i = 0; i < 100; ++i) all.push_back(add(i % 2 == 0 ? "a" : "b", 0, 0, static_cast<std::uint16_t>(i % 5)));
  lines_.tell_apart(true, true);
  EXPECT_EQ(pop(), kNoSlot);
  std::set<Slot> sorted;
  for (Slot slot = lines_.take_unsorted(); slot != kNoSlot; slot = lines_.take_unsorted()) {
    EXPECT_TRUE(sorted.insert(slot).second);
    lines_.insert(slot, now());
  }
  EXPECT_EQ(sorted, std::set<Slot>(all.begin(), all.end()));
  const std::vector<std::string> names = popped(100);
  for (std::size_t i = 0; i < 100; i += 2) EXPECT_NE(names[i], names[i + 1]);
}

TEST_F(QueueLinesTest, ATombstoneIsHandedBackAndALineOfThemIsNoWork) {
  start({.queue = "q", .group_at_once = 1});
  for (int i = 0; i < 10; ++i) slab_[add("g")].set_state(EntryState::kTombstone);
  const Slot job = add("h", 50);
  EXPECT_EQ(pop(4), kNoSlot);
  EXPECT_EQ(pop(), job);
  EXPECT_FALSE(lines_.has_any(all_));
}

TEST_F(QueueLinesTest, APlaceInTheLineIsCountedUpToABound) {
  start({.queue = "q", .group_at_once = 1});
  std::vector<Slot> slots;
  for (int i = 0; i < 600; ++i) slots.push_back(add("g", i));
  EXPECT_EQ(lines_.place_of(slots[0], 1000), std::optional<std::uint64_t>(0));
  EXPECT_EQ(lines_.place_of(slots[599], 1000), std::optional<std::uint64_t>(599));
  EXPECT_EQ(lines_.place_of(slots[599], 100), std::nullopt);
}

}  // namespace
}  // namespace bide::engine
