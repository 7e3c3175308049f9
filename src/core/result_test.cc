#include "bide/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

namespace bide {
namespace {

TEST(ErrorCodeText, EveryCodeHasASnakeCaseNameOfItsOwn) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::kUnsupported); ++code) {
    const std::string_view name = to_string(static_cast<ErrorCode>(code));
    EXPECT_NE(name, "unknown") << code;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos) << name;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(to_string(ErrorCode::kInvalidArgument), "invalid_argument");
  EXPECT_EQ(to_string(ErrorCode::kIoError), "io_error");
}

TEST(ErrorCodeText, ACodeFromElsewhereIsUnknown) { EXPECT_EQ(to_string(static_cast<ErrorCode>(999)), "unknown"); }

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> good = 7;
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 7);
  EXPECT_EQ(good.value_or(1), 7);

  const Result<int> bad = Error{ErrorCode::kNotFound, "no such job"};
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(bad.error().message, "no such job");
  EXPECT_EQ(bad.value_or(1), 1);
}

TEST(Result, CarriesWhatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 3);
}

TEST(Result, AStatusIsGoodUntilGivenAnError) {
  EXPECT_TRUE(Status());
  const Status bad = Error{ErrorCode::kBusy, "taken"};
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::kBusy);
}

TEST(ResultDeathTest, AskingForTheValueOfAnErrorPrintsItAndAborts) {
  const Result<int> bad = Error{ErrorCode::kIoError, "the disk is gone"};
  EXPECT_DEATH(static_cast<void>(bad.value()), "the disk is gone");
}

}  // namespace
}  // namespace bide
