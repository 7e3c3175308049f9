// What the broker says to outcomes.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "worker/worker_test_bench.h"

namespace bide::worker {

namespace {

using namespace std::chrono_literals;

TEST(WorkerSettle, AHandlerSlotIsFreeBeforeTheBrokerHasConfirmed) {
  Bench bench({.concurrency = 1, .credit = 10});
  Gate release;
  Notes ran;
  bench.broker->on_settle = [&](const Settlement&) {
    release.wait();
    return Status();
  };
  bench.worker.handle("a", [&] { ran.add("a"); });
  bench.broker->give("a", 5);
  ASSERT_TRUE(bench.worker.start());
  ran.wait_for(5);
  EXPECT_TRUE(bench.broker->settled().empty());
  release.open();
  bench.broker->wait_for_settled(5);
}

TEST(WorkerSettle, AnUnconfirmedOutcomeIsSentAgain) {
  Bench bench;
  std::atomic<int> calls = 0;
  bench.broker->on_settle = [&](const Settlement&) -> Status {
    if (++calls < 3) return Error{ErrorCode::kUnavailable, "no answer"};
    return {};
  };
  bench.worker.handle("a", [&](Context& context) {
    context.enqueue("effect", "body").value();
    context.set_result("result");
  });
  ASSERT_TRUE(bench.worker.start());
  bench.broker->give("a");
  const Settlement settlement = bench.broker->wait_for_settled(1)[0];
  bench.worker.stop();
  EXPECT_EQ(std::get<Done>(settlement.outcome).result, "result");
  EXPECT_EQ(settlement.effects.size(), 1u);
  EXPECT_EQ(bench.worker.stats().settle_retries, 2u);
  EXPECT_EQ(bench.problems.all().size(), 1u) << "reported once, not each time";
}

TEST(WorkerSettle, ARefusedOutcomeIsCountedAndNotSentAgain) {
  Bench bench;
  std::atomic<int> calls = 0;
  bench.broker->on_settle = [&](const Settlement& settlement) -> Status {
    if (std::holds_alternative<Done>(settlement.outcome) && ++calls == 1) return Error{ErrorCode::kLeaseLost, "stale"};
    return {};
  };
  bench.worker.handle("a", [] {});
  ASSERT_TRUE(bench.worker.start());
  bench.broker->give("a", 2);
  bench.broker->wait_for_settled(1);
  bench.worker.stop();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(bench.worker.stats().lease_lost, 1u);
  EXPECT_EQ(bench.worker.stats().done, 1u);
}

TEST(WorkerSettle, AnOutcomeThatIsNotValidBecomesAFailureWithTheBrokersWords) {
  Bench bench;
  bench.broker->on_settle = [&](const Settlement& settlement) -> Status {
    if (!settlement.effects.empty()) return Error{ErrorCode::kInvalidArgument, "no such queue here"};
    return {};
  };
  bench.worker.handle("a", [](Context& context) { context.enqueue("effect", "body").value(); });
  ASSERT_TRUE(bench.worker.start());
  bench.broker->give("a");
  EXPECT_EQ(std::get<RetryAt>(bench.outcome()).error, "the broker refused the outcome: no such queue here");
}

TEST(WorkerSettle, JobsHeldNeverExceedTheCredit) {
  Bench bench({.concurrency = 4, .credit = 6});
  bench.worker.handle("a", [] {});
  bench.broker->give("a", 1000);
  ASSERT_TRUE(bench.worker.start());
  bench.broker->wait_for_settled(1000);
  EXPECT_LE(bench.broker->most_unsettled(), 6u);
}

TEST(WorkerSettle, ManyShortJobsAreAllSettledOnce) {
  Bench bench({.concurrency = 4});
  bench.worker.handle("a", [] {});
  bench.broker->give("a", 20'000);
  ASSERT_TRUE(bench.worker.start());
  const auto settled = bench.broker->wait_for_settled(20'000);
  bench.worker.stop();
  EXPECT_EQ(bench.broker->settled().size(), 20'000u);
  EXPECT_EQ(bench.worker.stats().done, 20'000u);
  EXPECT_EQ(bench.worker.stats().started, 20'000u);
}

// Publishes before it acknowledges, and its server takes no messages until the test says so.
class PublishingBroker : public support::FakeBroker {
 public:
  Capabilities capabilities() const override {
    Capabilities can;
    can.atomic_effects = false;
    return can;
  }
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override {
    for (const Settlement& settlement : settlements) {
      if (std::holds_alternative<Done>(settlement.outcome)) continue;
      const std::lock_guard lock(mutex_);
      if (!open_) return kept_.emplace_back(std::move(settlements), std::move(done)), void();
    }
    FakeBroker::settle(std::move(settlements), std::move(done));
  }
  void take_messages() {
    std::unique_lock lock(mutex_);
    open_ = true;
    auto kept = std::exchange(kept_, {});
    lock.unlock();
    for (auto& [settlements, done] : kept) FakeBroker::settle(std::move(settlements), std::move(done));
  }

 private:
  std::mutex mutex_;  // Guards everything below.
  std::vector<std::pair<std::vector<Settlement>, Completion<std::vector<Status>>>> kept_;
  bool open_ = false;
};

TEST(WorkerSettle, OutcomesThatPublishNothingDoNotWaitForThoseThatDo) {
  auto broker = std::make_shared<PublishingBroker>();
  Worker worker(Client(broker), {.concurrency = 2, .credit = 1000, .name = "tester"});
  worker.handle("works", [] {});
  worker.handle("fails", []() -> Outcome { return retry_after(1s, "not now"); });
  for (int i = 0; i < 20; ++i) {
    broker->give("fails", 1);
    broker->give("works", 5);
  }
  ASSERT_TRUE(worker.start());
  for (const Settlement& settlement : broker->wait_for_settled(100)) {
    EXPECT_TRUE(std::holds_alternative<Done>(settlement.outcome));
  }
  EXPECT_EQ(worker.stats().retried, 0u);
  broker->take_messages();
  broker->wait_for_settled(120);
  worker.stop();
  EXPECT_EQ(worker.stats().done, 100u);
  EXPECT_EQ(worker.stats().retried, 20u);
}

}  // namespace
}  // namespace bide::worker
