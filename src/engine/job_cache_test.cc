#include "engine/job_cache.h"

#include <gtest/gtest.h>

namespace bide::engine {
namespace {

Job job_with(std::uint8_t number, std::size_t body_bytes = 10) {
  Job job;
  job.id = JobId(std::array<std::uint8_t, JobId::kSize>{number});
  job.body.assign(body_bytes, 'x');
  return job;
}

// In a batch of its own.
void keep(JobCache& warm, Slot slot, Job job) {
  std::vector<Job> jobs;
  jobs.push_back(std::move(job));
  const auto batch = warm.open(std::move(jobs));
  (void)warm.keep(slot, batch, 0);
  warm.close(batch);
}

TEST(JobCache, KeepsAJobUntilItIsTakenOrDropped) {
  JobCache warm(1 << 20);
  Job job;
  keep(warm, 1, job_with(1));
  ASSERT_TRUE(warm.take(1, job_with(1).id, job));
  EXPECT_EQ(job.body.size(), 10u);
  EXPECT_FALSE(warm.take(1, job_with(1).id, job));
  keep(warm, 1, job_with(1));
  warm.drop(1);
  EXPECT_FALSE(warm.take(1, job_with(1).id, job));
}

TEST(JobCache, ALeftoverOfAnEarlierJobInTheSameSlotIsNotFound) {
  JobCache warm(1 << 20);
  Job job;
  keep(warm, 1, job_with(1));
  EXPECT_FALSE(warm.take(1, job_with(2).id, job));
}

TEST(JobCache, WhenItIsFullTheOldestStay) {
  JobCache warm(20'000);
  Job job;
  keep(warm, 1, job_with(1, 8000));
  keep(warm, 2, job_with(2, 8000));
  keep(warm, 3, job_with(3, 8000));
  EXPECT_FALSE(warm.take(3, job_with(3).id, job));
  warm.drop(2);
  keep(warm, 4, job_with(4, 8000));
  EXPECT_TRUE(warm.take(4, job_with(4).id, job));
  EXPECT_TRUE(warm.take(1, job_with(1).id, job));
}

TEST(JobCache, FindsEveryJobWhileManyComeAndGo) {
  JobCache warm(1 << 20);
  for (Slot slot = 0; slot < 20'000; ++slot) {
    keep(warm, slot, job_with(static_cast<std::uint8_t>(slot)));
    if (slot >= 100) warm.drop(slot - 100);
  }
  Job job;
  for (Slot slot = 19'900; slot < 20'000; ++slot) {
    EXPECT_TRUE(warm.take(slot, job_with(static_cast<std::uint8_t>(slot)).id, job));
  }
  EXPECT_FALSE(warm.take(100, job_with(100).id, job));
}

TEST(JobCache, ABatchTakesRoomUntilItsLastJobHasGone) {
  JobCache warm(10 * sizeof(Job));
  const auto batch = warm.open(std::vector<Job>(9));
  EXPECT_TRUE(warm.keep(1, batch, 0));
  EXPECT_TRUE(warm.keep(2, batch, 8));
  warm.close(batch);
  Job job;
  EXPECT_TRUE(warm.take(1, JobId(), job));
  keep(warm, 3, job_with(3));
  EXPECT_FALSE(warm.take(3, job_with(3).id, job));
  EXPECT_TRUE(warm.take(2, JobId(), job));
  keep(warm, 3, job_with(3));
  EXPECT_TRUE(warm.take(3, job_with(3).id, job));
}

}  // namespace
}  // namespace bide::engine
