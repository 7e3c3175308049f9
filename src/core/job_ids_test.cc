#include "core/job_ids.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace bide::core {
namespace {

std::uint64_t time_of(const JobId& id) {
  std::uint64_t ms = 0;
  for (std::size_t index = 0; index < 6; ++index) ms = ms << 8 | id.bytes()[index];
  return ms;
}

TEST(JobIdSource, TheFirstIdHoldsTheTimeTheVersionTheVariantAndTheRandomBits) {
  JobIdSource source;
  EXPECT_EQ(source.next(0x0193e2a45b6c, 0xffffffffffffffff).to_string(), "0193e2a4-5b6c-7000-bfff-ffffffffffff");
  EXPECT_EQ(JobIdSource().next(0x0193e2a45b6c, 0).to_string(), "0193e2a4-5b6c-7000-8000-000000000000");
}

TEST(JobIdSource, IdsOfOneMillisecondIncreaseThoughTheirRandomBitsDoNot) {
  JobIdSource source;
  const JobId first = source.next(1000, ~std::uint64_t{0});
  const JobId second = source.next(1000, 0);
  EXPECT_LT(first, second);
  EXPECT_EQ(time_of(second), 1000u);
}

TEST(JobIdSource, AFullCounterCarriesIntoTheTimeAndTheClockCatchesUp) {
  JobIdSource source;
  JobId last = source.next(1000, 0);
  for (int i = 1; i < 4096; ++i) {
    const JobId id = source.next(1000, 0);
    ASSERT_LT(last, id);
    last = id;
  }
  EXPECT_EQ(time_of(last), 1000u);
  const JobId carried = source.next(1000, 0);
  EXPECT_LT(last, carried);
  EXPECT_EQ(time_of(carried), 1001u);
  EXPECT_LT(carried, source.next(1001, 0));
  EXPECT_EQ(time_of(source.next(1002, 0)), 1002u);
}

TEST(JobIdSource, IdsIncreaseWhenTheClockGoesBack) {
  JobIdSource source;
  const JobId before = source.next(5000, 9);
  const JobId after = source.next(10, 0);
  EXPECT_LT(before, after);
  EXPECT_EQ(time_of(after), 5000u);
}

TEST(JobIdSource, AClockOutOfAllBoundsNeverWrapsTheIds) {
  JobIdSource source;
  const JobId early = source.next(std::numeric_limits<std::int64_t>::min(), 0);
  EXPECT_EQ(time_of(early), 0u);
  JobId last = source.next(std::numeric_limits<std::int64_t>::max(), 0);
  EXPECT_LT(early, last);
  for (int i = 0; i < 10'000; ++i) {
    const JobId id = source.next(std::numeric_limits<std::int64_t>::max(), 0);
    ASSERT_LT(last, id);
    last = id;
  }
}

RC_GTEST_PROP(JobIdSourceProperty, IdsStrictlyIncreaseAndAreOfVersionSevenForAnyClock,
              (const std::vector<std::pair<std::int64_t, std::uint64_t>>& calls)) {
  JobIdSource source;
  JobId last;
  for (const auto& [now_ms, random] : calls) {
    const JobId id = source.next(now_ms, random);
    RC_ASSERT(last < id);
    RC_ASSERT((id.bytes()[6] >> 4) == 7);
    RC_ASSERT((id.bytes()[8] >> 6) == 2);
    last = id;
  }
}

}  // namespace
}  // namespace bide::core
