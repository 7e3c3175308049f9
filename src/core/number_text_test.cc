#include "core/number_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace bide::core {
namespace {

TEST(NumberText, IsAsShortAsItCanBe) {
  EXPECT_EQ(format_number(2), "2");
  EXPECT_EQ(format_number(0.1), "0.1");
  EXPECT_EQ(format_number(1.0 / 3), "0.3333333333333333");
}

TEST(NumberText, AnythingElseIsNotANumber) {
  EXPECT_EQ(parse_number("0.25"), 0.25);
  EXPECT_EQ(parse_number("1e3"), 1000);
  for (const char* text : {"", " 1", "1 ", "1,5", "two", "0x10", "1e999", "--1"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
}

RC_GTEST_PROP(NumberTextProperty, EveryNumberReadsBackExactly, (double number)) {
  RC_ASSERT(parse_number(format_number(number)) == number);
}

}  // namespace
}  // namespace bide::core
