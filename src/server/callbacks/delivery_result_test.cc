#include "server/callbacks/delivery_result.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <tuple>

#include "core/time_text.h"
#include "server/callbacks/address_policy.h"

namespace bide::server {
namespace {

using namespace std::chrono_literals;
using http_client::HttpAnswer;
using http_client::HttpFailure;
using Kind = DeliveryResult::Kind;

const Time kNow = core::parse_time("2026-01-02T03:04:05Z").value();

DeliveryResult of_status(int status, std::string retry_after = {}, std::string body = {}) {
  HttpAnswer answer{.status = status, .body = std::move(body)};
  if (!retry_after.empty()) answer.fields = {{"retry-after", std::move(retry_after)}};
  return result_of(answer, kNow, 1h);
}

TEST(DeliveryResult, AStatusMeansWhatIsWritten) {
  const std::tuple<int, Kind, HostHealth> cases[] = {
      {200, Kind::kDone, HostHealth::kGood},       {201, Kind::kDone, HostHealth::kGood},
      {204, Kind::kDone, HostHealth::kGood},       {202, Kind::kAccepted, HostHealth::kGood},
      {301, Kind::kFailed, HostHealth::kAnswers},  {302, Kind::kFailed, HostHealth::kAnswers},
      {304, Kind::kFailed, HostHealth::kAnswers},  {400, Kind::kFailed, HostHealth::kAnswers},
      {404, Kind::kFailed, HostHealth::kAnswers},  {410, Kind::kDead, HostHealth::kAnswers},
      {429, Kind::kFailed, HostHealth::kBusy},     {500, Kind::kFailed, HostHealth::kFailing},
      {503, Kind::kFailed, HostHealth::kFailing},  {599, Kind::kFailed, HostHealth::kFailing},
      {100, Kind::kFailed, HostHealth::kAnswers},  {600, Kind::kFailed, HostHealth::kFailing},
  };
  for (const auto& [status, kind, sign] : cases) {
    EXPECT_EQ(of_status(status).kind, kind) << status;
    EXPECT_EQ(of_status(status).health, sign) << status;
  }
}

TEST(DeliveryResult, RetryAfterIsObeyedUpToTheLongest) {
  EXPECT_EQ(of_status(429, "7").not_before, 7s);
  EXPECT_EQ(of_status(503, "Fri, 02 Jan 2026 03:05:05 GMT").not_before, 60s);
  EXPECT_EQ(of_status(503, "Fri, 02 Jan 2026 03:05:05 GMT").health, HostHealth::kBusy);
  EXPECT_EQ(of_status(429, "86400").not_before, 1h);
  EXPECT_EQ(of_status(429, "whenever").not_before, 0ms);
  EXPECT_EQ(of_status(500, "7").not_before, 0ms);
}

TEST(DeliveryResult, TheErrorHasTheBeginningOfTheAnswerOnOneLine) {
  EXPECT_EQ(of_status(500, {}, "no\nspace").error, "the receiver answered 500: no\\nspace");
  EXPECT_EQ(of_status(400, {}, std::string(1000, 'x')).error.size(),
            std::string("the receiver answered 400: ...").size() + 200);
}

TEST(DeliveryResult, WithoutAnAnswerItIsWhatTheClientSays) {
  const std::tuple<HttpFailure, Kind, HostHealth> cases[] = {
      {HttpFailure::kInvalid, Kind::kDead, HostHealth::kUnknown},
      {HttpFailure::kAddressRefused, Kind::kFailed, HostHealth::kUnknown},
      {HttpFailure::kNotResolved, Kind::kFailed, HostHealth::kFailing},
      {HttpFailure::kNotConnected, Kind::kFailed, HostHealth::kFailing},
      {HttpFailure::kTls, Kind::kFailed, HostHealth::kFailing},
      {HttpFailure::kTimedOut, Kind::kFailed, HostHealth::kFailing},
      {HttpFailure::kTooLarge, Kind::kFailed, HostHealth::kAnswers},
      {HttpFailure::kBroken, Kind::kFailed, HostHealth::kFailing},
      {HttpFailure::kCancelled, Kind::kReturned, HostHealth::kUnknown},
  };
  for (const auto& [failure, kind, sign] : cases) {
    const DeliveryResult result = result_of({.failure = failure, .error = "because"}, kNow, 1h);
    EXPECT_EQ(result.kind, kind) << to_string(failure);
    EXPECT_EQ(result.health, sign) << to_string(failure);
    EXPECT_EQ(result.error, "because");
  }
}

TEST(DeliveryResult, AJobForTheServerItselfIsDeadAtOnce) {
  http_client::HttpAnswer answer;
  answer.failure = HttpFailure::kAddressRefused;
  answer.error = "callback address blocked " + std::string(kOwnListenerRule) + ": 127.0.0.1 is this server itself";
  EXPECT_EQ(result_of(answer, Time(), std::chrono::hours(1)).kind, DeliveryResult::Kind::kDead);
}

const Time kThen = core::parse_time("1994-11-06T08:49:00Z").value();

TEST(RetryAfter, SecondsAreSeconds) {
  EXPECT_EQ(parse_retry_after("0", kThen), 0ms);
  EXPECT_EQ(parse_retry_after("120", kThen), 120s);
}

TEST(RetryAfter, ADateIsTheTimeUntilThen) {
  for (const std::string_view text :
       {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"}) {
    EXPECT_EQ(parse_retry_after(text, kThen), 37s) << text;
  }
}

TEST(RetryAfter, ADateThatHasPassedIsNow) { EXPECT_EQ(parse_retry_after("Sat, 05 Nov 1994 08:49:37 GMT", kThen), 0ms); }

TEST(RetryAfter, AYearOfTwoDigitsIsTheNearOne) {
  const Time now = core::parse_time("2026-01-01T00:00:00Z").value();
  EXPECT_EQ(core::format_time(*parse_http_date("Friday, 02-Jan-26 00:00:00 GMT", now)), "2026-01-02T00:00:00.000Z");
  EXPECT_EQ(core::format_time(*parse_http_date("Saturday, 01-Jan-77 00:00:00 GMT", now)), "1977-01-01T00:00:00.000Z");
}

TEST(RetryAfter, TheLongestWaitIsAsLongAsADelay) {
  EXPECT_EQ(parse_retry_after("99999999999999999999999999", kThen), Milliseconds(Limits::kDelay));
  EXPECT_EQ(parse_retry_after("9223372036854775807", kThen), Milliseconds(Limits::kDelay));
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 9994 08:49:37 GMT", kThen), Milliseconds(Limits::kDelay));
}

TEST(RetryAfter, AnythingElseIsNothing) {
  for (const std::string_view text :
       {"", "-1", "1.5", "soon", "1 s", " 5", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 994 08:49:37 GMT", "Sun, 06 Nov 1994 8:49:37 GMT", "a b c d e f", "- - - - -", ",,,,,,"}) {
    EXPECT_FALSE(parse_retry_after(text, kThen)) << text;
  }
}

}  // namespace
}  // namespace bide::server
