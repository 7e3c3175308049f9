#include "core/job_rules.h"

#include <gtest/gtest.h>

#include <string>

namespace bide::core {
namespace {

using namespace std::chrono_literals;

constexpr Time kNow{Milliseconds(1'767'323'045'000)};  // 2026-01-02T03:04:05Z.

Job good_job() {
  Job job;
  job.kind = "send_email";
  return job;
}

// "code: message", or nothing when the job is accepted.
std::string problem_of(const Job& job) {
  const std::optional<JobProblem> problem = find_problem(job, kNow);
  const Status status = validate(job, kNow);
  EXPECT_EQ(status.has_value(), !problem.has_value());
  if (!problem || status) return {};
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(status.error().message, problem->message);
  EXPECT_EQ(problem->message.find('\n'), std::string::npos) << problem->message;
  return std::string(problem->code) + ": " + problem->message;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(JobRules, AJobWithAKindIsEnough) { EXPECT_EQ(problem_of(good_job()), ""); }

TEST(JobRules, TheKindIsRequired) {
  EXPECT_EQ(problem_of(Job()), "missing_field: kind is missing; give the name of the handler, such as send_email");
}

TEST(JobRules, NamesOfQueuesAndKindsFollowThePattern) {
  Job job = good_job();
  for (const std::string& name :
       {std::string("a"), std::string("-"), std::string("_x"), std::string("0:a.b-c_D"), std::string(128, 'q')}) {
    job.queue = name;
    job.kind = name;
    EXPECT_EQ(problem_of(job), "") << name;
  }
  for (const std::string& name :
       {std::string(), std::string(129, 'q'), std::string("../x"), std::string("a b"), std::string("a\nb"),
        std::string(".a"), std::string(":a"), std::string("größe"), std::string("a\0b", 3), std::string("a/b")}) {
    job = good_job();
    job.queue = name;
    EXPECT_TRUE(problem_of(job).starts_with("invalid_queue_name: invalid queue name ")) << name;
    if (name.empty()) continue;
    job = good_job();
    job.kind = name;
    EXPECT_TRUE(problem_of(job).starts_with("invalid_kind_name: invalid kind ")) << name;
  }
  job = good_job();
  job.queue = "a\nb";
  EXPECT_EQ(
      problem_of(job),
      "invalid_queue_name: invalid queue name 'a\\nb'; allowed: 1 to 128 of A-Z a-z 0-9 _ - . : and neither a dot "
      "nor a colon at the start");
}

TEST(JobRules, DelaysGoFromNothingToAHundredYears) {
  Job job = good_job();
  job.delay = Limits::kDelay;
  EXPECT_EQ(problem_of(job), "");
  job.delay += 1ms;
  EXPECT_TRUE(problem_of(job).starts_with("too_far: delay ")) << problem_of(job);
  job.delay = Milliseconds::max();
  EXPECT_TRUE(problem_of(job).starts_with("too_far: delay "));
  job.delay = -5s;
  EXPECT_EQ(problem_of(job),
            "invalid_duration: delay -5s is negative; allowed: 0 to 36500d; to run at once leave it out");
}

TEST(JobRules, DueAndDelayExcludeEachOther) {
  Job job = good_job();
  job.due = kNow + 1h;
  EXPECT_EQ(problem_of(job), "");
  job.delay = 10s;
  EXPECT_EQ(problem_of(job),
            "conflicting_fields: both due 2026-01-02T04:04:05.000Z and delay 10s are given; give one of them");
}

TEST(JobRules, DueTimesLieWithinAHundredYearsAndMayHavePassed) {
  Job job = good_job();
  for (const Time due : {kNow, kNow - 24h, Time(), kNow + Limits::kDelay}) {
    job.due = due;
    EXPECT_EQ(problem_of(job), "");
  }
  job.due = kNow + Limits::kDelay + 1ms;
  EXPECT_EQ(problem_of(job),
            "too_far: due 2125-12-09T03:04:05.001Z is too far away; allowed: within 100 years of now "
            "(2026-01-02T03:04:05.000Z)");
  for (const Time due : {Time::min(), Time::max()}) {
    job.due = due;
    EXPECT_TRUE(problem_of(job).starts_with("too_far: due "));
  }
}

TEST(JobRules, AnExpiryLiesWithinAHundredYearsAndMayHavePassed) {
  Job job = good_job();
  job.expires = kNow - 1s;
  EXPECT_EQ(problem_of(job), "");
  job.expires = Time::max();
  EXPECT_TRUE(problem_of(job).starts_with("too_far: expires 9999-12-31"));
}

TEST(JobRules, TimeLimitsGoFromAMillisecondToThirtyDays) {
  Job job = good_job();
  for (const Milliseconds limit : {Milliseconds(1), Milliseconds(30 * 24h)}) {
    job.time_limit = limit;
    EXPECT_EQ(problem_of(job), "");
  }
  for (const Milliseconds limit : {Milliseconds(0), Milliseconds(-1), 30 * 24h + 1ms, Milliseconds::max()}) {
    job.time_limit = limit;
    EXPECT_TRUE(problem_of(job).starts_with("invalid_duration: time_limit ")) << limit.count();
  }
  job.time_limit = 0s;
  EXPECT_EQ(problem_of(job), "invalid_duration: time_limit 0 is out of range; allowed: 1ms to 30d");
}

TEST(JobRules, PrioritiesGoFromMinusAHundredToAHundred) {
  Job job = good_job();
  for (const int priority : {-100, 0, 100}) {
    job.priority = priority;
    EXPECT_EQ(problem_of(job), "");
  }
  for (const int priority : {-101, 101}) {
    job.priority = priority;
    EXPECT_EQ(problem_of(job), "invalid_priority: priority " + std::to_string(priority) +
                                   " is out of range; allowed: -100 to 100, higher runs first");
  }
}

TEST(JobRules, HeadersHaveNamesAndNoControlCharacters) {
  Job job = good_job();
  job.headers = {{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, {"note", "a\tb ü"}};
  EXPECT_EQ(problem_of(job), "");
  job.headers = {{"", "x"}};
  EXPECT_EQ(problem_of(job), "invalid_header: a header with the value 'x' has no name; give it one or leave it out");
  job.headers = {{"a\nb", "x"}};
  EXPECT_EQ(problem_of(job), "invalid_header: invalid header name 'a\\nb'; control characters are not allowed");
  job.headers = {{"a", "x\r\nSet-Cookie: y"}};
  EXPECT_TRUE(contains(problem_of(job), "invalid value 'x\\r\\nSet-Cookie: y' of header 'a'"));
}

TEST(JobRules, HeadersAreCountedTogether) {
  Job job = good_job();
  job.headers = {{"a", std::string(Limits::kHeaderBytes - 4, 'x')}, {"bc", "y"}};
  EXPECT_EQ(problem_of(job), "");
  job.headers[1].second = "yz";
  EXPECT_TRUE(problem_of(job).starts_with("headers_too_large: headers have 16385 bytes; allowed: 16384 "));
}

TEST(JobRules, BodiesKeysAndContentTypesHaveLimits) {
  Job job = good_job();
  job.body.assign(Limits::kBodyBytes, 'x');
  job.unique_key.assign(Limits::kUniqueKeyBytes, 'k');
  job.content_type.assign(kContentTypeBytes, 't');
  EXPECT_EQ(problem_of(job), "");
  job.body += 'x';
  EXPECT_EQ(problem_of(job),
            "body_too_large: body has 16777217 bytes; allowed: 16777216; store it elsewhere and send its address");
  job.body.clear();
  job.unique_key += 'k';
  EXPECT_TRUE(contains(problem_of(job), "... (513 bytes) is too long; allowed: 512 bytes")) << problem_of(job);
  job.unique_key.clear();
  job.content_type += 't';
  EXPECT_TRUE(problem_of(job).starts_with("invalid_content_type: "));
  job.content_type = "text/plain\r\nX: y";
  EXPECT_TRUE(problem_of(job).starts_with("invalid_content_type: "));
}

TEST(JobRules, TheRetryPolicyIsCheckedToo) {
  Job job = good_job();
  job.retry = RetryPolicy::fixed(1s, 0);
  EXPECT_EQ(problem_of(job), "invalid_retry: invalid retry policy: max_attempts is 0; allowed: 1 to 10000");
}

}  // namespace
}  // namespace bide::core
