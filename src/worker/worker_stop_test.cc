// Stopping, in three phases.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "worker/worker_test_bench.h"

namespace bide::worker {

namespace {

using namespace std::chrono_literals;

TEST(WorkerStop, UnderLoadTheRestIsReturnedUncharged) {
  Bench bench({.concurrency = 2, .credit = 100});
  Notes running;
  Gate release;
  bench.worker.handle("a", [&](Context& context) {
    running.add("a");
    release.wait();
    EXPECT_TRUE(context.stopping());
  });
  bench.broker->give("a", 100);
  ASSERT_TRUE(bench.worker.start());
  running.wait_for(2);
  auto stopped = std::async([&] { bench.worker.stop(); });
  bench.broker->wait_for_settled(98);
  release.open();
  stopped.wait();
  int done = 0;
  int returned = 0;
  for (const Settlement& settlement : bench.broker->settled()) {
    done += std::holds_alternative<Done>(settlement.outcome);
    returned += std::holds_alternative<Returned>(settlement.outcome);
  }
  EXPECT_EQ(done, 2);
  EXPECT_EQ(returned, 98);
  EXPECT_FALSE(bench.broker->has_subscriber());
}

TEST(WorkerStop, AHandlerThatDoesNotFinishInTimeIsReturnedUncharged) {
  const auto never = std::make_shared<Gate>();  // Its thread may end after the test.
  Notes running;
  {
    Bench bench({.concurrency = 1, .grace = 50ms});
    bench.worker.handle("stuck", [&running, never] {
      running.add("stuck");
      never->wait();
    });
    bench.broker->give("stuck");
    ASSERT_TRUE(bench.worker.start());
    running.wait_for(1);
    bench.worker.stop();
    ASSERT_EQ(bench.broker->settled().size(), 1u);
    const Outcome outcome = bench.broker->settled()[0].outcome;
    EXPECT_EQ(std::get<Returned>(outcome).note, "worker tester stopped before it was done");
  }
  never->open();
}

TEST(WorkerStop, AHandlerThatThrowsBecauseItWasAskedToStopIsReturnedUncharged) {
  Bench bench({.concurrency = 1, .grace = 1h});
  Notes running;
  bench.worker.handle("polite", [&](Context& context) {
    Gate stopped;
    std::stop_callback callback(context.stop_token(), [&] { stopped.open(); });
    running.add("polite");
    stopped.wait();
    throw std::runtime_error("interrupted");
  });
  bench.broker->give("polite");
  ASSERT_TRUE(bench.worker.start());
  running.wait_for(1);
  bench.worker.hurry();
  bench.worker.stop();
  EXPECT_EQ(std::get<Returned>(bench.outcome()).note, "worker tester stopped: interrupted");
}

TEST(WorkerStop, HurryCutsTheGraceTimeShort) {
  Bench bench({.concurrency = 1, .grace = 1h});
  Notes running;
  bench.worker.handle("polite", [&](Context& context) {
    Gate stopped;
    std::stop_callback callback(context.stop_token(), [&] { stopped.open(); });
    running.add("polite");
    stopped.wait();
  });
  bench.broker->give("polite");
  ASSERT_TRUE(bench.worker.start());
  running.wait_for(1);
  auto stopped = std::async([&] { bench.worker.stop(); });
  bench.worker.hurry();
  stopped.wait();
  EXPECT_TRUE(std::holds_alternative<Done>(bench.outcome()));
}

TEST(WorkerStop, RunEndsWithZeroOnSigterm) {
  Bench bench({.concurrency = 1});
  bench.worker.handle("a", [] { raise(SIGTERM); });
  bench.broker->give("a");
  EXPECT_EQ(bench.worker.run(), 0);
  EXPECT_TRUE(std::holds_alternative<Done>(bench.outcome()));
}

TEST(WorkerStop, ASecondSignalHurries) {
  Bench bench({.concurrency = 1, .grace = 1h});
  bench.worker.handle("polite", [&](Context& context) {
    Gate stopped;
    std::stop_callback callback(context.stop_token(), [&] { stopped.open(); });
    raise(SIGTERM);
    raise(SIGINT);
    stopped.wait();
  });
  bench.broker->give("polite");
  EXPECT_EQ(bench.worker.run(), 0);
}

TEST(WorkerStop, RunEndsWhenAnotherThreadStopsTheWorker) {
  Bench bench({.concurrency = 1});
  Notes running;
  bench.worker.handle("a", [&] { running.add("a"); });
  bench.broker->give("a");
  auto code = std::async([&] { return bench.worker.run(); });
  running.wait_for(1);
  bench.worker.stop();
  EXPECT_EQ(code.get(), 0);
}

TEST(WorkerStop, AWorkerThatWasStoppedCanBeStartedAgain) {
  Bench bench({.concurrency = 1});
  bench.worker.handle("a", [] {});
  for (std::size_t round = 1; round <= 3; ++round) {
    ASSERT_TRUE(bench.worker.start());
    bench.broker->give("a");
    bench.broker->wait_for_settled(round);
    bench.worker.stop();
  }
}

TEST(WorkerStop, TheDestructorStops) {
  auto broker = std::make_shared<support::FakeBroker>();
  broker->give("a", 10);
  {
    Worker worker(Client{broker}, {.concurrency = 1});
    worker.handle("a", [] {});
    ASSERT_TRUE(worker.start());
  }
  EXPECT_FALSE(broker->has_subscriber());
}

TEST(WorkerStop, ABrokerThatRefusesTheWorkerForGoodEndsItWithOneLineAndItsExitCode) {
  Bench bench({.concurrency = 1, .grace = 60s});
  bench.broker->on_settle = [](const Settlement&) { return Error{ErrorCode::kPermissionDenied, "revoked"}; };
  Notes running;
  bench.worker.handle("a", [&](Context& context) {
    running.add("a");
    Gate stopped;
    const std::stop_callback asked(context.stop_token(), [&] { stopped.open(); });
    stopped.wait();
  });
  bench.broker->give("a");
  auto exit_code = std::async([&] { return bench.worker.run(); });
  running.wait_for(1);
  bench.broker->subscribed().on_failed(Error{ErrorCode::kPermissionDenied, "the token was revoked"});
  EXPECT_EQ(exit_code.get(), 77);
  const std::vector<std::string> lines = bench.problems.all();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "the token was revoked"), 1);
  EXPECT_FALSE(bench.broker->has_subscriber());
}

TEST(WorkerStop, AWorkerInTheBackgroundThatIsRefusedSaysSoAndCanBeStopped) {
  Bench bench;
  bench.worker.handle("a", [] {});
  ASSERT_TRUE(bench.worker.start());
  bench.broker->subscribed().on_failed(Error{ErrorCode::kPermissionDenied, "the token was revoked"});
  EXPECT_EQ(bench.problems.wait_for(1)[0], "the token was revoked");
  bench.worker.stop();
  bench.broker->give("a");
  ASSERT_TRUE(bench.worker.start()) << "with another token it may work";
  bench.broker->wait_for_settled(1);
}

}  // namespace
}  // namespace bide::worker
