#include "server/callbacks/delivery_log.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace bide::server {
namespace {

JobId job_id(std::uint8_t number) { return JobId(std::array<std::uint8_t, JobId::kSize>{number}); }

DeliveryRecord record(std::uint8_t number, std::size_t body = 0) {
  Job whole;
  whole.body = std::string(body, 'x');
  return {
      .job = job_id(number), .at = Time(Milliseconds(1'700'000'000'000)), .whole = std::make_shared<const Job>(whole)};
}

TEST(DeliveryLog, IsReadNewestFirst) {
  DeliveryLog log(10, 1 << 20);
  for (std::uint8_t i = 1; i <= 5; ++i) log.add(record(i));
  const auto page = log.list(2);
  ASSERT_EQ(page.size(), 2u);
  EXPECT_EQ(page[0].job, job_id(5));
  EXPECT_EQ(page[1].job, job_id(4));
  const auto next = log.list(10, {}, page[1].id);
  ASSERT_EQ(next.size(), 3u);
  EXPECT_EQ(next[0].job, job_id(3));
}

TEST(DeliveryLog, ShowsTheDeliveriesOfOneJob) {
  DeliveryLog log(10, 1 << 20);
  for (const int i : {1, 2, 1, 3, 1}) log.add(record(static_cast<std::uint8_t>(i)));
  EXPECT_EQ(log.list(10, job_id(1)).size(), 3u);
}

TEST(DeliveryLog, ForgetsTheOldest) {
  DeliveryLog log(3, 1 << 20);
  const JobId first = log.add(record(1));
  JobId last = {};
  for (std::uint8_t i = 2; i <= 5; ++i) last = log.add(record(i));
  EXPECT_EQ(log.list(10).size(), 3u);
  EXPECT_FALSE(log.find(first));
  EXPECT_EQ(log.find(last)->job, job_id(5));
}

TEST(DeliveryLog, KeepsNoMoreBytesThanItMay) {
  DeliveryLog log(100, 10'000);
  const JobId first = log.add(record(1, 4'000));
  log.add(record(2, 4'000));
  EXPECT_TRUE(log.find(first)->whole);
  const JobId third = log.add(record(3, 4'000));
  EXPECT_FALSE(log.find(first)->whole);
  EXPECT_TRUE(log.find(third)->whole);
  const JobId huge = log.add(record(4, 100'000));
  EXPECT_FALSE(log.find(huge)->whole);
  EXPECT_FALSE(log.find(third)->whole);
  const JobId small = log.add(record(5, 10));
  EXPECT_TRUE(log.find(small)->whole);
  EXPECT_EQ(log.list(100).size(), 5u);
}

TEST(DeliveryLog, CountsTheBytesOfWhatItForgets) {
  DeliveryLog log(2, 10'000);
  JobId last = {};
  for (int i = 0; i < 100; ++i) last = log.add(record(1, 4'000));
  EXPECT_TRUE(log.find(last)->whole);
  EXPECT_TRUE(log.list(2)[1].whole);
}

}  // namespace
}  // namespace bide::server
