// The worker on the real engine, opened as users open it.

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <stdexcept>

#include "bide/wait.h"
#include "support/temporary_directory.h"
#include "worker/worker_test_bench.h"

namespace bide::worker {

namespace {

using namespace std::chrono_literals;

class WorkerOnEngine : public ::testing::Test {
 protected:
  Client open() { return Client::open("bide:" + directory_.path() + "/data?durability=none").value(); }

  static AuditReport audit(const Client& client) {
    return wait<AuditReport>([&](auto done) { client.inspector().audit(std::move(done)); }).value();
  }

  static void enqueue_many(Client& client, std::size_t count, const Job& job) {
    for (const auto& each : client.enqueue(std::vector<Job>(count, job))) ASSERT_TRUE(each) << each.error().message;
  }

  support::TemporaryDirectory directory_;
};

TEST_F(WorkerOnEngine, EveryJobRunsOnceAndIsAccountedFor) {
  Client client = open();
  constexpr std::size_t kJobs = 20'000;
  enqueue_many(client, kJobs, {.kind = "a", .body = std::string(200, 'x')});
  std::mutex mutex;
  std::map<JobId, int> runs;
  std::promise<void> all;
  Worker worker(client, {.concurrency = 4});
  worker.handle("a", [&](const Job& job) {
    std::lock_guard lock(mutex);
    ++runs[job.id];
    if (runs.size() == kJobs) all.set_value();
  });
  ASSERT_TRUE(worker.start());
  all.get_future().wait();
  worker.stop();
  EXPECT_EQ(worker.stats().done, kJobs);
  for (const auto& [id, count] : runs) EXPECT_EQ(count, 1) << id.to_string();
  const AuditReport report = audit(client);
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.done, kJobs);
}

TEST_F(WorkerOnEngine, AJobThatACrashWouldKillIsNotTakenBeforeItCanRun) {
  Client client = open();
  enqueue_many(client, 10, {.kind = "a", .retry = RetryPolicy::none()});
  enqueue_many(client, 10, {.kind = "a", .queue = "other"});
  std::mutex held;
  std::unique_lock hold(held);
  std::atomic<int> running = 0;
  std::promise<void> both_run;
  Worker worker(client, {.queues = {{"default"}, {"other"}}, .concurrency = 2, .credit = 64});
  worker.handle("a", [&](const Job&) {
    if (++running == 2) both_run.set_value();
    std::lock_guard wait_for_it(held);
  });
  ASSERT_TRUE(worker.start());
  both_run.get_future().wait();
  const auto queues = wait<std::vector<QueueInfo>>([&](auto done) { client.inspector().queues(std::move(done)); });
  for (const QueueInfo& queue : queues.value()) {
    if (queue.name == "default") {
      EXPECT_LE(queue.running, 2u);
    }
  }
  hold.unlock();
  const auto all_done = [&] { return audit(client).done == 20; };
  while (!all_done()) std::this_thread::yield();
  worker.stop();
}

TEST_F(WorkerOnEngine, AStopUnderLoadChargesNothingAndLosesNothing) {
  Client client = open();
  // Some for each round: a quick worker may run all there are before it is stopped.
  constexpr std::size_t kRounds = 10;
  constexpr std::size_t kJobs = kRounds * 500;
  std::atomic<std::uint64_t> done = 0;
  for (std::size_t round = 0; round < kRounds; ++round) {
    enqueue_many(client, kJobs / kRounds, {.kind = "a"});
    Worker worker(client, {.concurrency = 2, .credit = 200});
    std::promise<void> some;
    std::atomic<int> started = 0;
    worker.handle("a", [&] {
      if (++started == 50) some.set_value();
    });
    ASSERT_TRUE(worker.start());
    some.get_future().wait();
    worker.stop();
    done += worker.stats().done;
    EXPECT_EQ(worker.stats().started, worker.stats().done);
    EXPECT_EQ(worker.stats().lease_lost, 0u);
  }
  const AuditReport report = audit(client);
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.done, done);
  EXPECT_EQ(report.done + report.live, kJobs);
  const auto page = wait<JobPage>([&](auto completed) {
                      client.inspector().list({.states = {JobState::kReady}}, "", 1000, std::move(completed));
                    }).value();
  for (const JobInfo& job : page.jobs) EXPECT_EQ(job.counts.total(), 0u);
}

TEST_F(WorkerOnEngine, EffectsOfEveryJobBecomeJobs) {
  Client client = open();
  constexpr std::size_t kJobs = 2'000;
  std::atomic<std::size_t> effects = 0;
  std::promise<void> all;
  Worker worker(client, {.concurrency = 2});
  worker.handle("a", [](Context& context) { context.enqueue("b", "from a").value(); });
  worker.handle("b", [&] {
    if (++effects == kJobs) all.set_value();
  });
  ASSERT_TRUE(worker.start());
  enqueue_many(client, kJobs, {.kind = "a"});
  all.get_future().wait();
  worker.stop();
  EXPECT_EQ(audit(client).done, 2 * kJobs);
}

TEST_F(WorkerOnEngine, ATimedOutJobIsTriedAgainAndCountedAsSuch) {
  Client client = open();
  Worker worker(client, {.concurrency = 1});
  AttemptCounts before;
  worker.handle("a", [&](Context& context) {
    if (context.attempt() == 2) before = context.counts();
    if (context.attempt() > 1) return;
    Gate stopped;
    std::stop_callback callback(context.stop_token(), [&] { stopped.open(); });
    stopped.wait();
  });
  ASSERT_TRUE(worker.start());
  const JobId id = client.enqueue("a", "", {.time_limit = 100ms, .retry = RetryPolicy::fixed(10ms)}).value();
  EXPECT_EQ(client.wait_for(id, 30s)->state, JobState::kDone);
  worker.stop();
  EXPECT_EQ(before, AttemptCounts{.timed_out = 1});
}

TEST_F(WorkerOnEngine, ACancelledJobIsToldToStopAndGone) {
  Client client = open();
  Worker worker(client, {.concurrency = 1, .lease = 1s});
  std::promise<void> running;
  worker.handle("a", [&](Context& context) {
    Gate stopped;
    std::stop_callback callback(context.stop_token(), [&] { stopped.open(); });
    running.set_value();
    stopped.wait();
    EXPECT_TRUE(context.cancel_requested());
    throw std::runtime_error("cancelled");
  });
  ASSERT_TRUE(worker.start());
  const JobId id = client.enqueue("a", "").value();
  running.get_future().wait();
  ASSERT_TRUE(wait<std::vector<Status>>([&](auto done) { client.inspector().cancel({id}, {}, std::move(done)); }));
  EXPECT_EQ(client.wait_for(id, 30s).error().code, ErrorCode::kNotFound);
}

TEST_F(WorkerOnEngine, AnEffectThatIsThereAlreadyIsNotMadeTwice) {
  Client client = open();
  Worker worker(client, {.concurrency = 1});
  worker.handle("a", [](Context& context) { context.enqueue("b", "", {.delay = 1h, .unique_key = "one"}).value(); });
  ASSERT_TRUE(worker.start());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(client.wait_for(client.enqueue("a", "").value(), 30s)->state, JobState::kDone);
  }
  worker.stop();
  EXPECT_EQ(audit(client).live, 1u);
}

}  // namespace
}  // namespace bide::worker
