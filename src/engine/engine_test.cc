// The engine's threads: large calls, a failing disk, sleeping until something is due, commits and completions.

#include "engine/engine.h"

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bide/wait.h"
#include "engine/committer.h"
#include "engine/completion_thread.h"
#include "support/seeded_random.h"
#include "support/simulated_disk.h"
#include "support/virtual_clock.h"

namespace bide::engine {
namespace {

using Answers = std::vector<Result<Enqueued>>;

class EngineTest : public testing::Test {
 protected:
  void open(EngineOptions options) {
    options.disk = &disk_;
    options.clock = &clock_;
    options.random = &random_;
    auto opened = Engine::open(std::move(options));
    ASSERT_TRUE(opened);
    engine_ = std::move(*opened);
  }

  support::SimulatedDisk disk_{1};
  support::VirtualClock clock_;
  support::SeededRandom random_{1};
  std::unique_ptr<Engine> engine_;
};

class LargeCalls : public EngineTest {
 protected:
  LargeCalls() { open({.directory = "/store", .call_bytes = 100'000}); }
  static std::vector<Job> jobs(std::size_t many) {
    return std::vector<Job>(many, Job{.kind = "k", .body = std::string(10'000, 'x')});
  }
};

TEST_F(LargeCalls, OneThatIsTooLargeForABatchIsRefusedAsAWhole) {
  const auto answer = wait<Answers>([&](auto done) { engine_->enqueue(jobs(11), std::move(done)); });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(wait<AuditReport>([&](auto done) { engine_->audit(std::move(done)); })->accepted, 0u);
  EXPECT_TRUE(wait<Answers>([&](auto done) { engine_->enqueue(jobs(4), std::move(done)); }));
}

TEST_F(LargeCalls, ManyAtOnceAreWrittenInSeveralBatches) {
  std::vector<std::future<bool>> answers;
  for (int i = 0; i < 50; ++i) {
    auto answered = std::make_shared<std::promise<bool>>();
    answers.push_back(answered->get_future());
    engine_->enqueue(jobs(4), [answered](const Result<Answers>& answer) { answered->set_value(answer.has_value()); });
  }
  for (auto& answer : answers) EXPECT_TRUE(answer.get());
  const auto report = wait<AuditReport>([&](auto done) { engine_->audit(std::move(done)); });
  EXPECT_TRUE(report->ok());
  EXPECT_EQ(report->live, 200u);
}

class FailingStore : public EngineTest {
 protected:
  FailingStore() {
    open({.directory = "/store", .on_fatal = [this](const Error& error) { fatal_.set_value(error); }});
    engine_->tidy_up();
  }

  ~FailingStore() override { engine_.reset(); }

  Result<Answers> enqueue(std::size_t bytes) {
    return wait<Answers>([&](auto done) {
      engine_->enqueue({Job{.kind = "work", .body = std::string(bytes, 'b')}}, std::move(done));
    });
  }

  // A large one is committed by another thread.
  void expect_unconfirmed(const support::PlannedFault& fault, std::size_t bytes) {
    disk_.plan(fault);
    const auto unknown = enqueue(bytes);
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::kUnconfirmed) << unknown.error().message;
    EXPECT_NE(unknown.error().message.find("/store/journal/"), std::string::npos) << unknown.error().message;
    fatal_.get_future().wait();
    const auto after = enqueue(10);
    ASSERT_FALSE(after);
    EXPECT_EQ(after.error().code, ErrorCode::kUnavailable) << after.error().message;
    EXPECT_EQ(disk_.faults_outstanding(), 0u);
  }

  std::promise<Error> fatal_;
};

TEST_F(FailingStore, AJobWhoseSyncFailedIsUnconfirmedAndTheNextIsNotBegun) {
  expect_unconfirmed({.operation = support::Operation::kSync}, 10);
}

TEST_F(FailingStore, AJobWhoseSyncFailedInAnotherThreadIsUnconfirmed) {
  expect_unconfirmed({.operation = support::Operation::kSync}, 100'000);
}

TEST_F(FailingStore, AWriteThatFindsTheDiskFullAfterAllIsUnconfirmedAndNotRefused) {
  expect_unconfirmed({.operation = support::Operation::kWrite, .fault = support::Fault::kDiskFull}, 10);
}

class SleepingEngine : public EngineTest {
 protected:
  SleepingEngine() { open({.directory = "/store"}); }

  // Its subscriber is told when it is there. The engine is asleep when this returns.
  std::future<void> start_of(Job job) {
    EXPECT_TRUE(wait<Answers>([&](auto done) { engine_->enqueue({job}, std::move(done)); }));
    auto started = std::make_shared<std::promise<void>>();
    auto future = started->get_future();
    subscription_ = *engine_->subscribe({.credit = 1}, [started](const std::vector<Lease>&) { started->set_value(); });
    engine_->wait_until_idle();
    return future;
  }
  static bool is_there(const std::future<void>& future) {
    return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  std::unique_ptr<Subscription> subscription_;
};

// Nothing but the clock wakes it in these tests: whoever waits for a job that is not handed out waits for ever.

TEST_F(SleepingEngine, IsWokenWhenElapsedTimeHasGoneOn) {
  Job job{.kind = "work"};
  job.delay = std::chrono::hours(1);
  const auto started = start_of(std::move(job));
  clock_.advance(std::chrono::hours(1));
  started.wait();
}

TEST_F(SleepingEngine, IsWokenWhenTheWallClockIsSetForward) {
  Job job{.kind = "work"};
  job.due = Time(std::chrono::floor<Milliseconds>(std::chrono::microseconds(clock_.now().wall_us))) + std::chrono::hours(1);
  const auto started = start_of(std::move(job));
  clock_.step_wall(3'600'000);
  started.wait();
}

TEST_F(SleepingEngine, ADelayIsNotOverWhenTheWallClockIsSetForward) {
  Job job{.kind = "work"};
  job.delay = std::chrono::hours(1);
  const auto started = start_of(std::move(job));
  clock_.step_wall(3'600'000);
  engine_->wait_until_idle();
  EXPECT_FALSE(is_there(started));
  clock_.advance(std::chrono::hours(1));
  started.wait();
}

TEST(CommitterTest, IsIdleWhenTheWorkAfterTheCommitIsOver) {
  Committer committer([] {});
  std::promise<void> go;
  std::atomic<bool> over = false;
  committer.start([] { return Status(); },
                  [&] {
                    go.get_future().wait();
                    over = true;
                  });
  EXPECT_TRUE(committer.wait());
  std::thread later([&] { go.set_value(); });
  committer.wait_until_idle();
  EXPECT_TRUE(over);
  later.join();
}

TEST(CompletionThread, RunsEverythingInOrderBeforeItIsGone) {
  std::vector<int> ran;
  {
    CompletionThread thread;
    for (int i = 0; i < 100; ++i) thread.add([&ran, i] { ran.push_back(i); });
  }
  ASSERT_EQ(ran.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ran[static_cast<std::size_t>(i)], i);
}

TEST(CompletionThread, IsNotIdleWhileACompletionRuns) {
  CompletionThread thread;
  EXPECT_TRUE(thread.is_idle());
  std::promise<void> begun;
  std::promise<void> may_end;
  thread.add([&] {
    begun.set_value();
    may_end.get_future().wait();
  });
  begun.get_future().wait();
  EXPECT_FALSE(thread.is_idle());
  may_end.set_value();
  thread.wait_until_idle();
  EXPECT_TRUE(thread.is_idle());
}

}  // namespace
}  // namespace bide::engine
