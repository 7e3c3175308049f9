#include "wire/job_json.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/time_text.h"

namespace bide::wire {
namespace {

using namespace std::chrono_literals;

const Time kNow = core::parse_time("2026-01-01T00:00:00Z").value();

std::optional<Problem> problem_with(std::string_view text) {
  JsonReader in(text);
  Job job;
  std::optional<Problem> problem = read_job(in, kNow, job);
  if (!problem && !in.ok()) problem = problem_of(in.fault());
  return problem;
}

Job job_of(std::string_view text) {
  JsonReader in(text);
  Job job;
  const auto problem = read_job(in, kNow, job);
  in.end();
  EXPECT_FALSE(problem) << problem->detail;
  EXPECT_TRUE(in.ok()) << in.fault().text;
  return job;
}

void expect_same(const Job& a, const Job& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.queue, b.queue);
  EXPECT_EQ(a.body, b.body);
  EXPECT_EQ(a.content_type, b.content_type);
  EXPECT_EQ(a.headers, b.headers);
  EXPECT_EQ(a.delay, b.delay);
  EXPECT_EQ(a.due, b.due);
  EXPECT_EQ(a.expires, b.expires);
  EXPECT_EQ(a.time_limit, b.time_limit);
  EXPECT_EQ(a.priority, b.priority);
  EXPECT_EQ(a.retry, b.retry);
  EXPECT_EQ(a.unique_key, b.unique_key);
  EXPECT_EQ(a.group, b.group);
  ASSERT_EQ(a.past != nullptr, b.past != nullptr);
  if (a.past) {
    EXPECT_EQ(*a.past, *b.past);
  }
}

std::string text_of(const Job& job) {
  std::string text;
  JsonWriter out(text);
  write(out, job);
  return text;
}

TEST(JobJson, EveryFieldIsRead) {
  const Job job = job_of(R"json({
    "id": "018f3c1e-7d5a-7000-8000-000000000001", "kind": "resize", "queue": "images",
    "body": {"width" : 640}, "headers": {"traceparent": "00-1"}, "delay": "1h30m", "expires": "2026-01-02T00:00:00Z",
    "time_limit": "10m", "priority": -5, "retry": "steps(10s,100s)", "unique_key": "cat", "group": "tenant:42",
    "callback": "https://example.org/x", "on_done": "https://example.org/done", "reply_queue": "answers"})json");
  EXPECT_EQ(job.id.to_string(), "018f3c1e-7d5a-7000-8000-000000000001");
  EXPECT_EQ(job.kind, "resize");
  EXPECT_EQ(job.queue, "images");
  EXPECT_EQ(job.body, R"({"width" : 640})");
  EXPECT_EQ(job.content_type, "application/json");
  EXPECT_EQ(job.delay, 90min);
  EXPECT_EQ(job.expires, core::parse_time("2026-01-02T00:00:00Z").value());
  EXPECT_EQ(job.time_limit, 10min);
  EXPECT_EQ(job.priority, -5);
  EXPECT_EQ(job.retry, RetryPolicy::steps({10s, 100s}));
  EXPECT_EQ(job.unique_key, "cat");
  EXPECT_EQ(job.group, "tenant:42");
  EXPECT_EQ(job.headers, (Headers{{"traceparent", "00-1"},
                                  {"bide-callback", "https://example.org/x"},
                                  {"bide-on-done", "https://example.org/done"},
                                  {"bide-reply-queue", "answers"}}));
}

TEST(JobJson, ABodyIsJsonOrTextOrBytes) {
  EXPECT_EQ(job_of(R"({"kind":"a","body":"x"})").body, "\"x\"");
  EXPECT_EQ(job_of(R"({"kind":"a","body":null})").body, "null");
  const Job text = job_of(R"({"kind":"a","body_text":"x\ny"})");
  EXPECT_EQ(text.body, "x\ny");
  EXPECT_EQ(text.content_type, "text/plain; charset=utf-8");
  const Job bytes = job_of(R"({"kind":"a","body_base64":"AP8="})");
  EXPECT_EQ(bytes.body, std::string("\0\xff", 2));
  EXPECT_EQ(bytes.content_type, "");
  const Job typed = job_of(R"({"content_type":"image/png","kind":"a","body_base64":"AP8="})");
  EXPECT_EQ(typed.content_type, "image/png");
}

