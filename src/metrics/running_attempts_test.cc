#include "metrics/running_attempts.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace bide::metrics {
namespace {

JobId id_of(std::uint64_t number) {
  std::array<std::uint8_t, JobId::kSize> bytes{};
  for (std::size_t i = 0; i < 8; ++i) bytes[15 - i] = static_cast<std::uint8_t>(number >> (8 * i));
  return JobId(bytes);
}

TEST(RunningAttempts, AreFoundOnceByTheirLease) {
  RunningAttempts running;
  running.add(id_of(1), {.token = 5, .started_us = 10, .over_us = 1'000});
  EXPECT_FALSE(running.take({id_of(2), 5}));
  EXPECT_FALSE(running.take({id_of(1), 4}));
  const auto taken = running.take({id_of(1), 5});
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->started_us, 10);
  EXPECT_FALSE(running.take({id_of(1), 5}));
}

TEST(RunningAttempts, GiveWayToALaterAttemptOfTheSameJob) {
  RunningAttempts running;
  running.add(id_of(1), {.token = 5, .over_us = 1'000});
  running.add(id_of(1), {.token = 6, .over_us = 1'000});
  EXPECT_FALSE(running.take({id_of(1), 5}));
  EXPECT_TRUE(running.take({id_of(1), 6}));
}

TEST(RunningAttempts, AreForgottenWhenTheyMustBeOver) {
  RunningAttempts running;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const auto now_us = static_cast<std::int64_t>(i);
    running.add(id_of(i), {.token = i, .started_us = now_us, .over_us = now_us + 10});
  }
  EXPECT_LE(running.size(), 16u * 257u);
}

TEST(RunningAttempts, AreNotRememberedBeyondTheLimit) {
  RunningAttempts running(1'000);
  for (std::uint64_t i = 0; i < 10'000; ++i) running.add(id_of(i), {.token = i, .over_us = 1'000'000});
  EXPECT_GE(running.size(), 500u);
  EXPECT_LE(running.size(), 1'016u);
}

}  // namespace
}  // namespace bide::metrics
