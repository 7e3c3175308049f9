#include "server/callbacks/host_line.h"

#include <gtest/gtest.h>

#include <chrono>

namespace bide::server {
namespace {

using namespace std::chrono_literals;

constexpr HostLimits kLimits{.most = 8, .failures_to_open = 3, .shortest_pause = 5s, .longest_pause = 15s};

class HostLineTest : public testing::Test {
 protected:
  void pass(Milliseconds time) { now += time; }
  void deliver(HostSign sign, Milliseconds pause = 0ms) {
    ASSERT_TRUE(line.may_send(now));
    line.sent();
    const Moment started = now;
    pass(10ms);
    line.answered(sign, started, now, pause);
  }
  void break_it() {
    for (int i = 0; i < 3; ++i) deliver(HostSign::kFailing);
  }
  HostLine::Breaker breaker() const { return line.breaker(now); }

  Moment now = Moment(1h);
  HostLine line{kLimits};
};

TEST_F(HostLineTest, NoMoreThanItsLimitIsUnderWay) {
  while (line.may_send(now)) line.sent();
  EXPECT_EQ(line.under_way(), 4);
}

TEST_F(HostLineTest, TheLimitGrowsWithGoodAnswersUpToTheMost) {
  for (int i = 0; i < 5; ++i) deliver(HostSign::kWell);
  EXPECT_EQ(line.limit(), 5);
  for (int i = 0; i < 200; ++i) deliver(HostSign::kWell);
  EXPECT_EQ(line.limit(), 8);
}

TEST_F(HostLineTest, TheLimitIsHalvedWhenTheHostIsBusy) {
  deliver(HostSign::kBusy);
  EXPECT_EQ(line.limit(), 2);
  deliver(HostSign::kBusy);
  EXPECT_EQ(line.limit(), 1);
  deliver(HostSign::kBusy);
  EXPECT_EQ(line.limit(), 1);
  EXPECT_EQ(breaker(), HostLine::Breaker::kClosed);
}

TEST_F(HostLineTest, WhatWasSentTogetherHalvesTheLimitOnce) {
  const Moment started = now;
  for (int i = 0; i < 4; ++i) line.sent();
  for (int i = 0; i < 4; ++i) {
    pass(1ms);
    line.answered(HostSign::kBusy, started, now);
  }
  EXPECT_EQ(line.limit(), 2);
}

TEST_F(HostLineTest, AnAnswerThatIsNotLikedSaysThatTheHostIsThere) {
  deliver(HostSign::kFailing);
  deliver(HostSign::kFailing);
  deliver(HostSign::kAnswers);
  deliver(HostSign::kFailing);
  deliver(HostSign::kFailing);
  EXPECT_EQ(breaker(), HostLine::Breaker::kClosed);
}

TEST_F(HostLineTest, FailuresInARowOpenTheBreaker) {
  break_it();
  EXPECT_EQ(breaker(), HostLine::Breaker::kOpen);
  EXPECT_FALSE(line.may_send(now));
  EXPECT_EQ(line.pause_left(now), 5s);
}

TEST_F(HostLineTest, AfterThePauseOneProbeIsSent) {
  break_it();
  pass(5s);
  EXPECT_EQ(breaker(), HostLine::Breaker::kHalfOpen);
  ASSERT_TRUE(line.may_send(now));
  line.sent();
  EXPECT_FALSE(line.may_send(now));
}

TEST_F(HostLineTest, AProbeThatSucceedsClosesTheBreaker) {
  break_it();
  pass(5s);
  deliver(HostSign::kWell);
  EXPECT_EQ(breaker(), HostLine::Breaker::kClosed);
  EXPECT_TRUE(line.may_send(now));
  EXPECT_EQ(line.failures_in_a_row(), 0);
}

TEST_F(HostLineTest, AProbeThatFailsOpensItForLongerUpToTheLongest) {
  break_it();
  for (const Milliseconds pause : {10s, 15s, 15s}) {
    pass(line.pause_left(now));
    deliver(HostSign::kFailing);
    EXPECT_EQ(breaker(), HostLine::Breaker::kOpen);
    EXPECT_EQ(line.pause_left(now), pause);
  }
  pass(15s);
  deliver(HostSign::kWell);
  break_it();
  EXPECT_EQ(line.pause_left(now), 5s);
}

TEST_F(HostLineTest, WhatWasUnderWayWhenItOpenedDoesNotMakeThePauseLonger) {
  const Moment started = now;
  for (int i = 0; i < 4; ++i) line.sent();
  for (int i = 0; i < 3; ++i) line.answered(HostSign::kFailing, started, now);
  pass(1s);
  line.answered(HostSign::kFailing, started, now);
  EXPECT_EQ(line.pause_left(now), 4s);
}

TEST_F(HostLineTest, ACalledOffProbeLeavesRoomForAnother) {
  break_it();
  pass(5s);
  deliver(HostSign::kNone);
  EXPECT_EQ(breaker(), HostLine::Breaker::kHalfOpen);
  EXPECT_TRUE(line.may_send(now));
}

TEST_F(HostLineTest, TheHostMayAskForAPause) {
  deliver(HostSign::kBusy, 30s);
  EXPECT_EQ(breaker(), HostLine::Breaker::kClosed);
  EXPECT_FALSE(line.may_send(now));
  EXPECT_EQ(line.pause_left(now), 30s);
  pass(30s);
  EXPECT_TRUE(line.may_send(now));
}

TEST_F(HostLineTest, WhatMustWaitIsBookedOneAfterTheOther) {
  deliver(HostSign::kWell);
  const Milliseconds first = line.book(now);
  Milliseconds last = first;
  for (int i = 0; i < 100; ++i) {
    const Milliseconds next = line.book(now);
    EXPECT_GE(next, last);
    last = next;
  }
  EXPECT_GT(last, first);
  for (int i = 0; i < 1'000'000; ++i) last = line.book(now);
  EXPECT_EQ(last, 5min);
}

TEST_F(HostLineTest, NothingIsBookedBeforeThePauseIsOver) {
  break_it();
  EXPECT_GE(line.book(now), 5s);
  EXPECT_LE(line.book(now), 6s);
}

}  // namespace
}  // namespace bide::server
