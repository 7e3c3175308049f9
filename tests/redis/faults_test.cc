// A server with appendfsync always, harmed under load: killed, paused, cut off byte by byte. Nothing that was confirmed is
// lost, nothing starts early or after it was settled. A run in which the fault did not hit is invalid.

#include <cstdio>
#include <string>

#include "crash/read_back.h"
#include "rabbitmq/load.h"
#include "redis/redis_fixture.h"
#include "support/redis_server.h"
#include "support/seeded_random.h"
#include "support/tcp_proxy.h"

namespace bide::redis_test {
namespace {

using rabbitmq_test::Load;
using support::RedisServer;
using support::TcpProxy;

class RedisFaults : public RedisTest {
 protected:
  static std::string url(std::uint16_t port) { return "redis://127.0.0.1:" + std::to_string(port) + "?patience=3s"; }

  static void expect_nothing_wrong(Load& load, std::uint64_t least_confirmed) {
    load.stop_producing();
    EXPECT_TRUE(load.drain()) << load.unfinished() << " confirmed jobs have not come to an end";
    // An outcome whose answer was lost may not have been written: then the job runs again when its lease is over.
    EXPECT_TRUE(eventually([&] { return crash::count_unfinished(load.inspector()) == 0; }));
    const crash::Findings findings = load.examine();
    EXPECT_GE(findings.confirmed, least_confirmed) << "invalid: too little was confirmed for this to prove anything";
    for (const auto& [violation, count] : findings.violations) EXPECT_EQ(count, 0u) << violation;
    EXPECT_EQ(load.forgotten(), 0u) << "handed out again by the process that had settled them";
    std::printf("%s", findings.report().c_str());
    std::fflush(stdout);
  }
};

TEST_F(RedisFaults, KillOfTheServerLosesNothingThatWasConfirmed) {
  constexpr int kKills = 5;
  RedisServer server;
  Load load({.producer_url = url(server.port()), .worker_url = url(server.port())});
  load.start_producing();
  for (int kill = 0; kill < kKills; ++kill) {
    ASSERT_TRUE(load.await_confirmed(load.confirmed() + 200));
    EXPECT_GT(load.unfinished(), 0u) << "invalid: the kill hits nothing";
    server.kill();
    load.note_outage("server");
    server.start();
  }
  ASSERT_TRUE(load.await_confirmed(load.confirmed() + 200)) << "enqueuing does not go on";
  expect_nothing_wrong(load, kKills * 200);
}

TEST_F(RedisFaults, ConnectionsCutAtRandomBytesLoseNothingThatWasConfirmed) {
  constexpr std::uint64_t kCuts = 30;
  RedisServer server;
  TcpProxy to_producer(server.port()), to_worker(server.port());
  Load load({.producer_url = url(to_producer.port()), .worker_url = url(to_worker.port())});
  load.start_producing();
  support::SeededRandom random(7);
  for (std::uint64_t cut = 0; cut < kCuts; ++cut) {
    TcpProxy& proxy = cut % 2 == 0 ? to_producer : to_worker;
    const std::uint64_t cuts = proxy.cuts(), confirmed = load.confirmed();
    const auto direction = random.chance(0.5) ? TcpProxy::Direction::kToServer : TcpProxy::Direction::kToClient;
    proxy.cut_after(direction, random.next_below(10'000));
    ASSERT_TRUE(eventually([&] { return proxy.cuts() > cuts; })) << "invalid: the cut was not reached";
    load.note_outage("connection");
    ASSERT_TRUE(load.await_confirmed(confirmed + 50)) << "enqueuing does not go on";
  }
  EXPECT_GE(to_producer.cuts() + to_worker.cuts(), kCuts);
  expect_nothing_wrong(load, 1000);
}

TEST_F(RedisFaults, ServerThatStandsStillForAWhileLosesNothing) {
  RedisServer server;
  Load load({.producer_url = url(server.port()), .worker_url = url(server.port())});
  load.start_producing();
  ASSERT_TRUE(load.await_confirmed(load.confirmed() + 200));
  server.pause();
  load.note_outage("server");
  std::this_thread::sleep_for(std::chrono::seconds(5));  // Longer than anybody waits for an answer.
  server.resume();
  ASSERT_TRUE(load.await_confirmed(load.confirmed() + 200)) << "enqueuing does not go on";
  expect_nothing_wrong(load, 400);
}

// The other runs would prove nothing if a loss could go unseen.
TEST_F(RedisFaults, LossIsSeenWhenTheServerForgets) {
  RedisServer server;
  Load load({.producer_url = url(server.port()), .worker_url = url(server.port()), .workers = 1, .handler_time = Milliseconds(50),
             .credit = 1});
  load.start_producing();
  ASSERT_TRUE(load.await_confirmed(load.confirmed() + 200));
  load.stop_producing();
  server.ask({"FLUSHALL"});
  EXPECT_FALSE(load.drain(std::chrono::seconds(5)));
  EXPECT_GT(load.examine().violations.at("lost"), 50u);
}

}  // namespace
}  // namespace bide::redis_test
