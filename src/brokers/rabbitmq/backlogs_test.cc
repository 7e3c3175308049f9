#include "brokers/rabbitmq/backlogs.h"

#include <gtest/gtest.h>

namespace bide::brokers::rabbitmq {
namespace {

using namespace std::chrono_literals;
using Room = Backlogs::Room;

const Backlogs::Moment kStart{1h};

TEST(Backlogs, AQueueIsCountedBeforeAnythingIsSentThere) {
  Backlogs backlogs(10);
  EXPECT_EQ(backlogs.room("a", kStart), Room::kUnknown);
  EXPECT_EQ(backlogs.next_question(), "a");
  EXPECT_EQ(backlogs.room("a", kStart), Room::kUnknown);
  EXPECT_EQ(backlogs.next_question(), std::nullopt) << "the answer has not come";
  backlogs.counted("a", 9, kStart);
  EXPECT_EQ(backlogs.room("a", kStart), Room::kSome);
}

TEST(Backlogs, AFullQueueHasNoneAndOthersHave) {
  Backlogs backlogs(10);
  backlogs.counted("a", 10, kStart);
  backlogs.counted("b", 9, kStart);
  EXPECT_EQ(backlogs.room("a", kStart + 1ms), Room::kNone);
  EXPECT_EQ(backlogs.room("b", kStart + 1ms), Room::kSome);
}

TEST(Backlogs, AFullQueueIsCountedAgainBeforeMoreAreRefused) {
  Backlogs backlogs(10);
  backlogs.counted("a", 10, kStart);
  EXPECT_EQ(backlogs.room("a", kStart + 1s), Room::kUnknown);
  EXPECT_EQ(backlogs.next_question(), "a");
  backlogs.counted("a", 9, kStart + 1s);
  EXPECT_EQ(backlogs.room("a", kStart + 1s), Room::kSome);
}

TEST(Backlogs, WhatIsSentFillsTheQueueAndConsumersEmptyIt) {
  Backlogs backlogs(10);
  backlogs.counted("a", 0, kStart);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(backlogs.room("a", kStart), Room::kSome);
    backlogs.sent("a");
  }
  EXPECT_EQ(backlogs.next_question(), "a") << "asked when half of the room was used";
  EXPECT_EQ(backlogs.room("a", kStart), Room::kUnknown);
  backlogs.counted("a", 4, kStart);
  EXPECT_EQ(backlogs.room("a", kStart), Room::kSome);
  EXPECT_EQ(backlogs.next_question(), std::nullopt) << "nothing was sent since";
}

TEST(Backlogs, AQueueWhoseCountWasLostIsCountedAgain) {
  Backlogs backlogs(10);
  EXPECT_EQ(backlogs.room("a", kStart), Room::kUnknown);
  EXPECT_EQ(backlogs.next_question(), "a");
  EXPECT_EQ(backlogs.room("a", kStart), Room::kUnknown);
  EXPECT_EQ(backlogs.next_question(), std::nullopt) << "it is being asked for";
  backlogs.not_counted("a");
  EXPECT_EQ(backlogs.room("a", kStart), Room::kUnknown);
  EXPECT_EQ(backlogs.next_question(), "a");
}

TEST(Backlogs, AQueueFarFromItsLimitIsCountedRarely) {
  Backlogs backlogs(10'000'000);
  backlogs.counted("a", 0, kStart);
  EXPECT_EQ(backlogs.room("a", kStart + 59s), Room::kSome);
  EXPECT_EQ(backlogs.next_question(), std::nullopt);
  EXPECT_EQ(backlogs.room("a", kStart + 60s), Room::kSome);
  EXPECT_EQ(backlogs.next_question(), "a");
}

TEST(Backlogs, WithoutALimitNothingIsCounted) {
  Backlogs backlogs(0);
  backlogs.sent("a");
  EXPECT_EQ(backlogs.room("a", kStart), Room::kSome);
  EXPECT_EQ(backlogs.next_question(), std::nullopt);
}

}  // namespace
}  // namespace bide::brokers::rabbitmq
