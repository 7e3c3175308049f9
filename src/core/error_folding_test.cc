#include "core/error_folding.h"

#include <gtest/gtest.h>

#include <string>

namespace bide::core {
namespace {

TEST(ErrorFolding, LeavesWhatErrorsOfTheSameCauseHaveInCommon) {
  EXPECT_EQ(fold_error("connect to 10.0.0.7:5432 timed out after 3001 ms"), "connect to * timed out after # ms");
  EXPECT_EQ(fold_error("timed out after 3s, or 3001ms"), "timed out after #s, or #ms");
  EXPECT_EQ(fold_error("no user 'kim' (0x7ffe12, 018f3c1e-7d5a-7000-8000-000000000001)"), "no user '*' (*, *)");
  EXPECT_EQ(fold_error("status 404: https://example.com/a/17?b=2."), "status #: *.");
  EXPECT_EQ(fold_error("it isn't there, and doesn't come"), "it isn't there, and doesn't come");
  EXPECT_EQ(fold_error("first line 1\nsecond"), "first line #");
  EXPECT_EQ(fold_error("-1.5 of -"), "# of -");
  EXPECT_EQ(fold_error(""), "");
  EXPECT_LE(fold_error(std::string(10'000, 'x')).size(), 300u);
}

}  // namespace
}  // namespace bide::core