TEST(JobJson, ARetryPolicyMayBeAnObject) {
  EXPECT_EQ(
      job_of(
          R"({"kind":"a","retry":{"policy":"exponential","base":"2s","factor":3,"cap":"1m","max_attempts":7,"jitter":0.5}})")
          .retry.to_string(),
      "exponential(2s,3,1m,x7,jitter=0.5)");
  EXPECT_EQ(job_of(R"({"kind":"a","retry":{"policy":"steps","waits":["10s","1m"]}})").retry,
            RetryPolicy::steps({10s, 1min}));
  EXPECT_EQ(job_of(R"({"kind":"a","retry":{"policy":"fixed","wait":"30s","max_attempts":5}})").retry,
            RetryPolicy::fixed(30s, 5));
  EXPECT_EQ(job_of(R"({"kind":"a","retry":{"policy":"none"}})").retry, RetryPolicy::none());
}

TEST(JobJson, HeadersMayComeTwiceAsPairs) {
  EXPECT_EQ(job_of(R"({"kind":"a","headers":[["x","1"],["x","2"]]})").headers, (Headers{{"x", "1"}, {"x", "2"}}));
}

struct Bad {
  std::string text;
  int status;
  std::string code;
  std::string says;  // Part of the detail.
};

TEST(JobJson, EveryMistakeHasItsCodeAndSaysWhatIsAllowed) {
  const std::vector<Bad> cases = {
      {R"([])", 400, "expected_object", "expected an object, found an array"},
      {R"(5)", 400, "expected_object", "found a number"},
      {R"({"kind":"a")", 400, "invalid_json", "at byte 11"},
      {R"({"kind":"a","qeue":"x"})", 400, "unknown_field", "did you mean 'queue'?"},
      {R"({"kind":"a","banana":"x"})", 400, "unknown_field", "known are id, kind, queue"},
      {R"({"kind":"a","kind":"b"})", 400, "duplicate_field", "'kind'"},
      {R"({"kind":"a","queue":""})", 422, "invalid_queue_name", "1 to 128 of A-Z"},
      {R"({"kind":"a","queue":")" + std::string(300, 'q') + "\"}", 422, "invalid_queue_name", "(300 bytes)"},
      {R"({"kind":"a","queue":"../x"})", 422, "invalid_queue_name", "'../x'"},
      {R"({"kind":"a","queue":"a b"})", 422, "invalid_queue_name", "'a b'"},
      {R"({"kind":"a","queue":"a\u0007"})", 422, "invalid_queue_name", "\\x07"},
      {R"({"kind":"a","queue":".x"})", 422, "invalid_queue_name", "neither a dot"},
      {R"({"kind":"a","queue":5})", 422, "wrong_type", "queue: expected a string, found a number"},
      {R"({"kind":"a","queue":null})", 422, "wrong_type", "found null"},
      {R"({"queue":"a"})", 422, "missing_field", "kind is missing"},
      {R"({})", 422, "missing_field", "kind is missing"},
      {R"({"kind":"a b"})", 422, "invalid_kind_name", "'a b'"},
      {R"({"kind":"a","due":"tomorrow"})", 422, "invalid_time", "T"},
      {R"({"kind":"a","due":"2026-01-01T00:00:00"})", 422, "invalid_time", "Z"},
      {R"({"kind":"a","due":1767225600})", 422, "invalid_time", "2026-01-02T03:04:05Z"},
      {R"({"kind":"a","due":"3026-01-01T00:00:00Z"})", 422, "too_far", "within 100 years"},
      {R"({"kind":"a","expires":"3026-01-01T00:00:00Z"})", 422, "too_far", "expires"},
      {R"({"kind":"a","due":"2026-01-01T00:00:00Z","delay":"5s"})", 422, "conflicting_fields", "give one of them"},
      {R"({"kind":"a","delay_ms":0,"due":"2026-01-01T00:00:00Z"})", 422, "conflicting_fields", "give one of them"},
      {R"({"kind":"a","delay":"5s","delay_ms":5})", 422, "conflicting_fields", "delay and delay_ms"},
      {R"({"kind":"a","delay":-5})", 422, "invalid_duration", "units: ms, s, m, h, d, w"},
      {R"({"kind":"a","delay":1e308})", 422, "invalid_duration", "units: ms"},
      {R"({"kind":"a","delay":NaN})", 400, "invalid_json", "at byte 20"},
      {R"({"kind":"a","delay":"NaN"})", 422, "invalid_duration", "units: ms"},
      {R"({"kind":"a","delay":"-5s"})", 422, "invalid_duration", "negative"},
      {R"({"kind":"a","delay":"5 parsecs"})", 422, "invalid_duration", "units: ms"},
      {R"({"kind":"a","delay_ms":-5})", 422, "invalid_duration", "not negative"},
      {R"({"kind":"a","delay_ms":1.5})", 422, "invalid_duration", "whole"},
      {R"({"kind":"a","delay_ms":1e308})", 422, "invalid_duration", "whole"},
      {R"({"kind":"a","delay_ms":"5"})", 422, "invalid_duration", "whole"},
      {R"({"kind":"a","delay":"40000d"})", 422, "too_far", "100 years"},
      {R"({"kind":"a","time_limit":"0"})", 422, "invalid_duration", "1ms to 30d"},
      {R"json({"kind":"a","retry":"fixed(1s,x0)"})json", 422, "invalid_retry", "allowed: 1 to 10000"},
      {R"({"kind":"a","retry":{"policy":"fixed","wait":"1s","max_attempts":0}})", 422, "invalid_retry", "1 to 10000"},
      {R"({"kind":"a","retry":{"policy":"fixed","wait":"1s","max_attempts":1000000000}})", 422, "invalid_retry",
       "1 to 10000"},
      {R"({"kind":"a","retry":{"policy":"steps","waits":[]}})", 422, "invalid_retry", "1 to 100"},
      {R"({"kind":"a","retry":{"policy":"exponential","factor":-1}})", 422, "invalid_retry", "1 to 100"},
      {R"({"kind":"a","retry":{"policy":"exponential","jitter":2}})", 422, "invalid_retry", "0 to 1"},
      {R"({"kind":"a","retry":{"policy":"fixed"}})", 422, "invalid_retry", "wait"},
      {R"({"kind":"a","retry":{"policy":"fixed","wait":"5 parsecs"}})", 422, "invalid_retry", "units"},
      {R"({"kind":"a","retry":{"policy":"fixd","wait":"5s"}})", 422, "invalid_retry", "did you mean 'fixed'?"},
      {R"({"kind":"a","retry":{"policy":"none","wait":"5s"}})", 422, "invalid_retry", "no wait"},
      {R"({"kind":"a","retry":{"wait":"5s"}})", 422, "invalid_retry", "policy is missing"},
      {R"({"kind":"a","retry":{"polcy":"none"}})", 400, "unknown_field", "did you mean 'policy'?"},
      {R"({"kind":"a","retry":5})", 422, "invalid_retry", "exponential(1s,2,1h,x25)"},
      {R"({"kind":"a","priority":101})", 422, "invalid_priority", "-100 to 100"},
      {R"({"kind":"a","priority":1e9})", 422, "invalid_priority", "-100 to 100"},
      {R"({"kind":"a","priority":"high"})", 422, "wrong_type", "priority: expected a number"},
      {R"({"kind":"a","id":"1"})", 422, "invalid_id", "id"},
      {R"({"kind":"a","id":"00000000-0000-0000-0000-000000000000"})", 422, "invalid_id", "all zeros"},
      {R"({"kind":"a","body":1,"body_text":"x"})", 422, "conflicting_fields", "body and body_text"},
      {R"({"kind":"a","body_base64":"x"})", 422, "invalid_base64", "RFC 4648"},
      {R"({"kind":"a","headers":{"a":1}})", 422, "wrong_type", "'a' must be a string"},
      {R"({"kind":"a","headers":[["a"]]})", 422, "wrong_type", "pair"},
      {R"({"kind":"a","headers":[["a","b","c"]]})", 422, "wrong_type", "pair"},
      {R"({"kind":"a","headers":5})", 422, "wrong_type", "headers"},
      {R"({"kind":"a","headers":{"":"x"}})", 422, "invalid_header", "no name"},
      {R"({"kind":"a","headers":{"a":"b\nc"}})", 422, "invalid_header", "control"},
      {R"({"kind":"a","headers":{"a":")" + std::string(17'000, 'x') + "\"}}", 422, "headers_too_large", "16384"},
      {R"({"kind":"a","unique_key":")" + std::string(600, 'x') + "\"}", 422, "invalid_unique_key", "512 bytes"},
      {R"({"kind":"a","content_type":"a\nb"})", 422, "invalid_content_type", "control"},
      {R"({"kind":"a","headers":{"bide-callback":"http://a/"},"callback":"http://b/"})", 422, "conflicting_fields",
       "bide-callback"},
      {R"({"kind":"a","body":)" + std::string(10'000, '[') + std::string(10'000, ']') + "}", 400, "json_too_deep",
       "64"},
  };
  for (const Bad& each : cases) {
    const auto problem = problem_with(each.text);
    const std::string shown = each.text.substr(0, 100);
    ASSERT_TRUE(problem) << shown;
    EXPECT_EQ(problem->code, each.code) << shown << ": " << problem->detail;
    EXPECT_EQ(problem->status, each.status) << shown;
    EXPECT_NE(problem->detail.find(each.says), std::string::npos) << shown << ": " << problem->detail;
    EXPECT_EQ(problem->detail.find('\n'), std::string::npos);
  }
}

