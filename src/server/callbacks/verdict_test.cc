#include "server/callbacks/verdict.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <tuple>

#include "core/time_text.h"
#include "server/callbacks/own_listeners.h"

namespace bide::server {
namespace {

using namespace std::chrono_literals;
using http_client::HttpAnswer;
using http_client::HttpFailure;
using Kind = Verdict::Kind;

const Time kNow = core::parse_time("2026-01-02T03:04:05Z").value();

Verdict of_status(int status, std::string retry_after = {}, std::string body = {}) {
  HttpAnswer answer{.status = status, .body = std::move(body)};
  if (!retry_after.empty()) answer.fields = {{"retry-after", std::move(retry_after)}};
  return judge(answer, kNow, 1h);
}

TEST(Verdict, AStatusMeansWhatIsWritten) {
  const std::tuple<int, Kind, HostSign> cases[] = {
      {200, Kind::kDone, HostSign::kWell},       {201, Kind::kDone, HostSign::kWell},
      {204, Kind::kDone, HostSign::kWell},       {202, Kind::kAccepted, HostSign::kWell},
      {301, Kind::kFailed, HostSign::kAnswers},  {302, Kind::kFailed, HostSign::kAnswers},
      {304, Kind::kFailed, HostSign::kAnswers},  {400, Kind::kFailed, HostSign::kAnswers},
      {404, Kind::kFailed, HostSign::kAnswers},  {410, Kind::kDead, HostSign::kAnswers},
      {429, Kind::kFailed, HostSign::kBusy},     {500, Kind::kFailed, HostSign::kFailing},
      {503, Kind::kFailed, HostSign::kFailing},  {599, Kind::kFailed, HostSign::kFailing},
      {100, Kind::kFailed, HostSign::kAnswers},  {600, Kind::kFailed, HostSign::kFailing},
  };
  for (const auto& [status, kind, sign] : cases) {
    EXPECT_EQ(of_status(status).kind, kind) << status;
    EXPECT_EQ(of_status(status).sign, sign) << status;
  }
}

TEST(Verdict, RetryAfterIsObeyedUpToTheLongest) {
  EXPECT_EQ(of_status(429, "7").not_before, 7s);
  EXPECT_EQ(of_status(503, "Fri, 02 Jan 2026 03:05:05 GMT").not_before, 60s);
  EXPECT_EQ(of_status(503, "Fri, 02 Jan 2026 03:05:05 GMT").sign, HostSign::kBusy);
  EXPECT_EQ(of_status(429, "86400").not_before, 1h);
  EXPECT_EQ(of_status(429, "whenever").not_before, 0ms);
  EXPECT_EQ(of_status(500, "7").not_before, 0ms);
}

TEST(Verdict, TheErrorHasTheBeginningOfTheAnswerOnOneLine) {
  EXPECT_EQ(of_status(500, {}, "no\nspace").error, "the receiver answered 500: no\\nspace");
  EXPECT_EQ(of_status(400, {}, std::string(1000, 'x')).error.size(),
            std::string("the receiver answered 400: ...").size() + 200);
}

TEST(Verdict, WithoutAnAnswerItIsWhatTheClientSays) {
  const std::tuple<HttpFailure, Kind, HostSign> cases[] = {
      {HttpFailure::kInvalid, Kind::kDead, HostSign::kNone},
      {HttpFailure::kAddressRefused, Kind::kFailed, HostSign::kNone},
      {HttpFailure::kNotResolved, Kind::kFailed, HostSign::kFailing},
      {HttpFailure::kNotConnected, Kind::kFailed, HostSign::kFailing},
      {HttpFailure::kTls, Kind::kFailed, HostSign::kFailing},
      {HttpFailure::kTimedOut, Kind::kFailed, HostSign::kFailing},
      {HttpFailure::kTooLarge, Kind::kFailed, HostSign::kAnswers},
      {HttpFailure::kBroken, Kind::kFailed, HostSign::kFailing},
      {HttpFailure::kCancelled, Kind::kReturned, HostSign::kNone},
  };
  for (const auto& [failure, kind, sign] : cases) {
    const Verdict verdict = judge({.failure = failure, .error = "because"}, kNow, 1h);
    EXPECT_EQ(verdict.kind, kind) << to_string(failure);
    EXPECT_EQ(verdict.sign, sign) << to_string(failure);
    EXPECT_EQ(verdict.error, "because");
  }
}

TEST(Verdict, AJobForTheServerItselfIsDeadAtOnce) {
  http_client::HttpAnswer answer;
  answer.failure = HttpFailure::kAddressRefused;
  answer.error = "callback address blocked " + std::string(kOwnListenerRule) + ": 127.0.0.1 is this server itself";
  EXPECT_EQ(judge(answer, Time(), std::chrono::hours(1)).kind, Verdict::Kind::kDead);
}

}  // namespace
}  // namespace bide::server
