// One node, harmed under load: killed, cut off byte by byte, out of memory, robbed of a queue. What was confirmed is not
// lost, nothing starts early; what runs twice is counted and printed. A run in which the fault did not hit is invalid.

#include <gtest/gtest.h>

#include "rabbitmq/load.h"
#include "rabbitmq/rabbitmq_fixture.h"
#include "rabbitmq/verdict.h"
#include "support/seeded_random.h"
#include "support/tcp_proxy.h"

namespace bide::rabbitmq_test {
namespace {

using std::chrono::milliseconds;
using support::TcpProxy;

class RabbitmqFaults : public RabbitmqTest<1> {};

TEST_F(RabbitmqFaults, KillOfTheOnlyNodeLosesNothingThatWasConfirmed) {
  Load load({.producer_url = url(), .worker_url = url()});
  load.start_producing();
  ASSERT_TRUE(load.await_confirmed(load.confirmed() + 500));
  EXPECT_GT(load.unfinished(), 0u) << "invalid: the kill hits nothing";
  server().kill();
  load.note_outage("node");
  const std::uint64_t before = load.confirmed();
  server().start();
  EXPECT_TRUE(load.await_confirmed(before + 500)) << "publishing does not go on";
  expect_nothing_lost(load, 1000);
}

TEST_F(RabbitmqFaults, ConnectionsCutAtRandomBytesLoseNothingThatWasConfirmed) {
  constexpr std::uint64_t kCuts = 20;
  TcpProxy to_producer(server().port()), to_worker(server().port());
  Load load({.producer_url = url(to_producer.port()), .worker_url = url(to_worker.port())});
  load.start_producing();
  support::SeededRandom random(7);
  for (std::uint64_t cut = 0; cut < kCuts; ++cut) {
    TcpProxy& proxy = cut % 2 == 0 ? to_producer : to_worker;
    const std::uint64_t cuts = proxy.cuts(), confirmed = load.confirmed();
    const auto direction = random.chance(0.5) ? TcpProxy::Direction::kToServer : TcpProxy::Direction::kToClient;
    proxy.cut_after(direction, random.next_below(20'000));
    ASSERT_TRUE(eventually([&] { return proxy.cuts() > cuts; })) << "invalid: the cut was not reached";
    load.note_outage("connection");
    ASSERT_TRUE(load.await_confirmed(confirmed + 50)) << "publishing does not go on";
  }
  EXPECT_GE(to_producer.cuts() + to_worker.cuts(), kCuts);
  expect_nothing_lost(load, 1000);
}

TEST_F(RabbitmqFaults, MemoryAlarmBlocksPublishingAndNothingElse) {
  // Slow enough for a backlog, so that there is something to settle while nothing comes in.
  Load load({.producer_url = url(), .worker_url = url(), .pause = milliseconds(5), .workers = 2,
             .handler_time = milliseconds(20)});
  load.start_producing();
  ASSERT_TRUE(load.await_confirmed(load.confirmed() + 1000));
  EXPECT_EQ(load.producer().pressure().level, Pressure::Level::kOk);
  server().set_memory_alarm(true);
  EXPECT_TRUE(eventually([&] { return load.producer().pressure().level == Pressure::Level::kBlocked; }))
      << "pressure does not say that publishing is blocked";
  EXPECT_NE(load.producer().pressure().reason, "");
  const std::uint64_t confirmed = load.confirmed(), done = load.done();
  EXPECT_GT(load.unfinished(), 100u) << "invalid: no backlog";
  EXPECT_TRUE(load.await_done(done + 50)) << "workers do not go on settling";
  EXPECT_LE(load.confirmed(), confirmed + 100) << "invalid: publishing was not blocked";
  server().set_memory_alarm(false);
  EXPECT_TRUE(load.await_confirmed(confirmed + 500)) << "publishing does not go on";
  EXPECT_TRUE(eventually([&] { return load.producer().pressure().level == Pressure::Level::kOk; }));
  expect_nothing_lost(load, 1500);
}

TEST_F(RabbitmqFaults, QueueDeletedUnderTheWorkerIsMadeAgain) {
  constexpr int kWaiting = 100;
  Load load({.producer_url = url(), .worker_url = url()});
  // What lies in the queue goes with it, that is what deleting means: so only those that wait elsewhere are there.
  load.enqueue_delayed(kWaiting, milliseconds(10'000));
  EXPECT_EQ(load.unfinished(), static_cast<std::uint64_t>(kWaiting)) << "invalid: nobody is on the way to the queue";
  server().delete_queue(queue_name());
  load.note_outage("queue");
  load.start_producing();
  EXPECT_TRUE(load.await_confirmed(load.confirmed() + 500)) << "publishing does not go on";
  expect_nothing_lost(load, 1000);
}

// The other runs would prove nothing if a loss could go unseen.
TEST_F(RabbitmqFaults, LossIsSeenWhenAQueueIsDeletedWithWhatIsInIt) {
  Load load({.producer_url = url(), .worker_url = url(), .workers = 1, .handler_time = milliseconds(50), .credit = 1,
             .warm_up = false});
  load.start_producing();
  ASSERT_TRUE(load.await_confirmed(load.confirmed() + 200));
  load.stop_producing();
  server().delete_queue(queue_name());
  EXPECT_FALSE(load.drain(std::chrono::seconds(10)));
  EXPECT_GT(load.examine().violations.at("lost"), 50u);
}

}  // namespace
}  // namespace bide::rabbitmq_test
