// Kinds that are declared once, typed batches and results, what people do with jobs, hooks, and groups of dead jobs.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "bide/bide.h"
#include "bide/json.h"
#include "support/temporary_directory.h"

namespace bide {

struct Picture {
  std::string file;
  int width = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Picture, file, width)

namespace {

using namespace std::chrono_literals;

class ClientKinds : public ::testing::Test {
 protected:
  Lease lease_one() {
    std::promise<Lease> promise;
    auto subscription = client_.broker().subscribe({.queues = {{"default"}}, .credit = 1}, [&](std::vector<Lease> leases) {
      promise.set_value(std::move(leases.at(0)));
    });
    EXPECT_TRUE(subscription);
    return promise.get_future().get();
  }
  void settle(const Lease& lease, Outcome outcome) {
    const auto settled = wait<std::vector<Status>>([&](auto done) {
      client_.broker().settle({{.lease = {lease.job.id, lease.token}, .outcome = std::move(outcome)}}, std::move(done));
    });
    ASSERT_TRUE(settled && settled->at(0));
  }
  // A job that died with this error.
  JobId died(const std::string& kind, const std::string& error) {
    Job job{.kind = kind};
    JobPast past{.attempts = 1, .dead = DeadReason::kRejected};
    past.history.push_back({.attempt = 1, .at = Time(1s), .fault = Fault::kFailed, .text = error});
    job.past = std::make_shared<const JobPast>(std::move(past));
    return client_.enqueue(std::vector<Job>{job}).at(0).value();
  }

