#include "server/http/memory_budget.h"

#include <gtest/gtest.h>

#include <utility>

namespace bide::server {
namespace {

constexpr std::uint64_t kMost = 16'000'000;  // Strangers have 1, requests 7, answers 8.

TEST(MemoryBudget, HasSharesThatDoNotUseUpEachOther) {
  const auto budget = std::make_shared<MemoryBudget>(kMost);
  EXPECT_EQ(budget->limit(Share::kStrangers) + budget->limit(Share::kRequests) + budget->limit(Share::kAnswers), kMost);
  MemoryCharge strangers(budget, Share::kStrangers);
  MemoryCharge answers(budget, Share::kAnswers);
  EXPECT_TRUE(strangers.set(1'000'000));
  EXPECT_FALSE(strangers.set(1'000'001));
  EXPECT_TRUE(answers.set(8'000'000));
  EXPECT_FALSE(MemoryCharge(budget, Share::kAnswers).set(10'000));
  EXPECT_TRUE(MemoryCharge(budget, Share::kRequests).set(7'000'000));
  EXPECT_EQ(budget->held(), 9'000'000u) << "a charge that is refused or gone counts nothing";
}

TEST(MemoryBudget, CountsEachByteWithOneOwner) {
  const auto budget = std::make_shared<MemoryBudget>(kMost);
  {
    MemoryCharge first(budget, Share::kRequests);
    EXPECT_TRUE(first.set(10'000));
    MemoryCharge second = std::move(first);
    EXPECT_EQ(budget->held(), 10'000u);
    const MemoryCharge third = second.split();
    EXPECT_EQ(second.bytes(), 0u);
    EXPECT_EQ(third.bytes(), 10'000u);
    EXPECT_TRUE(second.set(20'000));
    EXPECT_EQ(budget->held(), 30'000u);
    EXPECT_TRUE(second.set(5'000));
    EXPECT_EQ(budget->held(), 15'000u);
  }
  EXPECT_EQ(budget->held(), 0u);
}

TEST(MemoryBudget, LetsEachHaveALittle) {
  const auto budget = std::make_shared<MemoryBudget>(0);
  EXPECT_TRUE(MemoryCharge(budget, Share::kAnswers).set(MemoryCharge::kUncounted));
  EXPECT_FALSE(MemoryCharge(budget, Share::kAnswers).set(MemoryCharge::kUncounted + 1));
}

TEST(MemoryBudget, AsksForRoomWhenAShareIsUsedUp) {
  const auto budget = std::make_shared<MemoryBudget>(kMost);
  MemoryCharge slow(budget, Share::kAnswers);
  ASSERT_TRUE(slow.set(8'000'000));
  int asked = 0;
  bool is_room = true;
  budget->set_make_room([&](Share share, std::uint64_t bytes) {
    ++asked;
    EXPECT_EQ(share, Share::kAnswers);
    EXPECT_EQ(bytes, 100'000u);
    return is_room;
  });
  MemoryCharge next(budget, Share::kAnswers);
  EXPECT_TRUE(next.set(100'000));
  is_room = false;
  EXPECT_FALSE(MemoryCharge(budget, Share::kAnswers).set(100'000));
  EXPECT_FALSE(MemoryCharge(budget, Share::kAnswers).set(9'000'000)) << "nobody could make so much room";
  EXPECT_EQ(asked, 2);
}

TEST(MemoryBudget, CountsAsFreeWhatIsExpectedBack) {
  const auto budget = std::make_shared<MemoryBudget>(kMost);
  MemoryCharge slow(budget, Share::kAnswers);
  ASSERT_TRUE(slow.set(8'000'000));
  budget->expect_back(Share::kAnswers, 8'000'000);
  MemoryCharge next(budget, Share::kAnswers);
  EXPECT_TRUE(next.set(7'000'000));
  slow.set(0);
  budget->expect_no_more(Share::kAnswers, 8'000'000);
  EXPECT_FALSE(MemoryCharge(budget, Share::kAnswers).set(2'000'000));
  EXPECT_TRUE(MemoryCharge(budget, Share::kAnswers).set(1'000'000));
}

}  // namespace
}  // namespace bide::server
