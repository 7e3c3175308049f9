// Three nodes, of which one is killed under load: any of them, and the one that leads the queue. What was confirmed is
// not lost, nothing starts early, and publishing goes on without the dead one.

#include <cstdio>

#include <gtest/gtest.h>

#include "rabbitmq/load.h"
#include "rabbitmq/rabbitmq_fixture.h"
#include "rabbitmq/verdict.h"

namespace bide::rabbitmq_test {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

class RabbitmqClusterFaults : public RabbitmqTest<3> {
 protected:
  // Kills one under load, sees that publishing goes on without it, and brings it back.
  void kill_and_bring_back(Load& load, int node) {
    const std::uint64_t before = load.confirmed();
    EXPECT_GT(load.unfinished(), 0u) << "invalid: the kill hits nothing";
    const auto killed = steady_clock::now();
    server().kill(node);
    load.note_outage("node" + std::to_string(node + 1));
    // Some confirms were under way.
    ASSERT_TRUE(load.await_confirmed(before + 100)) << "publishing does not go on";
    const auto pause = duration_cast<milliseconds>(steady_clock::now() - killed);
    std::printf("node %d killed: 100 more were confirmed %lld ms later\n", node + 1,
                static_cast<long long>(pause.count()));
    ASSERT_TRUE(load.await_confirmed(before + 500)) << "publishing does not go on";
    server().start(node);
  }
};

TEST_F(RabbitmqClusterFaults, KillOfTheLeaderOfAQueueLosesNothingThatWasConfirmed) {
  Load load({.producer_url = url() + "&patience=30s", .worker_url = url(), .pause = milliseconds(50)});
  load.start_producing();
  ASSERT_TRUE(load.await_confirmed(load.confirmed() + 300));
  int leader = -1;
  ASSERT_TRUE(eventually([&] { return (leader = server().leader_of(queue_name())) >= 0; }))
      << "invalid: nobody leads the queue";
  kill_and_bring_back(load, leader);
  EXPECT_EQ(load.refused(), 0u) << "there is a new leader before patience runs out";
  expect_nothing_lost(load, 800);
}

TEST_F(RabbitmqClusterFaults, KillOfOneNodeAfterTheOtherLosesNothingThatWasConfirmed) {
  Load load({.producer_url = url(), .worker_url = url(), .pause = milliseconds(50)});
  load.start_producing();
  ASSERT_TRUE(load.await_confirmed(load.confirmed() + 300));
  for (int node = 0; node < server().size(); ++node) ASSERT_NO_FATAL_FAILURE(kill_and_bring_back(load, node));
  expect_nothing_lost(load, 1800);
}

}  // namespace
}  // namespace bide::rabbitmq_test
