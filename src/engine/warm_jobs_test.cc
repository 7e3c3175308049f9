#include "engine/warm_jobs.h"

#include <gtest/gtest.h>

namespace bide::engine {
namespace {

Job job_with(std::uint8_t number, std::size_t body_bytes = 10) {
  Job job;
  job.id = JobId(std::array<std::uint8_t, JobId::kSize>{number});
  job.body.assign(body_bytes, 'x');
  return job;
}

TEST(WarmJobs, GivesBackWhatWasKeptOnce) {
  WarmJobs warm(1 << 20);
  warm.keep(1, job_with(1));
  Job job;
  EXPECT_TRUE(warm.take(1, job_with(1).id, job));
  EXPECT_EQ(job.body.size(), 10u);
  EXPECT_FALSE(warm.take(1, job_with(1).id, job));
}

TEST(WarmJobs, ALeftoverOfAnEarlierJobInTheSameSlotIsNotGivenOut) {
  WarmJobs warm(1 << 20);
  warm.keep(1, job_with(1));
  Job job;
  EXPECT_FALSE(warm.take(1, job_with(2).id, job));
}

TEST(WarmJobs, WhenItIsFullTheOldestStay) {
  WarmJobs warm(20'000);
  warm.keep(1, job_with(1, 8000));
  warm.keep(2, job_with(2, 8000));
  warm.keep(3, job_with(3, 8000));
  Job job;
  EXPECT_TRUE(warm.take(1, job_with(1).id, job));
  EXPECT_FALSE(warm.take(3, job_with(3).id, job));
  warm.drop(2);
  warm.keep(4, job_with(4, 8000));
  EXPECT_TRUE(warm.take(4, job_with(4).id, job));
}

}  // namespace
}  // namespace bide::engine
