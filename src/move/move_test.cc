#include "move/move.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "bide/wait.h"
#include "core/forwarding_broker.h"
#include "move/held_queues.h"
#include "support/embedded_store.h"
#include "support/temporary_directory.h"

namespace bide::move {
namespace {

using support::EmbeddedStore;

Time now() { return std::chrono::floor<Milliseconds>(std::chrono::system_clock::now()); }

class MoveTest : public testing::Test {
 protected:
  Endpoint from() { return {source_.broker(), source_.inspector()}; }
  Endpoint to() { return {target_.broker(), target_.inspector()}; }

  static JobId enqueue(const Endpoint& at, Job job) {
    auto answers = wait<std::vector<Result<Enqueued>>>([&](auto done) { at.broker.enqueue({job}, std::move(done)); });
    return answers.value().front().value().id;
  }
  static void enqueue_many(const Endpoint& at, int count) {
    std::vector<Job> jobs;
    for (int i = 0; i < count; ++i) jobs.push_back(job_in(i % 2 == 0 ? "a" : "b"));
    const auto answers = wait<std::vector<Result<Enqueued>>>([&](auto done) { at.broker.enqueue(jobs, std::move(done)); });
    ASSERT_TRUE(answers);
  }
  static Job job_in(std::string queue, std::string body = "body") {
    return {.kind = "work", .queue = std::move(queue), .body = std::move(body)};
  }
  static Lease lease(const Endpoint& at, const std::string& queue) {
    struct Slot {
      std::mutex mutex;
      std::condition_variable came;
      std::vector<Lease> leases;
    };
    const auto slot = std::make_shared<Slot>();
    auto subscription = at.broker.subscribe({.queues = {{queue, 1}}, .credit = 1}, [slot](std::vector<Lease> leases) {
      const std::lock_guard lock(slot->mutex);
      slot->leases = std::move(leases);
      slot->came.notify_one();
    });
    std::unique_lock lock(slot->mutex);
    slot->came.wait(lock, [&] { return !slot->leases.empty(); });
    return slot->leases.front();
  }
  static void settle(const Endpoint& at, const Lease& lease, Outcome outcome) {
    const Settlement settlement{.lease = {lease.job.id, lease.token}, .outcome = std::move(outcome)};
    const auto statuses =
        wait<std::vector<Status>>([&](auto done) { at.broker.settle({settlement}, std::move(done)); });
    ASSERT_TRUE(statuses.value().front()) << statuses->front().error().message;
  }
  static std::map<JobId, JobInfo> jobs(const Endpoint& at) {
    std::map<JobId, JobInfo> all;
    std::string cursor;
    do {
      auto page = wait<JobPage>([&](auto done) { at.inspector.list({}, cursor, 1000, std::move(done)); });
      for (JobInfo& info : page.value().jobs) all[info.job.id] = info;
      cursor = page->next;
    } while (!cursor.empty());
    return all;
  }
  static bool is_paused(const Endpoint& at, const std::string& queue) {
    auto queues = wait<std::vector<QueueInfo>>([&](auto done) { at.inspector.queues(std::move(done)); });
    return std::any_of(queues->begin(), queues->end(), [&](const QueueInfo& q) { return q.name == queue && q.paused; });
  }
  static Status pause(const Endpoint& at, const std::string& queue, bool paused) {
    return wait<void>([&](auto done) { at.inspector.pause(queue, paused, std::move(done)); });
  }
  static AuditReport audit(const Endpoint& at) {
    return wait<AuditReport>([&](auto done) { at.inspector.audit(std::move(done)); }).value();
  }

