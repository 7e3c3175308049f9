#include "server/http/memory_budget.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace bide::server {
namespace {

constexpr std::uint64_t kMost = 16'000'000;  // Anonymous callers have 1, requests 7, answers 8.

TEST(MemoryBudget, HasSharesThatDoNotUseUpEachOther) {
  const auto budget = std::make_shared<MemoryBudget>(kMost);
  EXPECT_EQ(budget->limit(Share::kAnonymous) + budget->limit(Share::kRequests) + budget->limit(Share::kAnswers), kMost);
  MemoryCharge anonymous(budget, Share::kAnonymous);
  MemoryCharge answers(budget, Share::kAnswers);
  EXPECT_TRUE(anonymous.set(875'000));
  EXPECT_FALSE(anonymous.set(875'001));
  EXPECT_TRUE(answers.set(7'000'000));
  EXPECT_FALSE(MemoryCharge(budget, Share::kAnswers).set(300'000));
  EXPECT_TRUE(MemoryCharge(budget, Share::kRequests).set(6'125'000));
  EXPECT_EQ(budget->held(), 7'875'000u) << "a charge that is refused or gone counts nothing";
}

TEST(MemoryBudget, KeepsTheLastEighthOfAShareForSmallClaims) {
  const auto budget = std::make_shared<MemoryBudget>(kMost);
  MemoryCharge large(budget, Share::kAnswers);
  ASSERT_TRUE(large.set(7'000'000));
  EXPECT_FALSE(large.set(7'000'001));
  std::vector<MemoryCharge> small;
  for (int i = 0; i < 10; ++i) {
    small.emplace_back(budget, Share::kAnswers);
    EXPECT_TRUE(small.back().set(100'000));
  }
  EXPECT_FALSE(MemoryCharge(budget, Share::kAnswers).set(100'000));
  small.pop_back();
  EXPECT_FALSE(small.back().set(MemoryClaim::kSmall + 1)) << "it is no small one any more";
}

TEST(MemoryBudget, KnowsWhatEachCallerHolds) {
  const auto budget = std::make_shared<MemoryBudget>(kMost);
  const auto one = budget->caller("one");
  EXPECT_EQ(budget->caller("one"), one);
  MemoryCharge body(budget, Share::kRequests, one);
  MemoryCharge answer(budget, Share::kAnswers, one);
  EXPECT_TRUE(body.set(10'000) && answer.set(20'000));
  const MemoryCharge moved = body.split();
  EXPECT_EQ(one->of(Share::kRequests), 10'000u);
  EXPECT_EQ(one->of(Share::kAnswers), 20'000u);
  answer.set(0);
  EXPECT_EQ(one->of(Share::kAnswers), 0u);
}

TEST(MemoryBudget, SaysWhatTheFairPartIsOfThoseWhoHoldSomething) {
  const auto budget = std::make_shared<MemoryBudget>(kMost);
  const auto idle = budget->caller("idle");
  const auto greedy = budget->caller("greedy");
  const auto innocent = budget->caller("innocent");
  MemoryCharge much(budget, Share::kAnswers, greedy);
  ASSERT_TRUE(much.set(7'000'000));
  std::uint64_t fair = 0;
  std::uint64_t short_of = 0;
  budget->set_make_room([&](const MemoryClaim& claim, std::uint64_t missing, std::uint64_t fair_part) {
    EXPECT_EQ(claim.caller, innocent.get());
    fair = fair_part;
    short_of = missing;
    return false;
  });
  EXPECT_FALSE(MemoryCharge(budget, Share::kAnswers, innocent).set(1'000'000));
  EXPECT_EQ(fair, 4'000'000u);
  EXPECT_EQ(short_of, 1'000'000u);
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
  ASSERT_TRUE(slow.set(7'000'000));
  int asked = 0;
  bool is_room = true;
  budget->set_make_room([&](const MemoryClaim& claim, std::uint64_t missing, std::uint64_t) {
    ++asked;
    EXPECT_EQ(claim.share, Share::kAnswers);
    EXPECT_EQ(missing, 1'000'000u);
    if (is_room) budget->expect_back(Share::kAnswers, missing);
    return is_room;
  });
  MemoryCharge next(budget, Share::kAnswers);
  EXPECT_TRUE(next.set(1'000'000));
  is_room = false;
  EXPECT_FALSE(MemoryCharge(budget, Share::kAnswers).set(1'000'000));
  EXPECT_FALSE(MemoryCharge(budget, Share::kAnswers).set(9'000'000)) << "nobody could make so much room";
  EXPECT_EQ(asked, 2);
}

TEST(MemoryBudget, CountsAsFreeWhatIsExpectedBack) {
  const auto budget = std::make_shared<MemoryBudget>(kMost);
  MemoryCharge slow(budget, Share::kAnswers);
  ASSERT_TRUE(slow.set(7'000'000));
  budget->expect_back(Share::kAnswers, 7'000'000);
  MemoryCharge next(budget, Share::kAnswers);
  EXPECT_TRUE(next.set(6'000'000));
  slow.set(0);
  budget->stop_expecting(Share::kAnswers, 7'000'000);
  EXPECT_FALSE(MemoryCharge(budget, Share::kAnswers).set(2'000'000));
  EXPECT_TRUE(MemoryCharge(budget, Share::kAnswers).set(1'000'000));
}

}  // namespace
}  // namespace bide::server
