#include "core/drain_rate.h"

#include <gtest/gtest.h>

namespace bide::core {
namespace {

using namespace std::chrono_literals;

TEST(DrainRate, SaysHowLongItTakesUntilThereIsRoom) {
  DrainRate rate;
  DrainRate::Moment now = DrainRate::Moment() + 1h;
  EXPECT_EQ(rate.time_to_drain(1, now), DrainRate::kUnknown);
  for (int i = 0; i < 600; ++i) {
    now += 100ms;
    rate.drained(10, now);
  }
  // A hundred a second.
  EXPECT_GT(rate.time_to_drain(1000, now), 9s);
  EXPECT_LT(rate.time_to_drain(1000, now), 11s);
  EXPECT_GE(rate.time_to_drain(1, now), 1ms);
  // Nothing left for a while: it takes longer, and nobody is told to wait for ever.
  EXPECT_GT(rate.time_to_drain(1000, now + 10s), 20s);
  EXPECT_LE(rate.time_to_drain(1'000'000'000, now + 60s), DrainRate::kLongest);
  EXPECT_EQ(rate.time_to_drain(1, now + 1h), DrainRate::kUnknown);
}

}  // namespace
}  // namespace bide::core
