#include "server/callbacks/retry_after.h"

#include <gtest/gtest.h>

#include <chrono>

#include "core/time_text.h"

namespace bide::server {
namespace {

using namespace std::chrono_literals;

const Time kNow = core::parse_time("1994-11-06T08:49:00Z").value();

TEST(RetryAfter, SecondsAreSeconds) {
  EXPECT_EQ(parse_retry_after("0", kNow), 0ms);
  EXPECT_EQ(parse_retry_after("120", kNow), 120s);
}

TEST(RetryAfter, ADateIsTheTimeUntilThen) {
  for (const std::string_view text :
       {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"}) {
    EXPECT_EQ(parse_retry_after(text, kNow), 37s) << text;
  }
}

TEST(RetryAfter, ADateThatHasPassedIsNow) { EXPECT_EQ(parse_retry_after("Sat, 05 Nov 1994 08:49:37 GMT", kNow), 0ms); }

TEST(RetryAfter, AYearOfTwoDigitsIsTheNearOne) {
  const Time now = core::parse_time("2026-01-01T00:00:00Z").value();
  EXPECT_EQ(core::format_time(*parse_http_date("Friday, 02-Jan-26 00:00:00 GMT", now)), "2026-01-02T00:00:00.000Z");
  EXPECT_EQ(core::format_time(*parse_http_date("Saturday, 01-Jan-77 00:00:00 GMT", now)), "1977-01-01T00:00:00.000Z");
}

TEST(RetryAfter, TheLongestWaitIsAsLongAsADelay) {
  EXPECT_EQ(parse_retry_after("99999999999999999999999999", kNow), Milliseconds(Limits::kDelay));
  EXPECT_EQ(parse_retry_after("9223372036854775807", kNow), Milliseconds(Limits::kDelay));
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 9994 08:49:37 GMT", kNow), Milliseconds(Limits::kDelay));
}

TEST(RetryAfter, AnythingElseIsNothing) {
  for (const std::string_view text :
       {"", "-1", "1.5", "soon", "1 s", " 5", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 994 08:49:37 GMT", "Sun, 06 Nov 1994 8:49:37 GMT", "a b c d e f", "- - - - -", ",,,,,,"}) {
    EXPECT_FALSE(parse_retry_after(text, kNow)) << text;
  }
}

}  // namespace
}  // namespace bide::server
