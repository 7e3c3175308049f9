#include "worker/attempt.h"

#include <gtest/gtest.h>

#include <thread>

namespace bide::worker {

namespace {

std::shared_ptr<LeaseBatch> batch_of(int count) {
  std::vector<Lease> leases(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < leases.size(); ++i) leases[i].token = i + 1;
  return std::make_shared<LeaseBatch>(std::move(leases), Moment(), std::make_shared<WorkerLink>());
}

TEST(LeaseBatch, EveryLeaseIsClaimedOnceByWhicheverThread) {
  const auto batch = batch_of(10'000);
  std::vector<std::thread> threads;
  std::vector<std::atomic<int>> claims(10'001);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (Attempt* attempt = batch->claim()) ++claims[attempt->ref().token];
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t token = 1; token <= 10'000; ++token) EXPECT_EQ(claims[token], 1);
  EXPECT_TRUE(batch->exhausted());
}

TEST(LeaseBatch, TheLastSettledAttemptIsToldApart) {
  const auto batch = batch_of(3);
  EXPECT_FALSE(batch->count_settled());
  EXPECT_FALSE(batch->count_settled());
  EXPECT_TRUE(batch->count_settled());
}

TEST(Attempt, OnlyOneOfTwoFinishesIt) {
  const auto batch = batch_of(1);
  Attempt& attempt = *batch->claim();
  EXPECT_FALSE(attempt.finish()) << "it was not started";
  attempt.start();
  EXPECT_TRUE(attempt.finish());
  EXPECT_FALSE(attempt.finish());
}

TEST(Attempt, ATokenTakenAfterTheRequestIsStoppedFromTheBeginning) {
  const auto batch = batch_of(1);
  Attempt& attempt = *batch->claim();
  attempt.request_stop();
  EXPECT_TRUE(attempt.stop_token().stop_requested());
}

TEST(Attempt, ATokenTakenBeforeTheRequestHearsOfIt) {
  const auto batch = batch_of(1);
  Attempt& attempt = *batch->claim();
  const std::stop_token token = attempt.stop_token();
  EXPECT_FALSE(token.stop_requested());
  attempt.request_stop();
  EXPECT_TRUE(token.stop_requested());
}

TEST(Attempt, ItsDeadlineIsALittleBeforeTheLimitCountedFromArrival) {
  std::vector<Lease> leases(2);
  leases[0].job.time_limit = std::chrono::hours(1);
  leases[1].job.time_limit = std::chrono::milliseconds(100);
  const LeaseBatch batch(std::move(leases), Moment(), std::make_shared<WorkerLink>());
  EXPECT_EQ(batch.earliest_deadline(), Moment(std::chrono::milliseconds(90)));
}

}  // namespace
}  // namespace bide::worker
