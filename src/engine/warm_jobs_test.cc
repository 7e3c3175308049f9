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

TEST(WarmJobs, KeepsAJobUntilItIsDropped) {
  WarmJobs warm(1 << 20);
  warm.keep(1, job_with(1));
  ASSERT_NE(warm.find(1, job_with(1).id), nullptr);
  EXPECT_EQ(warm.find(1, job_with(1).id)->body.size(), 10u);
  warm.drop(1);
  EXPECT_EQ(warm.find(1, job_with(1).id), nullptr);
}

TEST(WarmJobs, ALeftoverOfAnEarlierJobInTheSameSlotIsNotFound) {
  WarmJobs warm(1 << 20);
  warm.keep(1, job_with(1));
  EXPECT_EQ(warm.find(1, job_with(2).id), nullptr);
}

TEST(WarmJobs, WhenItIsFullTheOldestStay) {
  WarmJobs warm(20'000);
  warm.keep(1, job_with(1, 8000));
  warm.keep(2, job_with(2, 8000));
  warm.keep(3, job_with(3, 8000));
  EXPECT_NE(warm.find(1, job_with(1).id), nullptr);
  EXPECT_EQ(warm.find(3, job_with(3).id), nullptr);
  warm.drop(2);
  warm.keep(4, job_with(4, 8000));
  EXPECT_NE(warm.find(4, job_with(4).id), nullptr);
}

TEST(WarmJobs, FindsEveryJobWhileManyComeAndGo) {
  WarmJobs warm(1 << 20);
  for (Slot slot = 0; slot < 20'000; ++slot) {
    warm.keep(slot, job_with(static_cast<std::uint8_t>(slot)));
    if (slot >= 100) warm.drop(slot - 100);
  }
  for (Slot slot = 19'900; slot < 20'000; ++slot) {
    EXPECT_NE(warm.find(slot, job_with(static_cast<std::uint8_t>(slot)).id), nullptr);
  }
  EXPECT_EQ(warm.find(100, job_with(100).id), nullptr);
}

}  // namespace
}  // namespace bide::engine
