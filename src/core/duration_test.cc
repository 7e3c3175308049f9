#include "core/duration.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <string>

namespace bide::core {
namespace {

using namespace std::chrono_literals;

Milliseconds parsed(std::string_view text) {
  const Result<Milliseconds> duration = parse_duration(text);
  EXPECT_TRUE(duration) << duration.error().message;
  return duration ? *duration : Milliseconds(-1);
}

std::string refused(std::string_view text) {
  const Result<Milliseconds> duration = parse_duration(text);
  EXPECT_FALSE(duration) << text;
  if (duration) return {};
  EXPECT_EQ(duration.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(duration.error().message.find("units: ms, s, m, h, d, w"), std::string::npos) << duration.error().message;
  return duration.error().message;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(DurationText, ParsesWhatPeopleWrite) {
  EXPECT_EQ(parsed("0"), 0ms);
  EXPECT_EQ(parsed("0s"), 0ms);
  EXPECT_EQ(parsed("250ms"), 250ms);
  EXPECT_EQ(parsed("10s"), 10s);
  EXPECT_EQ(parsed("5m"), 5min);
  EXPECT_EQ(parsed("1h30m"), 90min);
  EXPECT_EQ(parsed("2d"), 48h);
  EXPECT_EQ(parsed("1w"), 168h);
  EXPECT_EQ(parsed("1w2d3h4m5s6ms"), 168h + 48h + 3h + 4min + 5s + 6ms);
  EXPECT_EQ(parsed("1m30ms"), 1min + 30ms);
}

TEST(DurationText, FractionsAreExact) {
  EXPECT_EQ(parsed("1.5h"), 90min);
  EXPECT_EQ(parsed("0.001s"), 1ms);
  EXPECT_EQ(parsed("0.10000000000000000000000000s"), 100ms);
  EXPECT_EQ(parsed("0.0009765625d"), 84375ms);
  EXPECT_EQ(parsed("1.000ms"), 1ms);
  EXPECT_TRUE(contains(refused("0.5ms"), "finer than a millisecond"));
  EXPECT_TRUE(contains(refused("1.0001s"), "finer than a millisecond"));
  EXPECT_TRUE(contains(refused("0.33333333333333d"), "finer than a millisecond"));
}

TEST(DurationText, TheErrorSaysWhatWasGivenWhyAndWhatIsAllowed) {
  EXPECT_EQ(
      refused("5 parsecs"),
      "invalid duration '5 parsecs': it must not contain spaces; write a number and a unit, such as 250ms, 10s or "
      "1h30m (units: ms, s, m, h, d, w)");
  EXPECT_TRUE(contains(refused("5parsecs"), "unknown unit 'parsecs'"));
  EXPECT_TRUE(contains(refused(""), "it is empty"));
  EXPECT_TRUE(contains(refused("-5"), "must not be negative"));
  EXPECT_TRUE(contains(refused("-5s"), "must not be negative"));
  EXPECT_TRUE(contains(refused("10"), "the unit is missing"));
  EXPECT_TRUE(contains(refused("1h30"), "the unit is missing"));
  EXPECT_TRUE(contains(refused("NaN"), "a number is expected at 'NaN'"));
  EXPECT_TRUE(contains(refused("1e308"), "unknown unit 'e'"));
  EXPECT_TRUE(contains(refused("10S"), "unknown unit 'S'"));
  EXPECT_TRUE(contains(refused("1.s"), "after the point"));
  EXPECT_TRUE(contains(refused(".5s"), "a number is expected"));
  EXPECT_TRUE(contains(refused("+5s"), "a number is expected"));
  EXPECT_TRUE(contains(refused("5\n"), "a unit is expected at '\\n'"));
  EXPECT_TRUE(contains(refused("30m1h"), "longest to the shortest"));
  EXPECT_TRUE(contains(refused("1h1h"), "each once"));
  EXPECT_TRUE(contains(refused(std::string(1000, '9')), "(1000 bytes)"));
}

TEST(DurationText, WhatDoesNotFitIsTooLong) {
  EXPECT_EQ(parsed("9223372036854775807ms"), Milliseconds::max());
  for (const char* text : {"9223372036854775808ms", "18446744073709551616ms", "99999999999999999999w", "15250284453w",
                           "15250284451w999999999999d", "9223372036854775s900ms", "18446744073709551.9s"}) {
    EXPECT_TRUE(contains(refused(text), "too long")) << text;
  }
}

TEST(DurationText, PrintsTheShortestExactText) {
  EXPECT_EQ(format_duration(0ms), "0");
  EXPECT_EQ(format_duration(250ms), "250ms");
  EXPECT_EQ(format_duration(1s), "1s");
  EXPECT_EQ(format_duration(90s), "90s");
  EXPECT_EQ(format_duration(100s), "100s");
  EXPECT_EQ(format_duration(90min), "90m");
  EXPECT_EQ(format_duration(1h), "1h");
  EXPECT_EQ(format_duration(36h), "36h");
  EXPECT_EQ(format_duration(48h), "2d");
  EXPECT_EQ(format_duration(168h), "1w");
  EXPECT_EQ(format_duration(24h + 1s), "1d1s");
  EXPECT_EQ(format_duration(3661s), "3661s");
  EXPECT_EQ(format_duration(999min), "999m");
  EXPECT_EQ(format_duration(1001min), "1001m");
  EXPECT_EQ(format_duration(25h + 1s), "25h1s");
  EXPECT_EQ(format_duration(1500ms), "1500ms");
  EXPECT_EQ(format_duration(100 * 365 * 24h), "36500d");
}

TEST(DurationText, NegativeDurationsCanBeShown) {
  EXPECT_EQ(format_duration(-5s), "-5s");
  EXPECT_EQ(format_duration(Milliseconds::min()).front(), '-');
}

TEST(Duration, PeopleGetAtMostTwoUnits) {
  using namespace std::chrono_literals;
  EXPECT_EQ(rough_duration(-5ms), "0ms");
  EXPECT_EQ(rough_duration(250ms), "250ms");
  EXPECT_EQ(rough_duration(1500ms), "1.5s");
  EXPECT_EQ(rough_duration(59'999ms), "59.9s");
  EXPECT_EQ(rough_duration(5min), "5m");
  EXPECT_EQ(rough_duration(3'599'929ms), "59m 59.9s");
  EXPECT_EQ(rough_duration(3h + 20min + 59s), "3h 20m");
  EXPECT_EQ(rough_duration(50h + 5min), "2d 2h");
}

RC_GTEST_PROP(DurationProperty, EveryDurationParsesBack, ()) {
  const auto count = *rc::gen::oneOf(rc::gen::nonNegative<std::int64_t>(),
                                     rc::gen::inRange<std::int64_t>(0, std::numeric_limits<std::int64_t>::max()),
                                     rc::gen::inRange<std::int64_t>(0, 400'000'000));
  const std::string text = format_duration(Milliseconds(count));
  RC_ASSERT(parse_duration(text).value().count() == count);
  RC_ASSERT(text.size() <= std::to_string(count).size() + 2);
}

RC_GTEST_PROP(DurationProperty, AnyTextIsADurationOrAnErrorOfOneLine, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("0123456789.wdhms -\n")));
  const Result<Milliseconds> duration = parse_duration(text);
  if (duration) {
    RC_ASSERT(duration->count() >= 0);
  } else {
    RC_ASSERT(duration.error().message.find('\n') == std::string::npos);
  }
}

}  // namespace
}  // namespace bide::core
