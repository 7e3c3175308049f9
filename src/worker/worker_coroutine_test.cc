// Handlers that are coroutines.

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bide/client.h"
#include "bide/coroutine.h"
#include "bide/json.h"
#include "bide/worker.h"
#include "support/temporary_directory.h"
#include "worker/worker_test_bench.h"

namespace bide::worker {

struct Wait {
  int ms = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Wait, ms)

namespace {

using namespace std::chrono_literals;

TEST(CoroutineHandlers, AreDoneWhenTheyEndAndFailedWhenTheyThrow) {
  Bench bench;
  bench.worker.handle("good", [](Context& context) -> Task<> { (void)co_await context.sleep(1ms); });
  bench.worker.handle("bad", [](Context& context) -> Task<> {
    (void)co_await context.sleep(1ms);
    throw std::runtime_error("half-way");
  });
  bench.worker.handle("outcome", [](const Job&, Context&) -> Task<Outcome> { co_return dead("no use"); });
  bench.worker.start().value();
  bench.broker->give("good");
  bench.broker->wait_for_settled(1);
  bench.broker->give("bad");
  bench.broker->wait_for_settled(2);
  bench.broker->give("outcome");
  const auto settled = bench.broker->wait_for_settled(3);
  EXPECT_TRUE(std::holds_alternative<Done>(settled[0].outcome));
  ASSERT_TRUE(std::holds_alternative<RetryAt>(settled[1].outcome));
  EXPECT_EQ(std::get<RetryAt>(settled[1].outcome).error, "half-way");
  ASSERT_TRUE(std::holds_alternative<Dead>(settled[2].outcome));
  EXPECT_EQ(std::get<Dead>(settled[2].outcome).error, "no use");
}

TEST(CoroutineHandlers, KeepTheirEffectsAndResultsWhileTheyWait) {
  Bench bench;
  bench.worker.handle("work", [](const std::string& body, Context& context) -> Task<> {
    context.enqueue("next", body).value();
    (void)co_await context.sleep(1ms);
    context.set_result("done with " + body);
  });
  bench.worker.start().value();
  bench.broker->give(Job{.kind = "work", .body = "cat.png"});
  const auto settled = bench.broker->wait_for_settled(1);
  ASSERT_EQ(settled[0].effects.size(), 1u);
  EXPECT_EQ(settled[0].effects[0].body, "cat.png");
  EXPECT_EQ(std::get<Done>(settled[0].outcome).result, "done with cat.png");
}

TEST(CoroutineHandlers, AnswerWithAReply) {
  Bench bench;
  bench.worker.reply("image", [](Context& context) -> Task<Reply> {
    (void)co_await context.sleep(1ms);
    co_return Reply{.body = "a body that is longer than what fits into a string itself", .content_type = "image/png"};
  });
  bench.worker.start().value();
  bench.broker->give("image");
  const Done done = std::get<Done>(bench.broker->wait_for_settled(1)[0].outcome);
  EXPECT_EQ(done.result, "a body that is longer than what fits into a string itself");
  EXPECT_EQ(done.content_type, "image/png");
}

TEST(CoroutineHandlers, TakeTypedBodies) {
  Bench bench;
  bench.worker.reply<Wait>("wait", [](const Wait& wait, Context& context) -> Task<Wait> {
    (void)co_await context.sleep(Milliseconds(wait.ms));
    co_return Wait{wait.ms + 1};
  });
  bench.worker.start().value();
  bench.broker->give(Job{.kind = "wait", .body = R"({"ms":2})"});
  EXPECT_EQ(std::get<Done>(bench.broker->wait_for_settled(1)[0].outcome).result, R"({"ms":3})");
  bench.broker->give(Job{.kind = "wait", .body = "2 ms"});
  EXPECT_TRUE(std::holds_alternative<Dead>(bench.broker->wait_for_settled(2)[1].outcome));
}

// A handler waits until all of them have begun: with threads it would need as many.
TEST(CoroutineHandlers, WaitByTheThousandOnOneThread) {
  constexpr int kHandlers = 3'000;
  Bench bench({.concurrency = 1, .credit = kHandlers});
  std::atomic<int> begun = 0;
  bench.worker.handle("wait", [&](Context& context) -> Task<> {
    ++begun;
    while (begun < kHandlers) {
      if (!co_await context.sleep(1ms)) co_return;
    }
  });
  bench.worker.start().value();
  bench.broker->give("wait", kHandlers);
  bench.broker->wait_for_settled(kHandlers);
  EXPECT_EQ(bench.broker->subscribed().handlers, kHandlers);
  while (bench.worker.stats().running != 0) std::this_thread::yield();
}

TEST(CoroutineHandlers, RunBesideOthersOnTheSameThread) {
  Bench bench({.concurrency = 1, .credit = 10, .grace = 10ms});
  bench.worker.handle("wait", [&](Context& context) -> Task<> { (void)co_await context.sleep(1h); });
  bench.worker.handle("plain", [] {});
  bench.worker.start().value();
  bench.broker->give("wait");
  bench.broker->give("plain");
  bench.broker->wait_for_settled(1);
  while (bench.worker.stats().running != 1) std::this_thread::yield();  // The one that waits.
}

TEST(CoroutineHandlers, AreTimedOutAndHoldNoThreadAfterwards) {
  Bench bench({.concurrency = 1, .credit = 10, .abandoned_threads = 0});
  Gate stopped;
  bench.worker.handle("wait", [&](Context& context) -> Task<> {
    if (!co_await context.sleep(1h)) stopped.open();
  });
  bench.worker.start().value();
  bench.broker->give(Job{.kind = "wait", .time_limit = 20ms});
  const auto settled = bench.broker->wait_for_settled(1);
  ASSERT_TRUE(std::holds_alternative<RetryAt>(settled[0].outcome));
  EXPECT_EQ(std::get<RetryAt>(settled[0].outcome).fault, Fault::kTimedOut);
  stopped.wait();
  EXPECT_EQ(bench.worker.stats().timed_out, 1u);
  EXPECT_EQ(bench.worker.stats().abandoned, 0);
}

TEST(CoroutineHandlers, ThatBlockTheirThreadPastTheLimitHaveItReplaced) {
  Bench bench({.concurrency = 1, .credit = 10});
  Gate leave;
  bench.worker.handle("block", [&](Context&) -> Task<> {
    leave.wait();
    co_return;
  });
  bench.worker.handle("plain", [] {});
  bench.worker.start().value();
  bench.broker->give(Job{.kind = "block", .time_limit = 20ms});
  bench.broker->wait_for_settled(1);
  EXPECT_EQ(bench.worker.stats().abandoned, 1);
  bench.broker->give("plain");
  bench.broker->wait_for_settled(2);
  leave.open();
  while (bench.worker.stats().abandoned != 0) std::this_thread::yield();
}

TEST(CoroutineHandlers, ThatBlockTheirThreadAfterTheyWereTimedOutHaveItReplacedToo) {
  Bench bench({.concurrency = 1, .credit = 10});
  Gate leave;
  bench.worker.handle("block", [&](Context& context) -> Task<> {
    (void)co_await context.sleep(1h);
    leave.wait();
  });
  bench.worker.handle("plain", [] {});
  bench.worker.start().value();
  bench.broker->give(Job{.kind = "block", .time_limit = 20ms});
  bench.broker->wait_for_settled(1);
  bench.broker->give("plain");
  bench.broker->wait_for_settled(2);
  leave.open();
  while (bench.worker.stats().abandoned != 0) std::this_thread::yield();
}

TEST(CoroutineHandlers, MayFinishWhileTheWorkerStops) {
  Bench bench({.concurrency = 1, .credit = 10, .grace = 1h});
  Gate begun;
  bench.worker.handle("wait", [&](Context& context) -> Task<> {
    begun.open();
    while (!context.stopping()) (void)co_await context.sleep(1ms);
    (void)co_await context.sleep(1ms);
  });
  bench.worker.start().value();
  bench.broker->give("wait");
  begun.wait();
  bench.worker.stop();
  ASSERT_EQ(bench.broker->settled().size(), 1u);
  EXPECT_TRUE(std::holds_alternative<Done>(bench.broker->settled()[0].outcome));
}

// It may end by itself, or be destroyed because the worker is gone already: then it is not run any more.
TEST(CoroutineHandlers, AreToldToStopAndGivenBackWhenTheGraceTimeEnds) {
  Gate begun;
  Gate over;
  struct AtEnd {
    Gate& gate;
    ~AtEnd() { gate.open(); }
  };
  Bench bench({.concurrency = 1, .credit = 10, .grace = 200ms});
  bench.worker.handle("wait", [&](Context& context) -> Task<> {
    const AtEnd at_end{over};
    begun.open();
    (void)co_await context.sleep(1h);
    throw std::runtime_error("not finished");  // Not held against it.
  });
  bench.worker.start().value();
  bench.broker->give("wait");
  begun.wait();
  bench.worker.stop();
  over.wait();
  ASSERT_EQ(bench.broker->settled().size(), 1u);
  EXPECT_TRUE(std::holds_alternative<Returned>(bench.broker->settled()[0].outcome));
}

// A coroutine that waits for something else than the worker's stop, which comes when the worker is gone.
TEST(CoroutineHandlers, ThatOutlastTheirWorkerAreDestroyedWhenTheyCouldGoOn) {
  Gate begun;
  Gate destroyed;
  std::atomic<bool> went_on = false;
  struct AtEnd {
    Gate& gate;
    ~AtEnd() { gate.open(); }
  };
  Completion<int> complete;
  {
    Bench bench({.concurrency = 1, .credit = 10, .grace = 0ms});
    bench.worker.handle("wait", [&](Context&) -> Task<> {
      const AtEnd at_end{destroyed};
      (void)co_await Awaitable<int>([&](Completion<int> done) {
        complete = std::move(done);
        begun.open();
      });
      went_on = true;
    });
    bench.worker.handle("plain", [] {});
    bench.worker.start().value();
    bench.broker->give("wait");
    begun.wait();
    // When the only thread has done another, the coroutine is waiting.
    bench.broker->give("plain");
    bench.broker->wait_for_settled(1);
    bench.worker.stop();
    EXPECT_TRUE(std::holds_alternative<Returned>(bench.broker->settled().at(1).outcome));
  }
  complete(1);
  destroyed.wait();
  EXPECT_FALSE(went_on);
}

TEST(CoroutineHandlers, HaveAMiddlewareOfTheirOwn) {
  Bench bench({.concurrency = 1, .credit = 10});
  Notes lines;
  bench.worker.use([](Context&, const Next& next) { return next(); },
                   [&](Context&, const TaskNext& next) -> Task<Outcome> {
                     lines.add("before");
                     Outcome outcome = co_await next();
                     lines.add("after");
                     co_return outcome;
                   });
  bench.worker.use(log_attempts([](std::string_view) {}),
                   log_task_attempts([&](std::string_view line) { lines.add(std::string(line)); }));
  bench.worker.handle("work", [&](Context& context) -> Task<> {
    (void)co_await context.sleep(1ms);
    lines.add("handler");
  });
  bench.worker.start().value();
  bench.broker->give("work");
  bench.broker->wait_for_settled(1);
  const auto all = lines.all();
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0], "before");
  EXPECT_NE(all[1].find("starts"), std::string::npos);
  EXPECT_EQ(all[2], "handler");
  EXPECT_NE(all[3].find("done"), std::string::npos);
  EXPECT_EQ(all[4], "after");
}

TEST(CoroutineHandlers, AreNotLeftOutByAMiddlewareInSilence) {
  Bench bench;
  bench.worker.use([](Context&, const Next& next) { return next(); });
  bench.worker.handle("work", [](Context&) -> Task<> { co_return; });
  const Status started = bench.worker.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kInvalidArgument);
}

// One asks the other, on the same thread: without coroutines this would never end.
TEST(CoroutineHandlers, AskOneAnotherOnOneThread) {
  support::TemporaryDirectory directory;
  Client client = Client::open("bide:" + directory.path() + "/data?durability=none").value();
  Worker worker(client, {.concurrency = 1, .credit = 10});
  worker.reply("inner", [](const std::string& body, Context& context) -> Task<std::string> {
    (void)co_await context.sleep(1ms);
    co_return body + "!";
  });
  worker.reply("outer", [](const std::string& body, Context& context) -> Task<std::string> {
    const RequestOptions options{.timeout = 60s};
    const auto reply = co_await context.request_awaitable<std::string>("inner", body, options);
    co_return reply.value() + "!";
  });
  worker.start().value();
  EXPECT_EQ(client.request<std::string>("outer", "hello", {.timeout = 60s}).get().value(), "hello!!");
}

}  // namespace
}  // namespace bide::worker
