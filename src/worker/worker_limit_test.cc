// Handlers past their time limit. These tests wait for real time to pass, as little of it as can be. What abandoned
// threads touch is shared with them: they may end after the test.

#include <gtest/gtest.h>

#include <memory>

#include "worker/worker_test_bench.h"

namespace bide::worker {

namespace {

using namespace std::chrono_literals;

Job limited(const std::string& kind, Milliseconds limit = 20ms) { return {.kind = kind, .time_limit = limit}; }

TEST(WorkerLimit, AHandlerThatNeverReturnsIsTimedOutAndItsThreadReplaced) {
  const auto never = std::make_shared<Gate>();
  {
    Bench bench({.concurrency = 1, .grace = 100ms});
    bench.worker.handle("stuck", [never] { never->wait(); });
    bench.worker.handle("next", [] {});
    ASSERT_TRUE(bench.worker.start());
    bench.broker->give(limited("stuck"));
    const auto timed_out = std::get<RetryAt>(bench.outcome());
    EXPECT_EQ(timed_out.fault, Fault::kTimedOut);
    EXPECT_EQ(timed_out.error, "ran longer than its time limit of 20ms");
    bench.broker->give("next");
    EXPECT_TRUE(std::holds_alternative<Done>(bench.broker->wait_for_settled(2)[1].outcome));
    EXPECT_EQ(bench.worker.stats().abandoned, 1);
    EXPECT_EQ(bench.worker.stats().timed_out, 1u);
  }
  never->open();  // After the worker is gone: the abandoned thread must find everything it needs.
}

TEST(WorkerLimit, AHandlerPastItsLimitIsToldToStopAndItsLateOutcomeIsDropped) {
  Bench bench({.concurrency = 1});
  const auto returned = std::make_shared<Gate>();
  bench.worker.handle("slow", [returned](Context& context) {
    Gate stopped;
    std::stop_callback callback(context.stop_token(), [&] { stopped.open(); });
    stopped.wait();
    context.enqueue("effect", "of a late attempt").value();
    returned->open();
  });
  bench.worker.handle("next", [] {});
  ASSERT_TRUE(bench.worker.start());
  bench.broker->give(limited("slow"));
  returned->wait();
  bench.broker->give("next");
  const auto settled = bench.broker->wait_for_settled(2);
  bench.worker.stop();
  EXPECT_EQ(std::get<RetryAt>(settled[0].outcome).fault, Fault::kTimedOut);
  EXPECT_TRUE(settled[0].effects.empty());
  EXPECT_EQ(bench.broker->settled().size(), 2u);
}

TEST(WorkerLimit, BeyondTheNumberOfAbandonedThreadsNoMoreJobsAreTakenUntilOneComesBack) {
  Bench bench({.concurrency = 2, .abandoned_threads = 1});
  const auto never = std::make_shared<Gate>();
  bench.worker.handle("stuck", [never] { never->wait(); });
  bench.worker.handle("next", [] {});
  ASSERT_TRUE(bench.worker.start());
  // Long enough that both have begun before it is over, also where the machine is busy.
  bench.broker->give(limited("stuck", 500ms));
  bench.broker->give(limited("stuck", 500ms));
  bench.broker->wait_for_settled(2);
  EXPECT_NE(bench.problems.wait_for(1)[0].find("2 handlers ran past their time limit"), std::string::npos);
  EXPECT_EQ(bench.broker->credit(), 0);
  bench.broker->give("next");
  EXPECT_EQ(bench.broker->not_given_out(), 1u);
  never->open();
  EXPECT_TRUE(std::holds_alternative<Done>(bench.broker->wait_for_settled(3)[2].outcome));
}

TEST(WorkerLimit, ATimedOutAttemptIsToldToTheHooks) {
  Bench bench({.concurrency = 1});
  Notes deaths;
  const auto release = std::make_shared<Gate>();
  bench.worker.on_dead([&](const Finished& finished) { deaths.add(finished.job.kind); });
  bench.worker.handle("stuck", [release] { release->wait(); });
  ASSERT_TRUE(bench.worker.start());
  Job job = limited("stuck");
  job.retry = RetryPolicy::none();
  bench.broker->give(job);
  EXPECT_EQ(std::get<Dead>(bench.outcome()).fault, Fault::kTimedOut);
  EXPECT_EQ(deaths.all(), (std::vector<std::string>{"stuck"}));
  release->open();
}

}  // namespace
}  // namespace bide::worker
