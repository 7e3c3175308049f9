#include "server/callbacks/host_table.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace bide::server {
namespace {

using namespace std::chrono_literals;

constexpr HostLimits kLimits{.most = 8, .failures_to_open = 3, .shortest_pause = 5s, .longest_pause = 15s};

class HostLimiterTest : public testing::Test {
 protected:
  void pass(Milliseconds time) { now += time; }
  void deliver(HostHealth health, Milliseconds pause = 0ms) {
    ASSERT_TRUE(limiter.may_send(now));
    limiter.sent();
    const Moment started = now;
    pass(10ms);
    limiter.answered(health, started, now, pause);
  }
  void break_it() {
    for (int i = 0; i < 3; ++i) deliver(HostHealth::kFailing);
  }
  HostLimiter::Breaker breaker() const { return limiter.breaker(now); }

  Moment now = Moment(1h);
  HostLimiter limiter{kLimits};
};

TEST_F(HostLimiterTest, NoMoreThanItsLimitIsUnderWay) {
  while (limiter.may_send(now)) limiter.sent();
  EXPECT_EQ(limiter.under_way(), 4);
}

TEST_F(HostLimiterTest, TheLimitGrowsWithGoodAnswersUpToTheMost) {
  for (int i = 0; i < 5; ++i) deliver(HostHealth::kGood);
  EXPECT_EQ(limiter.limit(), 5);
  for (int i = 0; i < 200; ++i) deliver(HostHealth::kGood);
  EXPECT_EQ(limiter.limit(), 8);
}

TEST_F(HostLimiterTest, TheLimitIsHalvedWhenTheHostIsBusy) {
  deliver(HostHealth::kBusy);
  EXPECT_EQ(limiter.limit(), 2);
  deliver(HostHealth::kBusy);
  EXPECT_EQ(limiter.limit(), 1);
  deliver(HostHealth::kBusy);
  EXPECT_EQ(limiter.limit(), 1);
  EXPECT_EQ(breaker(), HostLimiter::Breaker::kClosed);
}

TEST_F(HostLimiterTest, WhatWasSentTogetherHalvesTheLimitOnce) {
  const Moment started = now;
  for (int i = 0; i < 4; ++i) limiter.sent();
  for (int i = 0; i < 4; ++i) {
    pass(1ms);
    limiter.answered(HostHealth::kBusy, started, now);
  }
  EXPECT_EQ(limiter.limit(), 2);
}

TEST_F(HostLimiterTest, AnAnswerThatIsNotLikedSaysThatTheHostIsThere) {
  deliver(HostHealth::kFailing);
  deliver(HostHealth::kFailing);
  deliver(HostHealth::kAnswers);
  deliver(HostHealth::kFailing);
  deliver(HostHealth::kFailing);
  EXPECT_EQ(breaker(), HostLimiter::Breaker::kClosed);
}

TEST_F(HostLimiterTest, FailuresInARowOpenTheBreaker) {
  break_it();
  EXPECT_EQ(breaker(), HostLimiter::Breaker::kOpen);
  EXPECT_FALSE(limiter.may_send(now));
  EXPECT_EQ(limiter.pause_left(now), 5s);
}

TEST_F(HostLimiterTest, AfterThePauseOneProbeIsSent) {
  break_it();
  pass(5s);
  EXPECT_EQ(breaker(), HostLimiter::Breaker::kHalfOpen);
  ASSERT_TRUE(limiter.may_send(now));
  limiter.sent();
  EXPECT_FALSE(limiter.may_send(now));
}

TEST_F(HostLimiterTest, AProbeThatSucceedsClosesTheBreaker) {
  break_it();
  pass(5s);
  deliver(HostHealth::kGood);
  EXPECT_EQ(breaker(), HostLimiter::Breaker::kClosed);
  EXPECT_TRUE(limiter.may_send(now));
  EXPECT_EQ(limiter.failures_in_a_row(), 0);
}

TEST_F(HostLimiterTest, AProbeThatFailsOpensItForLongerUpToTheLongest) {
  break_it();
  for (const Milliseconds pause : {10s, 15s, 15s}) {
    pass(limiter.pause_left(now));
    deliver(HostHealth::kFailing);
    EXPECT_EQ(breaker(), HostLimiter::Breaker::kOpen);
    EXPECT_EQ(limiter.pause_left(now), pause);
  }
  pass(15s);
  deliver(HostHealth::kGood);
  break_it();
  EXPECT_EQ(limiter.pause_left(now), 5s);
}

TEST_F(HostLimiterTest, WhatWasUnderWayWhenItOpenedDoesNotMakeThePauseLonger) {
  const Moment started = now;
  for (int i = 0; i < 4; ++i) limiter.sent();
  for (int i = 0; i < 3; ++i) limiter.answered(HostHealth::kFailing, started, now);
  pass(1s);
  limiter.answered(HostHealth::kFailing, started, now);
  EXPECT_EQ(limiter.pause_left(now), 4s);
}

TEST_F(HostLimiterTest, ACalledOffProbeLeavesRoomForAnother) {
  break_it();
  pass(5s);
  deliver(HostHealth::kUnknown);
  EXPECT_EQ(breaker(), HostLimiter::Breaker::kHalfOpen);
  EXPECT_TRUE(limiter.may_send(now));
}

TEST_F(HostLimiterTest, TheHostMayAskForAPause) {
  deliver(HostHealth::kBusy, 30s);
  EXPECT_EQ(breaker(), HostLimiter::Breaker::kClosed);
  EXPECT_FALSE(limiter.may_send(now));
  EXPECT_EQ(limiter.pause_left(now), 30s);
  pass(30s);
  EXPECT_TRUE(limiter.may_send(now));
}

TEST_F(HostLimiterTest, WhatMustWaitIsBookedOneAfterTheOther) {
  deliver(HostHealth::kGood);
  const Milliseconds first = limiter.next_slot(now);
  Milliseconds last = first;
  for (int i = 0; i < 100; ++i) {
    const Milliseconds next = limiter.next_slot(now);
    EXPECT_GE(next, last);
    last = next;
  }
  EXPECT_GT(last, first);
  for (int i = 0; i < 1'000'000; ++i) last = limiter.next_slot(now);
  EXPECT_EQ(last, 5min);
}

TEST_F(HostLimiterTest, NothingIsBookedBeforeThePauseIsOver) {
  break_it();
  EXPECT_GE(limiter.next_slot(now), 5s);
  EXPECT_LE(limiter.next_slot(now), 6s);
}

const Moment kStart = Moment(1h);

TEST(HostTable, ForgetsTheHostThatWasQuietForLongest) {
  HostTable table({}, 2);
  table.at("a:80", kStart);
  table.at("b:80", kStart + 1s);
  table.at("a:80", kStart + 2s);
  table.at("c:80", kStart + 3s);
  const auto status = table.status(kStart + 3s);
  ASSERT_EQ(status.size(), 2u);
  EXPECT_EQ(status[0].host, "a:80");
  EXPECT_EQ(status[1].host, "c:80");
}

TEST(HostTable, DoesNotForgetAHostThatIsBusy) {
  HostTable table({}, 1);
  Host& busy = table.at("a:80", kStart);
  busy.limiter.sent();
  table.at("b:80", kStart + 1s);
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(&table.at("a:80", kStart + 2s), &busy);
  busy.limiter.answered(HostHealth::kGood, kStart, kStart + 2s);
  table.at("c:80", kStart + 3s);
  EXPECT_EQ(table.size(), 2u);
}

TEST(HostTable, ShowsWhatItKnows) {
  HostTable table({.most = 8, .failures_to_open = 1, .shortest_pause = 5s, .longest_pause = 10s}, 10);
  Host& host = table.at("a:80", kStart);
  host.limiter.sent();
  host.limiter.answered(HostHealth::kFailing, kStart, kStart + 1s);
  host.last_error = "refused";
  const HostStatus status = table.status(kStart + 2s).at(0);
  EXPECT_EQ(status.breaker, HostLimiter::Breaker::kOpen);
  EXPECT_EQ(status.pause, 4s);
  EXPECT_EQ(status.failures, 1);
  EXPECT_EQ(status.last_error, "refused");
}

}  // namespace
}  // namespace bide::server
