#include "server/auth/failure_limiter.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace bide::server {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kSecondUs = 1'000'000;

TEST(FailureLimiter, AllowsSomeAtOnceAndThenOneInAWhile) {
  FailureLimiter limit(3, 2s, 10);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limit.fail("a", kSecondUs), 0ms);
  EXPECT_EQ(limit.fail("a", kSecondUs), 2s);
  EXPECT_EQ(limit.fail("a", 2 * kSecondUs), 1s);
  EXPECT_EQ(limit.fail("a", 3 * kSecondUs), 0ms);
  EXPECT_EQ(limit.fail("a", 3 * kSecondUs), 2s);
  EXPECT_EQ(limit.fail("a", 60 * kSecondUs), 0ms);
}

TEST(FailureLimiter, CountsEachCallerApart) {
  FailureLimiter limit(1, 2s, 10);
  EXPECT_EQ(limit.fail("a", 0), 0ms);
  EXPECT_EQ(limit.fail("b", 0), 0ms);
  EXPECT_GT(limit.fail("a", 0), 0ms);
}

TEST(FailureLimiter, RemembersNoMoreCallersThanAllowed) {
  FailureLimiter limit(1, 60s, 100);
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_EQ(limit.fail(std::to_string(i), 0), 0ms);
    EXPECT_EQ(limit.fail("steady", 0), i == 0 ? 0ms : 60s);
  }
  EXPECT_EQ(limit.callers(), 100u);
  EXPECT_GT(limit.fail("steady", 0), 0ms);  // Failing all the time, it was not forgotten.
  EXPECT_EQ(limit.fail("5", 0), 0ms);       // This one was.
}

}  // namespace
}  // namespace bide::server
