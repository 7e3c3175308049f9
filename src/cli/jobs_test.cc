#include "cli/jobs.h"

#include <gtest/gtest.h>

#include <chrono>

#include "cli/failure.h"

namespace bide::cli {
namespace {

using namespace std::chrono_literals;

TEST(Jobs, TimesAreToldRoughly) {
  const Time now(Milliseconds(1'750'000'000'000));
  EXPECT_EQ(relative_time(now, now), "now");
  EXPECT_EQ(relative_time(Time(), now), "at an unknown time");
  EXPECT_EQ(relative_time(now + 1500ms, now), "in 1.5s");
  EXPECT_EQ(relative_time(now + 90s + 5ms, now), "in 1m 30s");
  EXPECT_EQ(relative_time(now - 3h, now), "3h ago");
  EXPECT_EQ(relative_time(now - 50h - 5min, now), "2d 2h ago");
}

TEST(Jobs, TextIsShortenedBetweenCharacters) {
  EXPECT_EQ(shortened("short", 10), "short");
  EXPECT_EQ(shortened("0123456789abc", 10), "0123456...");
  EXPECT_EQ(shortened("012345\xc3\xa9\xc3\xa9\xc3\xa9", 10), "012345...");
}

TEST(Jobs, AnUnknownStateIsRefusedWithTheNearest) {
  EXPECT_EQ(parse_state("dead"), JobState::kDead);
  try {
    parse_state("deda");
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit_code, kUsage);
    EXPECT_NE(failure.message.find("did you mean 'dead'?"), std::string::npos);
  }
}

TEST(Jobs, ABodyThatIsNotTextIsGivenAsBase64) {
  JobInfo info;
  info.job.body = "\xff";
  EXPECT_NE(job_json(info).text().find(R"("body_base64":"/w==")"), std::string::npos);
  info.job.body = "text";
  EXPECT_NE(job_json(info).text().find(R"("body":"text")"), std::string::npos);
}

TEST(Jobs, EverythingThatIsNotTextIsGivenAsBase64) {
  JobInfo info;
  info.job.unique_key = info.job.content_type = "\xff";
  info.job.headers = {{"a", "1"}, {"a", "2"}, {"b", "\xff"}};
  info.history = {{.attempt = 1, .text = "\xff"}};
  const std::string json = job_json(info).text();
  EXPECT_NE(json.find(R"("unique_key_base64":"/w==")"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("content_type_base64":"/w==")"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("headers":{"a":"1"},"headers_base64":[["YQ==","Mg=="],["Yg==","/w=="]])"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("text_base64":"/w==")"), std::string::npos) << json;
}

TEST(Jobs, WhatIsNotKnownOfADoneJobIsNotMadeUp) {
  JobInfo info;
  info.state = JobState::kDone;
  info.due = Time(Milliseconds(1'750'000'000'000));
  info.finished = info.due;
  const std::string json = job_json(info).text();
  EXPECT_NE(json.find(R"("due":null)"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("retry":null)"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("finished":"2025-)"), std::string::npos) << json;
  EXPECT_EQ(job_text(info, *info.finished).find("retry"), std::string::npos);
}

}  // namespace
}  // namespace bide::cli
