#include "brokers/rabbitmq/delay_path.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace bide::brokers::rabbitmq {
namespace {

constexpr DelayShape kShapes[] = {{.radix = 16}, {.radix = 4}, {.radix = 64}, {.radix = 256}};

std::int64_t waits(const DelayShape& shape, const DelayPath& path) {
  std::int64_t sum = path.laps * kDelayLap.count();
  for (const DelayHop& hop : path.hops) sum += hop.digit * shape.value(hop.level);
  return sum;
}

// Short ones are as likely as long ones.
Milliseconds any_delay() {
  const int bits = *rc::gen::inRange(0, 42);
  const std::int64_t most = std::min<std::int64_t>(std::int64_t{1} << bits, Milliseconds(Limits::kDelay).count());
  return Milliseconds(*rc::gen::inRange<std::int64_t>(1, most + 1));
}

DelayShape any_shape() {
  DelayShape shape;
  shape.radix = *rc::gen::element(16, 4, 64, 256);
  shape.digits = *rc::gen::inRange(0, 6);
  shape.unit = Milliseconds(*rc::gen::element<std::int64_t>(1, 1, 7, 16, 1000, 3'600'000));
  return shape;
}

TEST(DelayPath, VisitsOneQueueForEachDigitThatIsNotZero) {
  const DelayPath path = delay_path({}, Milliseconds(0x1020));
  EXPECT_EQ(path.total, Milliseconds(0x1020));
  EXPECT_EQ(path.laps, 0);
  EXPECT_EQ(path.hops, (std::vector<DelayHop>{{3, 3, 1}, {2, 1, 2}}));
  EXPECT_EQ(path.leaves, 0);
  EXPECT_EQ(hop_key(path.hops[1]), "2>1.2");
  EXPECT_EQ(leave_key(path.leaves), "0>!");
}

TEST(DelayPath, LowestLevelLeadsOutByItself) {
  EXPECT_EQ(delay_path({}, Milliseconds(0x21)).leaves, -1);
  EXPECT_EQ(delay_path({}, Milliseconds(0x20)).leaves, 0);
}

TEST(DelayPath, NothingToWaitForNeedsNoPath) {
  EXPECT_EQ(delay_path({}, Milliseconds(0)), DelayPath{});
  EXPECT_EQ(delay_path({}, Milliseconds(-5)), DelayPath{});
}

TEST(DelayPath, WhatIsLongerThanTheServerHoldsGoesRoundInLaps) {
  const DelayPath path = delay_path({}, 3 * kDelayLap + Milliseconds(5));
  EXPECT_EQ(path.laps, 3);
  EXPECT_EQ(path.hops, (std::vector<DelayHop>{{9, 0, 5}}));
  const DelayPath round = delay_path({}, 2 * kDelayLap);
  EXPECT_EQ(round.laps, 2);
  EXPECT_TRUE(round.hops.empty());
  EXPECT_EQ(round.leaves, 9);
}

TEST(DelayPath, LongestDelayOfAJobHasAPath) {
  for (const DelayShape& shape : kShapes) {
    const DelayPath path = delay_path(shape, Limits::kDelay);
    EXPECT_EQ(waits(shape, path), Milliseconds(Limits::kDelay).count());
    EXPECT_EQ(path.laps, 11);
  }
}

TEST(DelayPath, StepsOfARetryPolicyShareTheirQueues) {
  using std::chrono::hours;
  using std::chrono::seconds;
  std::set<std::pair<int, int>> queues;
  for (const Milliseconds step : {Milliseconds(seconds(10)), Milliseconds(seconds(100)), Milliseconds(hours(1)),
                                  Milliseconds(hours(2)), Milliseconds(hours(10))}) {
    for (const DelayHop& hop : delay_path({.digits = 2}, step).hops) queues.insert({hop.level, hop.digit});
  }
  EXPECT_LE(queues.size(), 10u);
}

RC_GTEST_PROP(DelayPath, WaitsExactlyTheDelayWhereNothingIsRounded, ()) {
  const DelayShape shape{.radix = *rc::gen::element(16, 4, 64, 256)};
  const Milliseconds delay = any_delay();
  const DelayPath path = delay_path(shape, delay);
  RC_ASSERT(path.total == delay);
  RC_ASSERT(waits(shape, path) == delay.count());
}

RC_GTEST_PROP(DelayPath, NeverWaitsLessThanTheDelay, ()) {
  const DelayShape shape = any_shape();
  const Milliseconds delay = any_delay();
  const DelayPath path = delay_path(shape, delay);
  RC_ASSERT(path.total >= delay);
  RC_ASSERT(waits(shape, path) == path.total.count());
}

RC_GTEST_PROP(DelayPath, LongerDelayNeverGivesAShorterPath, ()) {
  const DelayShape shape = any_shape();
  const Milliseconds a = any_delay();
  const Milliseconds b = any_delay();
  RC_ASSERT((a <= b) == (a == b || a < b));
  if (a <= b) RC_ASSERT(delay_path(shape, a).total <= delay_path(shape, b).total);
}

RC_GTEST_PROP(DelayPath, VisitsEachLevelAtMostOnceAndOnlyDownwards, ()) {
  const DelayShape shape = any_shape();
  const DelayPath path = delay_path(shape, any_delay());
  int from = path.laps > 0 ? shape.top() : path.hops.empty() ? -1 : path.hops.front().level;
  for (const DelayHop& hop : path.hops) {
    RC_ASSERT(hop.from == from);
    RC_ASSERT(hop.level <= hop.from);
    RC_ASSERT(hop.digit >= 1);
    RC_ASSERT(hop.digit < shape.radix);
    from = hop.level - 1;
  }
  RC_ASSERT(path.leaves == from);
}

RC_GTEST_PROP(DelayPath, FewDigitsMeanFewHops, ()) {
  DelayShape shape = any_shape();
  shape.digits = *rc::gen::inRange(1, 6);
  shape.unit = Milliseconds(1);
  const Milliseconds delay(*rc::gen::inRange<std::int64_t>(1, kDelayLap.count()));
  const DelayPath path = delay_path(shape, delay);
  RC_ASSERT(path.hops.size() <= static_cast<std::size_t>(shape.digits));
  // Not more is added than one unit of the last digit that is kept.
  std::int64_t step = 1;
  for (int i = 1; i < shape.digits; ++i) step *= shape.radix;
  RC_ASSERT((path.total - delay).count() <= delay.count() / step);
}

TEST(DelayPath, LeavesLessThanTheWorkersWaitToTheWorker) {
  const DelayShape exact{.radix = 16};
  EXPECT_EQ(before_worker(exact, Milliseconds(4711)), Milliseconds(4711));
  const DelayShape shape{.radix = 16, .worker_wait = Milliseconds(16)};
  EXPECT_EQ(before_worker(shape, Milliseconds(0)), Milliseconds(0));
  EXPECT_EQ(before_worker(shape, Milliseconds(15)), Milliseconds(0));
  EXPECT_EQ(before_worker(shape, Milliseconds(16)), Milliseconds(16));
  EXPECT_EQ(before_worker(shape, Milliseconds(0x123f)), Milliseconds(0x1230));
  for (const DelayHop& hop : delay_path(shape, before_worker(shape, Milliseconds(0x123f))).hops) EXPECT_GT(hop.level, 0);
}

}  // namespace
}  // namespace bide::brokers::rabbitmq