  support::TemporaryDirectory directory_;
  Client client_ = Client::open("bide:" + directory_.path() + "/data?durability=none").value();
  const Kind<Picture> kind_{"resize", {.queue = "images", .time_limit = 5s, .priority = 3, .retry = RetryPolicy::fixed(3s, 4)}};
};

TEST_F(ClientKinds, AJobOfADeclaredKindHasItsRules) {
  const JobInfo info = client_.find(client_.enqueue(kind_, {"cat.png", 640}).value()).value();
  EXPECT_EQ(info.job.kind, "resize");
  EXPECT_EQ(info.job.queue, "images");
  EXPECT_EQ(info.job.time_limit, 5s);
  EXPECT_EQ(info.job.priority, 3);
  EXPECT_EQ(info.job.retry, RetryPolicy::fixed(3s, 4));
  EXPECT_EQ(info.job.content_type, "application/json");
  EXPECT_EQ(info.job.body, R"({"file":"cat.png","width":640})");
}

TEST_F(ClientKinds, OneJobCanBeDifferent) {
  const JobId id = client_.enqueue(kind_, {"cat.png", 640}, [](EnqueueOptions& options) { options.delay = 1h; }).value();
  const JobInfo info = client_.find(id).value();
  EXPECT_EQ(info.state, JobState::kScheduled);
  EXPECT_EQ(info.job.queue, "images");
  EXPECT_EQ(client_.find(client_.enqueue(kind_, {}).value())->state, JobState::kReady);
}

TEST_F(ClientKinds, AWorkerTakesFromTheQueueOfAKind) {
  std::promise<Picture> promise;
  Worker worker(client_, {.concurrency = 1});
  worker.handle(kind_, [&](const Picture& picture) { promise.set_value(picture); });
  ASSERT_TRUE(worker.start());
  client_.enqueue(kind_, {"cat.png", 640}).value();
  EXPECT_EQ(promise.get_future().get().width, 640);
}

TEST_F(ClientKinds, ABatchHasOneJobForEachBody) {
  const auto ids = client_.enqueue_all(kind_, {{"a", 1}, {"b", 2}});
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_EQ(client_.find(*ids[1])->job.body, R"({"file":"b","width":2})");
  EXPECT_EQ(client_.find(*ids[1])->job.queue, "images");
  EXPECT_EQ(client_.enqueue_all("text", std::vector<std::string>{"x"}, {.delay = 1h}).size(), 1u);
}

TEST_F(ClientKinds, AResultComesAsItsType) {
  const JobId id = client_.enqueue("work", "").value();
  settle(lease_one(), Done{.result = R"({"file":"cat.png","width":64})", .content_type = "application/json"});
  EXPECT_EQ(client_.wait_for<Picture>(id, 10s)->width, 64);
  EXPECT_EQ(client_.wait_for<std::string>(id, 10s).value(), R"({"file":"cat.png","width":64})");
  const auto wrong = client_.wait_for<int>(id, 10s);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(ClientKinds, TheResultOfADeadJobIsItsError) {
  const auto result = client_.wait_for<Picture>(died("work", "no such picture"), 10s);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kHandlerFailed);
  EXPECT_NE(result.error().message.find("no such picture"), std::string::npos);
}

TEST_F(ClientKinds, WhatPeopleDoWithJobsNeedsNoCompletions) {
  const JobId id = client_.enqueue("a", "", {.delay = 1h}).value();
  EXPECT_EQ(client_.explain(id)->code, "scheduled");
  ASSERT_TRUE(client_.reschedule(id, Time(0s)));
  EXPECT_EQ(client_.find(id)->state, JobState::kReady);
  ASSERT_TRUE(client_.pause("default"));
  EXPECT_TRUE(client_.queues()->at(0).paused);
  ASSERT_TRUE(client_.cancel(id));
  EXPECT_EQ(client_.cancel(id).error().code, ErrorCode::kNotFound);
  const JobId dead = died("a", "x");
  ASSERT_TRUE(client_.replay(dead));
  EXPECT_EQ(client_.find(dead)->state, JobState::kReady);
  EXPECT_EQ(client_.replay({dead, id})->at(1).error().code, ErrorCode::kNotFound);
  client_.close();
  EXPECT_EQ(client_.queues().error().code, ErrorCode::kInvalidArgument);
}

TEST_F(ClientKinds, HooksSeeEveryJobAndMayChangeOrRefuseIt) {
  client_.use([](Job& job) -> Status {
    job.headers.emplace_back("tenant", "acme");
    return {};
  });
  client_.use([](Job& job) -> Status {
    if (job.kind == "secret") return Error{ErrorCode::kPermissionDenied, "not from here"};
    return {};
  });
  const auto results = client_.enqueue(std::vector<Job>{{.kind = "a"}, {.kind = "secret"}, {.kind = "b"}});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(client_.find(*results[0])->job.headers, (Headers{{"tenant", "acme"}}));
  EXPECT_EQ(results[1].error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(client_.find(*results[2])->job.kind, "b");
  EXPECT_EQ(client_.enqueue("secret", "").error().message, "not from here");
  EXPECT_FALSE(client_.publish("secret", ""));
}

TEST_F(ClientKinds, WhatGoesThroughACountedClientIsInTheMetrics) {
  Client counted = Client::open("bide:" + directory_.path() + "/counted?durability=none", {.metrics = true}).value();
  counted.enqueue_all("picture", std::vector<std::string>(3), {.queue = "counted_images", .delay = 1h});
  const std::string text = metrics_text();
  EXPECT_NE(text.find("bide_jobs_enqueued_total{queue=\"counted_images\"} 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("bide_queue_jobs{queue=\"counted_images\",state=\"scheduled\"} 3\n"), std::string::npos) << text;
  counted.close();
  EXPECT_EQ(metrics_text().find("state=\"scheduled\"} 3\n"), std::string::npos);  // What is closed is not asked any more.
}

TEST_F(ClientKinds, ABackupIsMadeWhileTheStoreIsOpen) {
  client_.enqueue("a", "", {.delay = 1h}).value();
  const std::string target = directory_.path() + "/saved";
  const auto made = back_up(client_, target);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->live_jobs, 1u);
  EXPECT_EQ(Client::open("bide:" + target)->queues()->at(0).scheduled, 1u);
}

TEST_F(ClientKinds, DeadJobsAreGroupedAndAGroupIsReplayedOrDeleted) {
  std::vector<JobId> timeouts;
  for (int i = 0; i < 5; ++i) timeouts.push_back(died("send", "timeout after " + std::to_string(i) + " ms"));
  const JobId other = died("send", "no such user");
  const DeadGroups found = dead_groups(client_).value();
  ASSERT_EQ(found.groups.size(), 2u);
  EXPECT_TRUE(found.complete);
  EXPECT_EQ(found.groups[0].count, 5u);
  EXPECT_EQ(found.groups[0].error, "timeout after # ms");
  EXPECT_EQ(found.groups[1].example, other);

  EXPECT_EQ(replay_group(client_, timeouts[2].to_string())->succeeded, 5u);  // By a job of it.
  EXPECT_EQ(client_.find(timeouts[0])->state, JobState::kReady);
  EXPECT_EQ(client_.find(other)->state, JobState::kDead);
  EXPECT_EQ(delete_group(client_, found.groups[1].id)->succeeded, 1u);
  EXPECT_FALSE(client_.find(other));
  EXPECT_EQ(replay_group(client_, timeouts[0].to_string()).error().code, ErrorCode::kWrongState);
  EXPECT_EQ(delete_group(client_, "the first").error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace bide
