#include "engine/request_batches.h"

#include <gtest/gtest.h>

#include "support/simulated_disk.h"

namespace bide::engine {
namespace {

using journal::RecordRef;

class EncodedJobsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(disk_.make_directory("/journal"));
    auto opened = journal::Journal::open(disk_, "/journal", {}, 0, [](const journal::RecordView&) { return Status(); });
    ASSERT_TRUE(opened) << opened.error().message;
    journal_ = std::move(*opened);
  }
  std::string payload(RecordRef at) { return std::string(journal_->read(at).value().payload); }

  support::SimulatedDisk disk_{1};
  std::unique_ptr<journal::Journal> journal_;
};

std::vector<Job> jobs_of_many_kinds() {
  std::vector<Job> jobs(7);
  for (Job& job : jobs) {
    job.kind = "greet";
    job.body = "hello";
  }
  jobs[1].queue = "mails";
  jobs[1].priority = -3;
  jobs[2].unique_key = "only one";
  jobs[2].retry = RetryPolicy::fixed(Milliseconds(10), 5);
  jobs[3].headers = {{"trace", "1"}, {"language", "en"}};
  jobs[3].content_type = "application/json";
  jobs[4].expires = Time(Milliseconds(5'000'000));
  jobs[5].body.assign(100'000, 'x');
  jobs[6].time_limit = Milliseconds(1234);
  return jobs;
}

TEST_F(EncodedJobsTest, AJobEncodedAheadBecomesTheSameRecord) {
  const std::vector<Job> jobs = jobs_of_many_kinds();
  const EnqueueBatch batch = EnqueueBatch::of(jobs, Time());
  EXPECT_TRUE(batch.refused.empty());
  std::size_t ahead = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const journal::Acceptance how{.due_ms = 2000, .accepted_ms = 1000, .due_is_wall = i % 2 == 0, .past = {}};
    const std::string expected = payload(append(*journal_, jobs[i], how));
    EXPECT_EQ(payload(append(*journal_, jobs[i], how, batch.encoded[i])), expected) << i;
    ahead += batch.encoded[i].bytes.empty() ? 0 : 1;
  }
  EXPECT_EQ(ahead, 5u);  // Neither the one with an expiry, which depends on the time, nor the large one.
}

TEST_F(EncodedJobsTest, WhatWasEncodedAheadIsNotUsedForAJobWithAPast) {
  const std::vector<Job> jobs = jobs_of_many_kinds();
  const EnqueueBatch batch = EnqueueBatch::of(jobs, Time());
  const journal::Acceptance how{.due_ms = 2000, .accepted_ms = 1000, .past = {}, .attempts = 2, .token = 7};
  EXPECT_EQ(payload(append(*journal_, jobs[0], how, batch.encoded[0])), payload(append(*journal_, jobs[0], how)));
}

TEST(EnqueueBatch, SaysWhichJobsAreNotValid) {
  std::vector<Job> jobs = jobs_of_many_kinds();
  jobs[1].kind = "not a name";
  jobs[6].queue.clear();
  const EnqueueBatch batch = EnqueueBatch::of(jobs, Time());
  ASSERT_EQ(batch.refused.size(), 2u);
  EXPECT_EQ(batch.refused[0].first, 1u);
  EXPECT_EQ(batch.refused[1].first, 6u);
}

TEST(SettleBatch, SaysWhichOutcomesAreNotValid) {
  std::vector<Settlement> settlements(4);
  settlements[1].effects = jobs_of_many_kinds();
  settlements[2].effects = jobs_of_many_kinds();
  settlements[2].effects[3].kind.clear();
  settlements[3].outcome = Done{.result = std::string(Limits::kBodyBytes + 1, 'x')};
  const SettleBatch batch = SettleBatch::of(settlements, Time());
  ASSERT_EQ(batch.refused.size(), 2u);
  EXPECT_EQ(batch.refused[0].first, 2u);
  EXPECT_EQ(batch.refused[1].first, 3u);
}

}  // namespace
}  // namespace bide::engine
