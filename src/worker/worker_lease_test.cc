// Keeping leases alive, and losing them. These tests wait for a third of a lease of one second.

#include <gtest/gtest.h>

#include "worker/worker_test_bench.h"

namespace bide::worker {

namespace {

using namespace std::chrono_literals;

// Its extensions are not answered: the handler waits until it hears that the lease is lost.
void expect_lost_without_an_answer(Bench& bench, Lease lease) {
  bench.broker->on_extend = [](const LeaseRef&) { return Error{ErrorCode::kUnavailable, "gone"}; };
  bench.worker.handle("a", [&](Context& context) {
    Gate stopped;
    std::stop_callback callback(context.stop_token(), [&] { stopped.open(); });
    stopped.wait();
    EXPECT_TRUE(context.lease_lost());
  });
  ASSERT_TRUE(bench.worker.start());
  bench.broker->give(std::move(lease));
  bench.outcome();
}

TEST(WorkerLease, ARunningJobIsKeptAliveAndSettledInTheEnd) {
  Bench bench({.concurrency = 1, .lease = 1s});
  Gate release;
  bench.worker.handle("long", [&] { release.wait(); });
  ASSERT_TRUE(bench.worker.start());
  Lease lease = support::FakeBroker::lease_of({.kind = "long"});
  const std::uint64_t token = lease.token;
  bench.broker->give(std::move(lease));
  bench.broker->wait_for_extensions(token, 4);
  release.open();
  EXPECT_TRUE(std::holds_alternative<Done>(bench.outcome()));
}

TEST(WorkerLease, KeepAliveAsksAtOnce) {
  Bench bench({.concurrency = 1, .lease = 1h});
  Lease lease = support::FakeBroker::lease_of({.kind = "a"});
  const std::uint64_t token = lease.token;
  bench.worker.handle("a", [&](Context& context) {
    EXPECT_TRUE(context.keep_alive());
    bench.broker->wait_for_extensions(token, 1);
  });
  ASSERT_TRUE(bench.worker.start());
  bench.broker->give(std::move(lease));
  bench.outcome();
}

TEST(WorkerLease, ALostLeaseSignalsStop) {
  Bench bench({.concurrency = 1, .lease = 1h});
  bench.broker->on_extend = [](const LeaseRef&) { return Extended{.lost = true}; };
  bench.broker->on_settle = [](const Settlement&) { return Error{ErrorCode::kLeaseLost, "stale"}; };
  Gate ended;
  bench.worker.handle("a", [&](Context& context) {
    Gate stopped;
    std::stop_callback callback(context.stop_token(), [&] { stopped.open(); });
    context.keep_alive();
    stopped.wait();
    EXPECT_TRUE(context.lease_lost());
    EXPECT_FALSE(context.keep_alive());
    ended.open();
  });
  ASSERT_TRUE(bench.worker.start());
  bench.broker->give("a");
  ended.wait();
  bench.worker.stop();
  EXPECT_EQ(bench.worker.stats().lease_lost, 1u);
  EXPECT_EQ(bench.worker.stats().done, 0u);
}

TEST(WorkerLease, ACancelledJobSignalsStop) {
  Bench bench({.concurrency = 1, .lease = 1h});
  bench.broker->on_extend = [](const LeaseRef&) { return Extended{.cancel_requested = true}; };
  bench.worker.handle("a", [&](Context& context) {
    Gate stopped;
    std::stop_callback callback(context.stop_token(), [&] { stopped.open(); });
    context.keep_alive();
    stopped.wait();
    EXPECT_TRUE(context.cancel_requested());
    EXPECT_FALSE(context.lease_lost());
  });
  ASSERT_TRUE(bench.worker.start());
  bench.broker->give("a");
  bench.outcome();
}

TEST(WorkerLease, WithoutAnAnswerTheLeaseIsTakenForLostWhenItsTimeIsOver) {
  Bench bench({.concurrency = 1, .lease = 1s});
  expect_lost_without_an_answer(bench, support::FakeBroker::lease_of({.kind = "a"}));
}

TEST(WorkerLease, TheTimeOfALeaseRunsFromWhenItWasGivenNotFromItsArrival) {
  Bench bench({.concurrency = 1, .lease = 1h});
  Lease lease = support::FakeBroker::lease_of({.kind = "a"});
  lease.age = 1h;
  expect_lost_without_an_answer(bench, std::move(lease));
}

}  // namespace
}  // namespace bide::worker