  support::TemporaryDirectory folder_;
  EmbeddedStore source_{folder_.path() + "/source"};
  EmbeddedStore target_{folder_.path() + "/target"};
};

void expect_same(const JobInfo& a, const JobInfo& b) {
  EXPECT_EQ(a.job.kind, b.job.kind);
  EXPECT_EQ(a.job.queue, b.job.queue);
  EXPECT_EQ(a.job.body, b.job.body);
  EXPECT_EQ(a.job.content_type, b.job.content_type);
  EXPECT_EQ(a.job.headers, b.job.headers);
  EXPECT_EQ(a.job.expires, b.job.expires);
  EXPECT_EQ(a.job.time_limit, b.job.time_limit);
  EXPECT_EQ(a.job.priority, b.job.priority);
  EXPECT_EQ(a.job.retry, b.job.retry);
  EXPECT_EQ(a.job.unique_key, b.job.unique_key);
  EXPECT_EQ(a.state, b.state);
  EXPECT_EQ(a.due, b.due);
  EXPECT_EQ(a.attempts, b.attempts);
  EXPECT_EQ(a.counts, b.counts);
  EXPECT_EQ(a.history, b.history);
  EXPECT_EQ(a.dead_reason, b.dead_reason);
  EXPECT_EQ(a.finished, b.finished);
}

TEST_F(MoveTest, JobsArriveAsTheyWere) {
  Job rich = job_in("mail", std::string("\0\xff", 2));
  rich.content_type = "image/png";
  rich.headers = {{"a", "1"}, {"a", "2"}};
  rich.expires = now() + std::chrono::hours(9);
  rich.time_limit = std::chrono::minutes(3);
  rich.priority = 7;
  rich.retry = RetryPolicy::steps({std::chrono::seconds(1), std::chrono::hours(1)});
  rich.unique_key = "k";
  rich.due = now() + std::chrono::hours(5);
  enqueue(from(), rich);
  enqueue(from(), job_in("plain"));
  enqueue(from(), job_in("failing"));
  settle(from(), lease(from(), "failing"), RetryAt{.after = std::chrono::hours(1), .error = "no route"});
  for (int i = 0; i < 3; ++i) enqueue(from(), job_in("dying"));
  for (int i = 0; i < 3; ++i) {
    settle(from(), lease(from(), "dying"), Dead{.reason = DeadReason::kExhausted, .error = "dead " + std::to_string(i)});
  }
  // Dead, with the key that a live job holds.
  Job buried = job_in("buried");
  buried.unique_key = "shared";
  enqueue(from(), buried);
  settle(from(), lease(from(), "buried"), Dead{.error = "rejected"});
  enqueue(from(), buried);
  const auto before = jobs(from());
  ASSERT_EQ(before.size(), 8u);

  const auto report = move_jobs(from(), to(), {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->waiting, 4u);
  EXPECT_EQ(report->dead, 4u);
  EXPECT_EQ(report->refused, 0u);
  EXPECT_EQ(report->existed, 0u);
  const auto after = jobs(to());
  ASSERT_EQ(after.size(), before.size());
  for (const auto& [id, info] : before) {
    ASSERT_TRUE(after.contains(id));
    expect_same(info, after.at(id));
  }
  EXPECT_TRUE(jobs(from()).empty());
  EXPECT_FALSE(is_paused(from(), "mail"));
  EXPECT_TRUE(audit(from()).ok());
  EXPECT_TRUE(audit(to()).ok());
  EXPECT_EQ(audit(from()).live, 0u);
  EXPECT_EQ(audit(to()).live, 8u);

  // And back.
  ASSERT_TRUE(move_jobs(to(), from(), {}));
  const auto again = jobs(from());
  ASSERT_EQ(again.size(), before.size());
  for (const auto& [id, info] : before) expect_same(info, again.at(id));
}

TEST_F(MoveTest, OnlyTheQueuesThatWereAskedForAreMoved) {
  enqueue(from(), job_in("a"));
  const JobId other = enqueue(from(), job_in("b"));
  const auto report = move_jobs(from(), to(), {.queues = {"a"}});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->moved(), 1u);
  ASSERT_EQ(jobs(from()).size(), 1u);
  EXPECT_TRUE(jobs(from()).contains(other));
}

TEST_F(MoveTest, AFlowIsNotTakenApart) {
  const JobId first = enqueue(from(), job_in("a"));
  Job waiting = job_in("b");
  waiting.after = {first};
  const JobId second = enqueue(from(), waiting);
  const auto report = move_jobs(from(), to(), {.queues = {"a"}});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(jobs(from()).size(), 2u);
  EXPECT_EQ(jobs(from()).at(second).state, JobState::kWaiting);
  EXPECT_TRUE(jobs(to()).empty());
}

TEST_F(MoveTest, AJobThatNoLongerWaitsIsMovedAndOneWithStepsIsNot) {
  const JobId first = enqueue(from(), job_in("a"));
  Job waiting = job_in("b");
  waiting.after = {first};
  const JobId second = enqueue(from(), waiting);
  settle(from(), lease(from(), "a"), Done{});
  const JobId stepped = enqueue(from(), job_in("c"));
  const Lease running = lease(from(), "c");
  ASSERT_TRUE(wait<void>([&](auto done) {
    from().broker.save_step({stepped, running.token}, {"charge", "receipt"}, std::move(done));
  }));
  settle(from(), running, RetryAt{.after = std::chrono::hours(1), .error = "again"});
  const auto report = move_jobs(from(), to(), {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->moved(), 1u);
  EXPECT_EQ(report->refused, 1u);
  EXPECT_TRUE(jobs(to()).contains(second));
  EXPECT_EQ(jobs(from()).at(stepped).state, JobState::kScheduled);
}

TEST_F(MoveTest, AStoreIsNotMovedOntoItself) {
  enqueue(from(), job_in("a"));
  const auto report = move_jobs(from(), from(), {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(jobs(from()).size(), 1u);
}

TEST_F(MoveTest, AQueueThatWasPausedStaysPausedAtBothEnds) {
  enqueue(from(), job_in("a"));
  ASSERT_TRUE(pause(from(), "a", true));
  ASSERT_TRUE(move_jobs(from(), to(), {}));
  EXPECT_TRUE(is_paused(from(), "a"));
  EXPECT_TRUE(is_paused(to(), "a"));
}

TEST_F(MoveTest, WhatRunsIsWaitedForAndMovedWhenItIsToRunAgain) {
  const JobId id = enqueue(from(), job_in("a"));
  const Lease running = lease(from(), "a");
  bool settled = false;
  MoveOptions options;
  options.on_progress = [&](const MoveReport& report) {
    if (report.running != 1 || std::exchange(settled, true)) return;
    EXPECT_TRUE(is_paused(from(), "a"));
    settle(from(), running, RetryAt{.after = Milliseconds(0), .error = "again"});
  };
  const auto report = move_jobs(from(), to(), options);
  ASSERT_TRUE(report);
  EXPECT_TRUE(settled);
  EXPECT_EQ(report->waiting, 1u);
  ASSERT_TRUE(jobs(to()).contains(id));
  EXPECT_EQ(jobs(to()).at(id).attempts, 1u);
}

// Does something at the source between the copy and its removal.
class Interfering : public core::ForwardingBroker {
 public:
  Interfering(Broker& real, std::function<void()> then) : real_(real), then_(std::move(then)) {}
  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override {
    auto results = wait<std::vector<Result<Enqueued>>>([&](auto all) { real_.enqueue(std::move(jobs), all); });
    if (then_) std::exchange(then_, nullptr)();
    done(std::move(results));
  }

 private:
  Broker& next_broker() const override { return real_; }
  Broker& real_;
  std::function<void()> then_;
};

TEST_F(MoveTest, AJobThatSomebodyStartsAtTheSourceMeanwhileStaysThere) {
  const JobId id = enqueue(from(), job_in("a"));
  std::optional<Lease> started;
  Interfering target(target_.broker(), [&] {
    ASSERT_TRUE(pause(from(), "a", false));
    started = lease(from(), "a");
  });
  const auto report = move_jobs(from(), {target, target_.inspector()}, {.wait_for_running = false});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->moved(), 0u);
  EXPECT_TRUE(report->at_both.empty());
  ASSERT_TRUE(started);
  EXPECT_TRUE(jobs(to()).empty());
  EXPECT_EQ(jobs(from()).at(id).state, JobState::kRunning);
  EXPECT_EQ(report->running, 1u);
}

TEST_F(MoveTest, WhatTheTargetRefusesStays) {
  Job held = job_in("a");
  held.unique_key = "taken";
  enqueue(to(), held);
  const JobId stays = enqueue(from(), held);
  enqueue(from(), job_in("a"));
  const auto report = move_jobs(from(), to(), {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->moved(), 1u);
  EXPECT_EQ(report->refused, 1u);
  ASSERT_EQ(report->examples.size(), 1u);
  EXPECT_EQ(report->examples[0].first, stays);
  EXPECT_TRUE(jobs(from()).contains(stays));
  EXPECT_FALSE(is_paused(from(), "a"));
}

TEST_F(MoveTest, AMoveThatStoppedIsTakenUpAgain) {
  enqueue_many(from(), 1200);
  bool begun = false;
  MoveOptions first;
  first.on_progress = [&](const MoveReport& report) { begun = report.moved() > 0; };
  first.stop = [&] { return begun; };
  const auto interrupted = move_jobs(from(), to(), first);
  ASSERT_TRUE(interrupted);
  EXPECT_GT(interrupted->moved(), 0u);
  EXPECT_LT(interrupted->moved(), 1200u);
  EXPECT_TRUE(is_paused(from(), "a"));
  const auto rest = move_jobs(from(), to(), {});
  ASSERT_TRUE(rest);
  EXPECT_EQ(interrupted->moved() + rest->moved(), 1200u);
  EXPECT_FALSE(is_paused(from(), "a")) << "the mover before had paused it, nobody else";
  EXPECT_FALSE(is_paused(to(), "a"));
  EXPECT_EQ(jobs(to()).size(), 1200u);
  EXPECT_TRUE(jobs(from()).empty());
}

TEST_F(MoveTest, ASourceThatCannotListIsEmptiedByLeasing) {
  class Blind : public core::ForwardingBroker {
   public:
    explicit Blind(Broker& real) : real_(real) {}
    Capabilities capabilities() const override {
      Capabilities can = real_.capabilities();
      can.inspect = false;
      return can;
    }

   private:
    Broker& next_broker() const override { return real_; }
    Broker& real_;
  } blind(source_.broker());
  for (int i = 0; i < 700; ++i) enqueue(from(), job_in("a"));
  enqueue(from(), job_in("b"));
  settle(from(), lease(from(), "b"), RetryAt{.error = "once"});
  enqueue(from(), job_in("c"));
  settle(from(), lease(from(), "c"), Dead{.error = "dead"});
  const auto report = move_jobs({blind, source_.inspector()}, to(), {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->waiting, 701u);
  EXPECT_EQ(report->dead, 1u);
  const auto after = jobs(to());
  EXPECT_EQ(after.size(), 702u);
  for (const auto& [id, info] : after) EXPECT_EQ(info.attempts, info.job.queue == "a" ? 0u : 1u);
}

}  // namespace
}  // namespace bide::move
