#include "brokers/redis/job_string.h"

#include <gtest/gtest.h>

#include <string>

namespace bide::brokers::redis {
namespace {

constexpr std::int64_t kNow = 1'700'000'000'000;

// As the script completes it: due time and place in front.
std::string stored(const Job& job, std::int64_t due_ms) {
  std::string bytes;
  for (const std::int64_t value : {due_ms, std::int64_t{77}}) {
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  }
  return bytes + encode_new_job(job);
}

Job full_job() {
  Job job;
  job.id = JobId({1, 2, 3});
  job.kind = "resize:v2";
  job.queue = "images";
  job.body = std::string("\0\xff body", 7);
  job.content_type = "image/png";
  job.headers = {{"a", "1"}, {"a", "2"}, {"empty", ""}};
  job.expires = Time(Milliseconds(kNow + 5));
  job.time_limit = Milliseconds(1234);
  job.priority = -100;
  job.retry = RetryPolicy::steps({Milliseconds(1), Milliseconds(2)});
  job.unique_key = "key";
  return job;
}

TEST(JobString, GivesBackEverythingThatTheJobWasGiven) {
  const Job job = full_job();
  const auto decoded = decode_job(job.id, stored(job, kNow + 1), kNow, true);
  ASSERT_TRUE(decoded.has_value());
  const JobInfo& info = decoded->info;
  EXPECT_EQ(info.job.id, job.id);
  EXPECT_EQ(info.job.kind, job.kind);
  EXPECT_EQ(info.job.queue, job.queue);
  EXPECT_EQ(info.job.body, job.body);
  EXPECT_EQ(info.job.content_type, job.content_type);
  EXPECT_EQ(info.job.headers, job.headers);
  EXPECT_EQ(info.job.expires, job.expires);
  EXPECT_EQ(info.job.time_limit, job.time_limit);
  EXPECT_EQ(info.job.priority, job.priority);
  EXPECT_EQ(info.job.retry, job.retry);
  EXPECT_EQ(info.job.unique_key, job.unique_key);
  EXPECT_EQ(info.state, JobState::kScheduled);
  EXPECT_EQ(info.due, Time(Milliseconds(kNow + 1)));
  EXPECT_EQ(decoded->place, 77u);
  EXPECT_EQ(decode_job(job.id, stored(job, kNow), kNow, true)->info.state, JobState::kReady);
}

TEST(JobString, CarriesThePastOfAJob) {
  Job job = full_job();
  auto past = std::make_shared<JobPast>();
  past->attempts = 4;
  past->counts = {.failed = 2, .timed_out = 1, .lost = 0, .crashed = 1};
  past->history = {{3, Time(Milliseconds(kNow - 2)), Fault::kCrashed, "first"}, {4, Time(Milliseconds(kNow - 1)), Fault::kFailed, ""}};
  past->dead = DeadReason::kExhausted;
  past->finished = Time(Milliseconds(kNow - 1));
  job.past = past;
  const auto decoded = decode_job(job.id, stored(job, kNow), kNow, true);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->info.state, JobState::kDead);
  EXPECT_EQ(decoded->info.attempts, 4u);
  EXPECT_EQ(decoded->info.counts, past->counts);
  EXPECT_EQ(decoded->info.history, past->history);
  EXPECT_EQ(decoded->info.dead_reason, DeadReason::kExhausted);
  EXPECT_EQ(decoded->info.finished, past->finished);
}

TEST(JobString, WhatWasCutOrIsSomethingElseIsDamaged) {
  const Job job = full_job();
  const std::string whole = stored(job, kNow);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto decoded = decode_job(job.id, std::string_view(whole).substr(0, size), kNow, true);
    ASSERT_FALSE(decoded.has_value()) << size;
    EXPECT_EQ(decoded.error().code, ErrorCode::kDamaged);
  }
  // Any bytes at all must not do more than be refused.
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char byte : {'\0', '\x7f', '\xff'}) {
      std::string changed = whole;
      changed[at] = byte;
      (void)decode_job(job.id, changed, kNow, true);
      (void)decode_job(job.id, changed, kNow, false);
    }
  }
}

}  // namespace
}  // namespace bide::brokers::redis
