// Steps, progress and the results of others, by a worker on the real engine.

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "bide/flow.h"
#include "support/temporary_directory.h"
#include "worker/worker_test_bench.h"

namespace bide::worker {

namespace {

using namespace std::chrono_literals;

class WorkerFlow : public ::testing::Test {
 protected:
  support::TemporaryDirectory directory_;
  Client client_ = Client::open("bide:" + directory_.path() + "/data?durability=none").value();
  Worker worker_{client_, {.concurrency = 2}};
};

TEST_F(WorkerFlow, AStepThatWasDoneIsNotDoneAgainByTheNextAttempt) {
  std::atomic<int> charged = 0;
  std::atomic<int> told = 0;
  worker_.handle("pay", [&](const Job&, Context& context) -> Outcome {
    const auto receipt = context.step("charge", [&] {
      ++charged;
      return std::string("receipt 7");
    });
    EXPECT_EQ(receipt.value(), "receipt 7");
    EXPECT_TRUE(context.step("tell", [&] { ++told; }));
    EXPECT_TRUE(context.step("tell", [&] { ++told; })) << "nor twice in one attempt";
    if (context.attempt() < 3) throw std::runtime_error("the printer is out of paper");
    context.set_result(*receipt);
    return Done{};
  });
  ASSERT_TRUE(worker_.start());
  const JobId id = client_.enqueue("pay", "", {.retry = RetryPolicy::fixed(1ms, 5)}).value();
  const JobInfo info = client_.wait_for(id, 60s).value();
  EXPECT_EQ(info.state, JobState::kDone);
  EXPECT_EQ(info.result, "receipt 7");
  EXPECT_EQ(info.attempts, 3u);
  EXPECT_EQ(charged, 1);
  EXPECT_EQ(told, 1);
}

TEST_F(WorkerFlow, AStepThatThrowsIsTriedAgain) {
  std::atomic<int> tries = 0;
  worker_.handle("pay", [&](const Job&, Context& context) {
    const auto done = context.step("charge", [&]() -> std::string {
      if (++tries == 1) throw std::runtime_error("declined");
      return "paid";
    });
    context.set_result(done.value());
  });
  ASSERT_TRUE(worker_.start());
  const JobId id = client_.enqueue("pay", "", {.retry = RetryPolicy::fixed(1ms, 5)}).value();
  EXPECT_EQ(client_.wait_for(id, 60s).value().result, "paid");
  EXPECT_EQ(tries, 2);
}

TEST_F(WorkerFlow, ProgressIsShownWhileTheJobRuns) {
  Gate reported;
  Gate seen;
  worker_.handle("work", [&](const Job&, Context& context) {
    context.progress(0.4, "page 12");
    reported.open();
    seen.wait();
  });
  ASSERT_TRUE(worker_.start());
  const JobId id = client_.enqueue("work", "").value();
  reported.wait();
  EXPECT_EQ(client_.find(id).value().progress, (Progress{0.4, "page 12"}));
  seen.open();
  EXPECT_EQ(client_.wait_for(id, 60s).value().progress, std::nullopt);
}

TEST_F(WorkerFlow, AJobReadsWhatThoseBeforeItCameTo) {
  worker_.handle("fetch", [](const Job& job, Context& context) { context.set_result("content of " + job.body); });
  worker_.handle("join", [](const Job& job, Context& context) {
    EXPECT_EQ(context.result_of("fetch").error().code, ErrorCode::kInvalidArgument) << "there are two";
    EXPECT_EQ(context.result_of("other").error().code, ErrorCode::kNotFound);
    EXPECT_EQ(context.result_of(job.id).error().code, ErrorCode::kWrongState);
    context.set_result(context.result_of(job.after[0]).value() + ", " + context.result_of(job.after[1]).value());
  });
  worker_.handle("count", [](const Job&, Context& context) {
    context.set_result(std::to_string(context.result_of("join").value().size()));
  });
  Flow flow;
  const JobId a = flow.add("fetch", "a");
  const JobId b = flow.add("fetch", "b");
  const JobId join = flow.add("join", "", {.after = {a, b}});
  const JobId count = flow.add("count", "", {.after = {join}});
  ASSERT_TRUE(flow.start(client_));
  ASSERT_TRUE(worker_.start());
  EXPECT_EQ(client_.wait_for(count, 60s).value().result, "26");
  EXPECT_EQ(client_.find(join).value().result, "content of a, content of b");
}

}  // namespace

}  // namespace bide::worker
