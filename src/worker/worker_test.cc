#include "bide/worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "worker/worker_test_bench.h"

namespace bide::worker {

namespace {

using namespace std::chrono_literals;

std::string mistake(WorkerOptions options) {
  Bench bench(std::move(options));
  bench.worker.handle("a", [] {});
  const Status started = bench.worker.start();
  if (started) return "none";
  EXPECT_EQ(started.error().code, ErrorCode::kInvalidArgument);
  return started.error().message;
}

TEST(Worker, MistakesInTheOptionsAreNamed) {
  EXPECT_EQ(mistake({.concurrency = -1}),
            "concurrency is -1; allowed is 1 to 10000, or 0 for one for each core");
  EXPECT_EQ(mistake({.credit = -5}), "credit is -5; allowed is 1 to 1000000, or 0 for automatic");
  EXPECT_EQ(mistake({.queues = {{"mail", 0}}}), "the weight of queue 'mail' is 0; allowed is 1 to 1000");
  EXPECT_EQ(mistake({.queues = {}}), "a worker needs at least one queue");
  EXPECT_EQ(mistake({.lease = 5ms}), "lease is 5ms; allowed is 1s to 1h");
}

TEST(Worker, AHandlerRegisteredTwiceIsAMistake) {
  Bench bench;
  bench.worker.handle("a", [] {});
  bench.worker.handle("a", [] {});
  const Status started = bench.worker.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "kind 'a' has two handlers");
}

TEST(Worker, RunReportsAMistakeWithItsExitCode) {
  Bench bench({.concurrency = -1});
  EXPECT_EQ(bench.worker.run(), 78);
  EXPECT_EQ(bench.problems.all().size(), 1u);
}

TEST(Worker, AClosedClientIsATypedError) {
  auto broker = std::make_shared<support::FakeBroker>();
  Client client(broker);
  client.close();
  Worker worker(client);
  const Status started = worker.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "the client is closed");
  EXPECT_FALSE(client.enqueue("a", "b"));
}

TEST(Worker, QueuesAreTakenWithTheirWeights) {
  Bench bench({.queues = {{"images", 3}, "mail"}});
  ASSERT_TRUE(bench.worker.start());
  const SubscribeOptions subscribed = bench.broker->subscribed();
  ASSERT_EQ(subscribed.queues.size(), 2u);
  EXPECT_EQ(subscribed.queues[0].name, "images");
  EXPECT_EQ(subscribed.queues[0].weight, 3);
  EXPECT_EQ(subscribed.queues[1].weight, 1);
  EXPECT_EQ(subscribed.lease, 15s);
  EXPECT_EQ(subscribed.worker, "tester");
}

TEST(Worker, TakesOnlyKindsThatItHasHandlersFor) {
  Bench some;
  some.worker.handle("resize", [] {});
  some.worker.handle("order.*", [] {});
  ASSERT_TRUE(some.worker.start());
  EXPECT_EQ(some.broker->subscribed().kinds, (std::vector<std::string>{"order.*", "resize"}));
  Bench all;
  all.worker.handle("resize", [] {});
  all.worker.handle("*", [] {});
  ASSERT_TRUE(all.worker.start());
  EXPECT_TRUE(all.broker->subscribed().kinds.empty());
}

TEST(Worker, NeverRunsMoreHandlersAtOnceThanItsConcurrencyAndReachesIt) {
  Bench bench({.concurrency = 3, .credit = 100});
  std::mutex mutex;
  std::condition_variable changed;
  int running = 0;
  int most = 0;
  bench.worker.handle("a", [&] {
    std::unique_lock lock(mutex);
    most = std::max(most, ++running);
    changed.notify_all();
    changed.wait(lock, [&] { return most == 3; });
    --running;
  });
  bench.broker->give("a", 100);
  ASSERT_TRUE(bench.worker.start());
  bench.broker->wait_for_settled(100);
  EXPECT_EQ(most, 3);
}

TEST(Worker, FetchesNothingAheadBeforeItKnowsHowLongHandlersTake) {
  Bench bench({.concurrency = 2});
  Notes running;
  Gate release;
  bench.worker.handle("a", [&] {
    running.add("a");
    release.wait();
  });
  bench.broker->give("a", 10);
  ASSERT_TRUE(bench.worker.start());
  running.wait_for(2);
  EXPECT_EQ(bench.broker->not_given_out(), 8u);
  release.open();
  bench.broker->wait_for_settled(10);
}

TEST(Worker, GivesBackWhatWaitsLongForAThread) {
  Bench bench({.concurrency = 1, .credit = 2, .lease = 1s});
  Gate release;
  bench.worker.handle("a", [&] { release.wait(); });
  bench.broker->give("a", 2);
  ASSERT_TRUE(bench.worker.start());
  EXPECT_EQ(std::get<Returned>(bench.outcome()).note, "worker tester is busy");
  release.open();
  bench.broker->wait_for_settled(2);
}

}  // namespace
}  // namespace bide::worker
