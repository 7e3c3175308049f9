#include "brokers/rabbitmq/settled_jobs.h"

#include <array>

#include <gtest/gtest.h>

namespace bide::brokers::rabbitmq {
namespace {

JobId id_of(std::uint8_t number) {
  std::array<std::uint8_t, JobId::kSize> bytes{};
  bytes[0] = number;
  return JobId(bytes);
}

JobMessage message_of(std::uint8_t number, std::int64_t published) {
  JobMessage message;
  message.job.id = id_of(number);
  message.job.queue = "default";
  message.published = published;
  return message;
}

class SettledJobsTest : public ::testing::Test {
 protected:
  Stamps stamps_;
  NoticeBoard board_;
  SettledJobs settled_{stamps_, 2};
};

TEST_F(SettledJobsTest, CopiesUpToTheSettledOneAreOver) {
  EXPECT_FALSE(settled_.is_over(message_of(1, 10)));
  settled_.add(message_of(1, 10), 10);
  EXPECT_TRUE(settled_.is_over(message_of(1, 9)));
  EXPECT_TRUE(settled_.is_over(message_of(1, 10)));
  EXPECT_FALSE(settled_.is_over(message_of(1, 11)));
  EXPECT_FALSE(settled_.is_over(message_of(2, 9)));
}

TEST_F(SettledJobsTest, AnEarlierJobOfTheSameIdIsAnotherJob) {
  JobMessage later = message_of(1, 20);
  later.generation = 20;
  settled_.add(later, 20);
  JobMessage delayed = message_of(1, 10);
  delayed.generation = 10;
  EXPECT_FALSE(settled_.is_over(delayed));
  EXPECT_TRUE(settled_.is_over(later));
}

TEST_F(SettledJobsTest, AMessageWithoutAStampIsNeverOver) {
  settled_.add(message_of(1, 10), 10);
  EXPECT_FALSE(settled_.is_over(message_of(1, 0)));
}

TEST_F(SettledJobsTest, WhatTakesThePlaceOfAMessageHasOneStampHoweverOftenThatIsTried) {
  const std::int64_t first = settled_.stamp_of_copy(message_of(1, 10), board_);
  EXPECT_EQ(settled_.stamp_of_copy(message_of(1, 10), board_), first);
  EXPECT_EQ(settled_.last_copy_of(message_of(1, 10)), first);
  EXPECT_NE(settled_.stamp_of_copy(message_of(1, 11), board_), first) << "another message of the job";
  EXPECT_EQ(settled_.last_copy_of(message_of(1, 10)), 10);
}

TEST_F(SettledJobsTest, ACopyThatAPurgeWouldHitIsStampedAnew) {
  const std::int64_t first = settled_.stamp_of_copy(message_of(1, 10), board_);
  board_.add({.kind = Notice::Kind::kPurge, .name = "default", .stamp = first});
  EXPECT_GT(settled_.stamp_of_copy(message_of(1, 10), board_), first);
}

TEST_F(SettledJobsTest, EveryCopyThatTakesThePlaceOfAMessageIsDueWithTheOneThatWasAccepted) {
  const std::int64_t copy = settled_.stamp_of_copy(message_of(1, 10), board_);
  EXPECT_FALSE(settled_.due_of_copy(message_of(1, copy))) << "none was accepted yet";
  settled_.copy_is_due(message_of(1, 10), Time(Milliseconds(500)));
  EXPECT_EQ(settled_.due_of_copy(message_of(1, copy)), Time(Milliseconds(500)));
  EXPECT_FALSE(settled_.due_of_copy(message_of(1, 10)));
  const std::int64_t next = settled_.stamp_of_copy(message_of(1, copy), board_);
  EXPECT_FALSE(settled_.due_of_copy(message_of(1, next))) << "the attempt after that one is another";
}

TEST_F(SettledJobsTest, AnOutcomeIsKnownUntilTheNextLease) {
  const LeaseRef lease{id_of(1), 7};
  settled_.add(message_of(1, 10), lease.token, 2, 10);
  EXPECT_TRUE(settled_.ended_with(lease, 2));
  EXPECT_FALSE(settled_.ended_with(lease, 1));
  EXPECT_FALSE(settled_.knows({id_of(1), 8}));
  settled_.leased_again(id_of(1));
  EXPECT_FALSE(settled_.knows(lease));
  EXPECT_TRUE(settled_.is_over(message_of(1, 10)));
}

TEST_F(SettledJobsTest, TheOldestIsForgotten) {
  for (const std::uint8_t number : std::array<std::uint8_t, 3>{1, 2, 3}) settled_.add(message_of(number, 10), 10);
  EXPECT_FALSE(settled_.is_over(message_of(1, 10)));
  EXPECT_TRUE(settled_.is_over(message_of(2, 10)));
  EXPECT_TRUE(settled_.is_over(message_of(3, 10)));
}

}  // namespace
}  // namespace bide::brokers::rabbitmq
