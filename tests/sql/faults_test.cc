// A database server harmed under load: killed, stopped, standing still, cut off byte by byte. Nothing that was confirmed is lost,
// nothing starts early or after it was settled. A run in which the fault did not hit is invalid.
//
// BIDE_SQL_KILLS=100 for as many kills as one likes.

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "bide/wait.h"
#include "brokers/open_broker.h"
#include "rabbitmq/load.h"
#include "sql/sql_fixture.h"
#include "support/seeded_random.h"
#include "support/tcp_proxy.h"

namespace bide::sql_test {
namespace {

using rabbitmq_test::Load;
using support::TcpProxy;

int kills() {
  const char* const text = std::getenv("BIDE_SQL_KILLS");
  return text != nullptr ? std::atoi(text) : 3;
}

class SqlFaults : public SqlTest {
 protected:
  static void expect_nothing_wrong(Load& load, std::uint64_t least_confirmed) {
    load.stop_producing();
    EXPECT_TRUE(load.drain()) << load.unfinished() << " confirmed jobs have not come to an end";
    const crash::Findings findings = load.examine();
    EXPECT_GE(findings.confirmed, least_confirmed) << "invalid: too little was confirmed for this to prove anything";
    for (const auto& [violation, count] : findings.violations) EXPECT_EQ(count, 0u) << violation;
    EXPECT_EQ(load.forgotten(), 0u) << "handed out again by the process that had settled them";
    std::printf("%s", findings.report().c_str());
    std::fflush(stdout);
  }
};

TEST_P(SqlFaults, KillOfTheServerLosesNothingThatWasConfirmed) {
  Load load({.producer_url = server().url(), .worker_url = server().url()});
  load.start_producing();
  for (int kill = 0; kill < kills(); ++kill) {
    ASSERT_TRUE(load.await_confirmed(load.confirmed() + 100)) << "enqueuing does not go on";
    EXPECT_GT(load.unfinished(), 0u) << "invalid: the kill hits nothing";
    server().kill();
    load.note_outage("server");
    server().start();
  }
  ASSERT_TRUE(load.await_confirmed(load.confirmed() + 100)) << "enqueuing does not go on";
  expect_nothing_wrong(load, static_cast<std::uint64_t>(kills()) * 100);
}

TEST_P(SqlFaults, ConnectionsCutAtRandomBytesLoseNothingThatWasConfirmed) {
  const auto all_cuts = static_cast<std::uint64_t>(kills()) * 6;
  TcpProxy to_producer(server().port()), to_worker(server().port());
  Load load({.producer_url = server().url_at(to_producer.port()), .worker_url = server().url_at(to_worker.port())});
  load.start_producing();
  support::SeededRandom random(7);
  for (std::uint64_t cut = 0; cut < all_cuts; ++cut) {
    TcpProxy& proxy = cut % 2 == 0 ? to_producer : to_worker;
    const std::uint64_t cuts = proxy.cuts(), confirmed = load.confirmed();
    const auto direction = random.chance(0.5) ? TcpProxy::Direction::kToServer : TcpProxy::Direction::kToClient;
    proxy.cut_after(direction, random.next_below(20'000));
    ASSERT_TRUE(eventually([&] { return proxy.cuts() > cuts; })) << "invalid: the cut was not reached";
    load.note_outage("connection");
    ASSERT_TRUE(load.await_confirmed(confirmed + 20)) << "enqueuing does not go on";
  }
  EXPECT_GE(to_producer.cuts() + to_worker.cuts(), all_cuts);
  expect_nothing_wrong(load, all_cuts * 20);
}

TEST_P(SqlFaults, ServerThatStandsStillForAWhileLosesNothing) {
  Load load({.producer_url = server().url(), .worker_url = server().url()});
  load.start_producing();
  ASSERT_TRUE(load.await_confirmed(load.confirmed() + 200));
  server().pause();
  load.note_outage("server");
  std::this_thread::sleep_for(std::chrono::seconds(2));
  server().resume();
  ASSERT_TRUE(load.await_confirmed(load.confirmed() + 200)) << "enqueuing does not go on";
  expect_nothing_wrong(load, 400);
}

TEST_P(SqlFaults, AnIdleWorkerIsWokenByWhatAnotherProcessEnqueues) {
  auto working = brokers::open_broker(server().url());
  auto producing = brokers::open_broker(server().url());
  ASSERT_TRUE(working && producing);
  std::mutex mutex;
  std::vector<LeaseRef> given;
  const auto subscription = working->broker->subscribe({.queues = {{"idle", 1}}}, [&](const std::vector<Lease>& leases) {
    const std::lock_guard lock(mutex);
    for (const Lease& lease : leases) given.push_back({lease.job.id, lease.token});
  });
  ASSERT_TRUE(subscription);
  for (const Milliseconds delay : {Milliseconds(0), Milliseconds(0), Milliseconds(30), Milliseconds(0)}) {
    Job job;
    job.kind = "wake";
    job.queue = "idle";
    job.delay = delay;
    const auto enqueued = wait<std::vector<Result<Enqueued>>>([&](auto done) { producing->broker->enqueue({job}, std::move(done)); });
    ASSERT_TRUE(enqueued && enqueued->front());
    ASSERT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex);
      return given.size() == 1;
    })) << "nobody told the worker";
    const auto settled = wait<std::vector<Status>>([&](auto done) {
      working->broker->settle({Settlement{.lease = given.front()}}, std::move(done));
    });
    ASSERT_TRUE(settled && settled->front());
    given.clear();  // The next one is enqueued when the worker has nothing and waits to be told.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

TEST_P(SqlFaults, AnEnqueueAfterTheServerStartedAgainIsNotInDoubt) {
  auto opened = brokers::open_broker(server().url());
  ASSERT_TRUE(opened) << opened.error().message;
  for (int restart = 0; restart < 3; ++restart) {
    server().kill();
    server().start();
    Job job;
    job.kind = "work";
    const auto enqueued = wait<std::vector<Result<Enqueued>>>([&](auto done) { opened->broker->enqueue({job}, std::move(done)); });
    ASSERT_TRUE(enqueued) << enqueued.error().message;
    ASSERT_TRUE(enqueued->front()) << enqueued->front().error().message;
  }
}

// The other runs would prove nothing if a loss could go unseen.
TEST_P(SqlFaults, LossIsSeenWhenTheServerForgets) {
  Load load({.producer_url = server().url(), .worker_url = server().url(), .workers = 1, .handler_time = Milliseconds(50), .credit = 1});
  load.start_producing();
  ASSERT_TRUE(load.await_confirmed(load.confirmed() + 200));
  load.stop_producing();
  server().ask(is_postgres() ? "DELETE FROM bide.jobs WHERE state < 2" : "DELETE FROM bide.bide_jobs WHERE state < 2");
  EXPECT_FALSE(load.drain(std::chrono::seconds(3)));
  EXPECT_GT(load.examine().violations.at("lost"), 50u);
}

INSTANTIATE_TEST_SUITE_P(Sql, SqlFaults, every_database(), name_of);

}  // namespace
}  // namespace bide::sql_test