TEST(JobJson, DueInThePastIsAcceptedWithAWarning) {
  const Job job = job_of(R"({"kind":"a","due":"2025-12-31T00:00:00Z"})");
  EXPECT_EQ(warnings_of(job, kNow), std::vector<std::string>{"due is in the past: the job runs now"});
  EXPECT_TRUE(warnings_of(job_of(R"({"kind":"a","due":"2026-12-31T00:00:00Z"})"), kNow).empty());
}

TEST(JobJson, AnEnvelopeReadsBackToTheSameJob) {
  Job job{.kind = "a", .queue = "q"};
  expect_same(job, job_of(text_of(job)));
  EXPECT_EQ(text_of(job), R"({"kind":"a","queue":"q"})");
  job.id = JobId::parse("018f3c1e-7d5a-7000-8000-000000000001").value();
  job.headers = {{"x", "1"}, {"\"y\"", "caf\xc3\xa9"}};
  job.due = kNow + 5ms;
  job.expires = kNow + 5h;
  job.time_limit = 5min;
  job.priority = 7;
  job.retry = RetryPolicy::steps({1s, 2s});
  job.unique_key = "k\xff";
  job.group = "g\xff";
  expect_same(job, job_of(text_of(job)));
  job.headers = {{"x", "1"}, {"x", "2"}};
  expect_same(job, job_of(text_of(job)));
  job.headers = {{"x", "\xff"}};
  expect_same(job, job_of(text_of(job)));
  job.past = std::make_shared<const JobPast>();
  expect_same(job, job_of(text_of(job)));
  job.past = std::make_shared<const JobPast>(
      JobPast{.attempts = 3,
              .counts = {.failed = 1, .timed_out = 0, .lost = 2, .crashed = 0},
              .history = {{1, kNow - 5h, Fault::kFailed, "no"}, {3, kNow - 4h, Fault::kLost, "\xff"}},
              .dead = DeadReason::kPoison,
              .finished = kNow - 3h});
  expect_same(job, job_of(text_of(job)));
}

TEST(JobJson, EveryBodyAndContentTypeReadsBackTheSame) {
  std::mt19937_64 random(3);
  const std::vector<std::string> types = {"",          "application/json",         "text/plain; charset=utf-8",
                                          "image/png", "application/problem+json", "application/octet-stream"};
  std::vector<std::string> bodies = {
      "",      "{}",   "{\"a\": [1, 2]}",    " {}",          "{} ", "[1,]", "null", "caf\xc3\xa9",
      "\"x\"", "\xff", std::string("\0", 1), "a\"b\\c\n\x7f"};
  for (int i = 0; i < 50; ++i) {
    std::string& body = bodies.emplace_back();
    for (std::uint64_t n = random() % 40; n > 0; --n) body += static_cast<char>(random());
  }
  bodies.push_back(std::string(100, '[') + std::string(100, ']'));
  for (const std::string& type : types) {
    for (const std::string& body : bodies) {
      const Job job{.kind = "a", .body = body, .content_type = type};
      expect_same(job, job_of(text_of(job)));
    }
  }
}

}  // namespace
}  // namespace bide::wire
