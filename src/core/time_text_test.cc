#include "core/time_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace bide::core {
namespace {

// 2026-01-02T03:04:05Z.
constexpr std::int64_t kExample = 1'767'323'045'000;

std::int64_t parsed(std::string_view text) {
  const Result<Time> time = parse_time(text);
  EXPECT_TRUE(time) << time.error().message;
  return time ? time->time_since_epoch().count() : -1;
}

std::string refused(std::string_view text) {
  const Result<Time> time = parse_time(text);
  EXPECT_FALSE(time) << text;
  if (time) return {};
  EXPECT_EQ(time.error().code, ErrorCode::kInvalidArgument);
  return time.error().message;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(TimeText, ParsesUtcAndOffsets) {
  EXPECT_EQ(parsed("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(parsed("2026-01-02T03:04:05Z"), kExample);
  EXPECT_EQ(parsed("2026-01-02t03:04:05z"), kExample);
  EXPECT_EQ(parsed("2026-01-02 03:04:05Z"), kExample);
  EXPECT_EQ(parsed("2026-01-02T05:04:05+02:00"), kExample);
  EXPECT_EQ(parsed("2026-01-01T21:34:05-05:30"), kExample);
  EXPECT_EQ(parsed("2026-01-02T03:04:05-00:00"), kExample);
  EXPECT_EQ(parsed("1969-12-31T23:59:59.999Z"), -1);
}

TEST(TimeText, FractionsFinerThanAMillisecondAreRoundedUpSoThatNothingStartsEarly) {
  EXPECT_EQ(parsed("2026-01-02T03:04:05.6Z"), kExample + 600);
  EXPECT_EQ(parsed("2026-01-02T03:04:05.678Z"), kExample + 678);
  EXPECT_EQ(parsed("2026-01-02T03:04:05.678000000Z"), kExample + 678);
  EXPECT_EQ(parsed("2026-01-02T03:04:05.678001+00:00"), kExample + 679);
  EXPECT_EQ(parsed("2026-01-02T03:04:05.9999Z"), kExample + 1000);
}

TEST(TimeText, ALeapSecondCountsAsTheSecondAfterIt) {
  EXPECT_EQ(parsed("2016-12-31T23:59:60Z"), parsed("2017-01-01T00:00:00Z"));
  EXPECT_EQ(parsed("2017-01-01T05:29:60+05:30"), parsed("2017-01-01T00:00:00Z"));
  EXPECT_TRUE(contains(refused("2026-01-02T03:04:60Z"), "no such time of day"));
}

TEST(TimeText, KnowsTheDaysOfTheCalendar) {
  EXPECT_EQ(parsed("2024-02-29T00:00:00Z"), 1'709'164'800'000);
  EXPECT_TRUE(contains(refused("2026-02-29T00:00:00Z"), "no such day"));
  EXPECT_TRUE(contains(refused("2026-13-01T00:00:00Z"), "no such day"));
  EXPECT_TRUE(contains(refused("2026-00-00T00:00:00Z"), "no such day"));
}

TEST(TimeText, TheErrorSaysWhatIsWrongAndGivesAnExample) {
  EXPECT_EQ(
      refused("tomorrow"),
      "invalid time 'tomorrow': it does not start with a date as year-month-day; write a date, a time and a zone, "
      "such as 2026-01-02T03:04:05Z or 2026-01-02T05:04:05+02:00");
  EXPECT_TRUE(contains(refused("2026-01-02T03:04:05"), "the zone is missing"));
  EXPECT_TRUE(contains(refused("2026-01-02T03:04:05.5"), "the zone is missing"));
  EXPECT_TRUE(contains(refused(""), "does not start with a date"));
  EXPECT_TRUE(contains(refused("1767323045"), "does not start with a date"));
  EXPECT_TRUE(contains(refused("2026-01-02"), "T and a time of day are expected"));
  EXPECT_TRUE(contains(refused("2026-01-02T03:04Z"), "hours:minutes:seconds"));
  EXPECT_TRUE(contains(refused("2026-01-02T24:00:00Z"), "no such time of day"));
  EXPECT_TRUE(contains(refused("2026-01-02T03:60:00Z"), "no such time of day"));
  EXPECT_TRUE(contains(refused("2026-01-02T03:04:61Z"), "no such time of day"));
  EXPECT_TRUE(contains(refused("2026-01-02T03:04:05.Z"), "after the point"));
  EXPECT_TRUE(contains(refused("2026-01-02T03:04:05+0200"), "the zone must be Z"));
  EXPECT_TRUE(contains(refused("2026-01-02T03:04:05+24:00"), "the zone must be Z"));
  EXPECT_TRUE(contains(refused("2026-01-02T03:04:05 CET"), "the zone must be Z"));
  EXPECT_TRUE(contains(refused("2026-01-02T03:04:05Z\n"), "nothing may follow the zone, but there is '\\n'"));
  EXPECT_TRUE(contains(refused("0000-01-01T00:00:00+01:00"), "outside the years"));
  EXPECT_TRUE(contains(refused("9999-12-31T23:59:59.9999Z"), "outside the years"));
}

TEST(TimeText, PrintsUtcWithMilliseconds) {
  EXPECT_EQ(format_time(Time(Milliseconds(kExample + 7))), "2026-01-02T03:04:05.007Z");
  EXPECT_EQ(format_time(Time(Milliseconds(-1))), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(format_time(Time::min()), "0000-01-01T00:00:00.000Z");
  EXPECT_EQ(format_time(Time::max()), "9999-12-31T23:59:59.999Z");
}

RC_GTEST_PROP(TimeTextProperty, EveryMomentOfTheFourDigitYearsParsesBack, ()) {
  const auto ms = *rc::gen::inRange<std::int64_t>(-62'167'219'200'000, 253'402'300'800'000);
  const Time time{Milliseconds(ms)};
  RC_ASSERT(parse_time(format_time(time)).value() == time);
}

RC_GTEST_PROP(TimeTextProperty, ADamagedTimeIsAMomentOrAnErrorOfOneLine, (char replacement)) {
  std::string text = "2026-01-02T03:04:05.678+02:00";
  text[*rc::gen::inRange<std::size_t>(0, text.size())] = replacement;
  text.resize(*rc::gen::inRange<std::size_t>(0, text.size() + 1));
  const Result<Time> time = parse_time(text);
  RC_ASSERT(time || time.error().message.find('\n') == std::string::npos);
}

}  // namespace
}  // namespace bide::core
