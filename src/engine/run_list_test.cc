#include "engine/run_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace bide::engine {
namespace {

class RunListTest : public testing::Test {
 protected:
  Slot entry(std::int64_t due) {
    const Slot slot = slab_.allocate();
    slab_[slot] = Entry{};
    slab_[slot].set_state(EntryState::kReady);
    slab_[slot].set_due(due);
    return slot;
  }
  Slot insert(std::int64_t due) {
    const Slot slot = entry(due);
    list_.insert_by_due(slab_, slot);
    return slot;
  }
  std::vector<Slot> drain() {
    std::vector<Slot> all;
    while (!list_.empty()) all.push_back(list_.pop_front(slab_));
    return all;
  }

  Slab slab_;
  RunList list_;
};

TEST_F(RunListTest, IsInTheOrderOfDueTimesAndThenOfArrival) {
  std::mt19937 random(5);
  std::vector<std::pair<std::int64_t, Slot>> expected;
  for (int i = 0; i < 20'000; ++i) {
    const auto due = static_cast<std::int64_t>(random() % 300);
    expected.emplace_back(due, insert(due));
  }
  std::stable_sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const std::vector<Slot> all = drain();
  ASSERT_EQ(all.size(), expected.size());
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], expected[i].second) << i;
}

TEST_F(RunListTest, ManyBeforeOneThatIsDueLaterCostNoSearch) {
  for (int i = 0; i < 5000; ++i) insert(10);
  const Slot last = insert(1000);
  std::vector<Slot> expected;
  for (int i = 0; i < 5000; ++i) expected.push_back(insert(10 + i % 2));
  const std::vector<Slot> all = drain();
  EXPECT_EQ(all.back(), last);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [&](Slot a, Slot b) { return slab_[a].due() < slab_[b].due(); }));
}

TEST_F(RunListTest, APassComesOnceAcrossEveryEntryThatStaysWhateverElseHappens) {
  std::mt19937 random(9);
  for (std::uint32_t pass = 1; pass <= 20; ++pass) {
    while (!list_.empty()) list_.pop_front(slab_);
    std::set<Slot> stays;
    for (int i = 0; i < 3000; ++i) stays.insert(insert(static_cast<std::int64_t>(random() % 1000)));
    std::set<Slot> seen;
    for (;;) {
      const std::size_t had = list_.walk(slab_, pass, [&](Slot slot) {
        EXPECT_TRUE(seen.insert(slot).second || !stays.contains(slot));
        return slot % 7 != 0;
      });
      EXPECT_LE(had, RunList::kMostInARun);
      if (had == 0) break;
      for (auto i = random() % 40; i > 0; --i) insert(static_cast<std::int64_t>(random() % 1000));
      for (auto i = random() % 20; i > 0 && !list_.empty(); --i) stays.erase(list_.pop_front(slab_));
      if (random() % 4 == 0) list_.push_front(slab_, entry(0));
    }
    for (const Slot slot : stays) EXPECT_TRUE(seen.contains(slot));
  }
}

TEST_F(RunListTest, ListsAreAppendedInOrder) {
  RunList other;
  std::vector<Slot> expected;
  for (int i = 0; i < 1500; ++i) expected.push_back(insert(1));
  for (int i = 0; i < 700; ++i) {
    expected.push_back(entry(2));
    other.push_back(slab_, expected.back());
  }
  for (int i = 0; i < 100; ++i) expected.erase(expected.begin()), list_.pop_front(slab_);
  list_.append(std::move(other));
  EXPECT_EQ(drain(), expected);
}

}  // namespace
}  // namespace bide::engine
