// The engine's threads: large calls, a failing disk, sleeping until something is due, commits and completions.

#include "engine/engine.h"

#include <atomic>
#include <chrono>
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

// Knows whether the directory is locked while a segment is deleted by another thread than the engine's, which takes a while.
class SlowRemovals final : public platform::Disk {
 public:
  Result<std::unique_ptr<platform::File>> open(const std::string& path, platform::OpenMode mode) override {
    return disk_.open(path, mode);
  }
  Result<std::vector<std::string>> list(const std::string& directory) override { return disk_.list(directory); }
  Result<bool> exists(const std::string& path) override { return disk_.exists(path); }
  Status rename(const std::string& from, const std::string& to) override {
    engine_thread_ = std::this_thread::get_id();  // Snapshots are made by no other.
    return disk_.rename(from, to);
  }
  Status remove(const std::string& path) override {
    if (path.find("/journal/") != std::string::npos && std::this_thread::get_id() != engine_thread_.load()) {
      is_removing = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (!*locked_) removed_unlocked = true;
    }
    return disk_.remove(path);
  }
  Status make_directory(const std::string& path) override { return disk_.make_directory(path); }
  Status sync_directory(const std::string& path) override { return disk_.sync_directory(path); }
  Result<std::unique_ptr<platform::DirectoryLock>> lock(const std::string& directory) override {
    auto held = disk_.lock(directory);
    if (!held) return held;
    *locked_ = true;
    return std::unique_ptr<platform::DirectoryLock>(new Lock(std::move(*held), locked_));
  }

  std::atomic<bool> is_removing = false;
  std::atomic<bool> removed_unlocked = false;

 private:
  using Flag = std::shared_ptr<std::atomic<bool>>;
  class Lock : public platform::DirectoryLock {
   public:
    Lock(std::unique_ptr<platform::DirectoryLock> held, Flag locked)
        : held_(std::move(held)), locked_(std::move(locked)) {}
    ~Lock() override { *locked_ = false; }

   private:
    const std::unique_ptr<platform::DirectoryLock> held_;
    const Flag locked_;
  };

  support::SimulatedDisk disk_{1};
  std::atomic<std::thread::id> engine_thread_;
  const Flag locked_ = std::make_shared<std::atomic<bool>>(false);
};

TEST(ClosingEngine, KeepsTheDirectoryLockedUntilTheLastSegmentIsDeleted) {
  SlowRemovals disk;
  auto opened =
      Engine::open({.directory = "/store", .segment_bytes = 64 << 10, .snapshot_bytes = 64 << 10, .disk = &disk});
  ASSERT_TRUE(opened);
  std::unique_ptr<Engine> engine = std::move(*opened);
  // Jobs come and are purged, in commits that are worth another thread, until one of those deletes a segment.
  const std::vector<Job> jobs(600, Job{.kind = "k", .body = std::string(200, 'x'), .delay = std::chrono::hours(1)});
  const auto is_removing = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // It begins after the commit is confirmed.
    return disk.is_removing.load();
  };
  for (int rounds = 0; rounds < 5000; ++rounds) {
    ASSERT_TRUE(wait<Answers>([&](auto done) { engine->enqueue(jobs, std::move(done)); }));
    if (is_removing()) break;
    ASSERT_TRUE(wait<std::uint64_t>([&](auto done) { engine->purge("default", std::move(done)); }));
    if (is_removing()) break;
  }
  ASSERT_TRUE(disk.is_removing);
  engine.reset();
  EXPECT_FALSE(disk.removed_unlocked);
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
