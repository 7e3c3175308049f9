#include "outbox/outbox_broker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>

#include "bide/wait.h"
#include "outbox/envelope.h"
#include "support/embedded_store.h"
#include "support/temporary_directory.h"

namespace bide::outbox {
namespace {

using namespace std::chrono_literals;

Time wall() { return std::chrono::floor<Milliseconds>(std::chrono::system_clock::now()); }

// The target: a real engine that can be cut off, and that writes down what arrives.
class Link : public core::ForwardingBroker {
 public:
  explicit Link(Broker& real) : real_(real) {}

  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override {
    if (down) return done(Error{ErrorCode::kUnavailable, "cut off"});
    if (refuses_keys && std::any_of(jobs.begin(), jobs.end(), [](const Job& j) { return !j.unique_key.empty(); })) {
      std::vector<Result<Enqueued>> results;
      for (const Job& job : jobs) {
        results.push_back(job.unique_key.empty() ? Result<Enqueued>(Enqueued{job.id})
                                                 : Result<Enqueued>(Error{ErrorCode::kUnsupported, "no keys here"}));
      }
      return done(std::move(results));
    }
    {
      const std::lock_guard lock(mutex_);
      for (const Job& job : jobs) arrived_[job.queue].push_back(job.body);
    }
    real_.enqueue(std::move(jobs), std::move(done));
  }
  std::vector<std::string> arrived(const std::string& queue) {
    const std::lock_guard lock(mutex_);
    return arrived_[queue];
  }

  std::atomic<bool> down{false};
  std::atomic<bool> refuses_keys{false};

 private:
  Broker& next_broker() const override { return real_; }

  Broker& real_;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::string>> arrived_;
};

class OutboxTest : public testing::Test {
 protected:
  void open(std::uint64_t max_jobs = 1'000'000) {
    auto opened = OutboxBroker::open({.directory = folder_.path() + "/outbox", .max_jobs = max_jobs, .target = "there"},
                                     [this]() -> Result<Target> {
                                       if (link_->down) return Error{ErrorCode::kUnavailable, "nobody answers"};
                                       return Target{link_, inspector_};
                                     });
    ASSERT_TRUE(opened) << opened.error().message;
    outbox_ = std::move(*opened);
  }
  Result<Enqueued> enqueue(Job job) {
    auto answers = wait<std::vector<Result<Enqueued>>>([&](auto done) { outbox_->enqueue({job}, std::move(done)); });
    if (!answers) return answers.error();
    return answers->front();
  }
  static Job job_in(std::string queue, std::string body = "body") {
    return {.kind = "work", .queue = std::move(queue), .body = std::move(body)};
  }
  static bool eventually(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }
  OutboxStatus status() { return outbox_->status().value(); }
  bool is_empty() {
    return eventually([&] { return status().waiting == 0; });
  }
  Result<JobInfo> at_target(JobId id) {
    return wait<JobInfo>([&](auto done) { target_.inspector().find(id, std::move(done)); });
  }
  Result<JobInfo> find(JobId id) {
    return wait<JobInfo>([&](auto done) { outbox_->find(id, std::move(done)); });
  }

  support::TemporaryDirectory folder_;
  support::EmbeddedStore target_{folder_.path() + "/target"};
  std::shared_ptr<Link> link_ = std::make_shared<Link>(target_.broker());
  std::shared_ptr<Inspector> inspector_{std::shared_ptr<void>(), &target_.inspector()};
  std::unique_ptr<OutboxBroker> outbox_;
};

TEST_F(OutboxTest, AJobGoesThroughAsItIs) {
  open();
  Job job = job_in("mail", std::string("a\n\0\xff", 4));
  job.content_type = "image/png";
  job.headers = {{"a", "1"}, {"a", "2"}, {"b", "\xff"}};
  job.expires = wall() + 9h;
  job.time_limit = 3min;
  job.priority = 7;
  job.retry = RetryPolicy::steps({1s, 1h});
  job.unique_key = "k";
  job.due = wall() + 5h;
  const auto accepted = enqueue(job);
  ASSERT_TRUE(accepted) << accepted.error().message;
  ASSERT_TRUE(is_empty());
  const auto info = at_target(accepted->id);
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->job.body, job.body);
  EXPECT_EQ(info->job.content_type, job.content_type);
  EXPECT_EQ(info->job.headers, job.headers);
  EXPECT_EQ(info->job.expires, job.expires);
  EXPECT_EQ(info->job.time_limit, job.time_limit);
  EXPECT_EQ(info->job.priority, job.priority);
  EXPECT_EQ(info->job.retry, job.retry);
  EXPECT_EQ(info->job.unique_key, job.unique_key);
  EXPECT_EQ(info->due, *job.due);
  EXPECT_EQ(info->job.queue, "mail");
  EXPECT_EQ(status().forwarder.forwarded, 1u);
}

TEST_F(OutboxTest, JobsAreAcceptedWithoutTheTargetAndArriveInOrder) {
  link_->down = true;
  open();
  for (int i = 0; i < 1500; ++i) {
    ASSERT_TRUE(enqueue(job_in(i % 2 == 0 ? "even" : "odd", std::to_string(i))));
    if (i == 700) link_->down = false;
    if (i == 900) link_->down = true;
  }
  link_->down = false;
  ASSERT_TRUE(is_empty());
  const auto even = link_->arrived("even");
  const auto odd = link_->arrived("odd");
  ASSERT_EQ(even.size(), 750u);
  ASSERT_EQ(odd.size(), 750u);
  for (int i = 0; i < 750; ++i) {
    EXPECT_EQ(even[static_cast<std::size_t>(i)], std::to_string(2 * i));
    EXPECT_EQ(odd[static_cast<std::size_t>(i)], std::to_string(2 * i + 1));
  }
}

TEST_F(OutboxTest, ADelayCountsFromAcceptance) {
  link_->down = true;
  open();
  Job job = job_in("a");
  job.delay = 1h;
  const Time before = wall();
  const JobId id = enqueue(job).value().id;
  const Time after = wall();
  std::this_thread::sleep_for(300ms);
  link_->down = false;
  ASSERT_TRUE(is_empty());
  const JobInfo info = at_target(id).value();
  EXPECT_GE(info.due, before + 1h);
  EXPECT_LE(info.due, after + 1h + 100ms);  // Not the time that it waited here.
}

TEST_F(OutboxTest, WhatIsInTheOutboxSurvivesTheProcess) {
  link_->down = true;
  open();
  const JobId id = enqueue(job_in("a")).value().id;
  outbox_.reset();
  link_->down = false;
  open();
  ASSERT_TRUE(is_empty());
  EXPECT_TRUE(at_target(id));
}

TEST_F(OutboxTest, TheSameIdIsOneJob) {
  link_->down = true;
  open();
  Job job = job_in("a");
  job.id = JobId::parse("018f3c1e-7d5a-7000-8000-000000000001").value();
  EXPECT_FALSE(enqueue(job).value().existed);
  EXPECT_TRUE(enqueue(job).value().existed);
  link_->down = false;
  ASSERT_TRUE(is_empty());
  EXPECT_TRUE(enqueue(job).value().existed) << "it was handed on a moment ago";
  EXPECT_EQ(link_->arrived("a").size(), 1u);
}

TEST_F(OutboxTest, WhatTheTargetRefusesIsDeadInTheOutbox) {
  link_->refuses_keys = true;
  open();
  Job job = job_in("a");
  job.unique_key = "k";
  const JobId id = enqueue(job).value().id;
  ASSERT_TRUE(eventually([&] { return status().dead == 1; }));
  const JobInfo info = find(id).value();
  EXPECT_EQ(info.state, JobState::kDead);
  EXPECT_EQ(info.history.back().text, "no keys here");
  EXPECT_EQ(info.job.queue, "a");
  const auto watched = wait<JobInfo>([&](auto done) { outbox_->watch(id, std::move(done)); });
  EXPECT_EQ(watched.value().state, JobState::kDead);
}

TEST_F(OutboxTest, AFullOutboxSaysSo) {
  link_->down = true;
  open(10);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(enqueue(job_in("a")));
  const auto refused = enqueue(job_in("a"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(outbox_->pressure().level, Pressure::Level::kBlocked);
  EXPECT_NE(outbox_->pressure().reason.find("nobody answers"), std::string::npos) << outbox_->pressure().reason;
  link_->down = false;
  ASSERT_TRUE(is_empty());
  EXPECT_TRUE(enqueue(job_in("a")));
}

TEST_F(OutboxTest, AJobInTheOutboxIsFoundExplainedAndCancelled) {
  link_->down = true;
  open();
  const JobId id = enqueue(job_in("a", "hello")).value().id;
  const JobInfo info = find(id).value();
  EXPECT_EQ(info.job.body, "hello");
  EXPECT_EQ(info.state, JobState::kReady);
  EXPECT_EQ(info.note, "in the outbox, not handed to the broker yet");
  const auto why = wait<Explanation>([&](auto done) { outbox_->explain(id, std::move(done)); });
  EXPECT_EQ(why.value().code, "outbox");
  const auto cancelled =
      wait<std::vector<Status>>([&](auto done) { outbox_->cancel({id}, {}, std::move(done)); });
  EXPECT_TRUE(cancelled.value().front());
  EXPECT_EQ(status().waiting, 0u);
  const auto gone = find(id);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kUnavailable) << "only the target knows now";
}

TEST_F(OutboxTest, AWatchFollowsTheJobToTheTarget) {
  link_->down = true;
  open();
  const JobId id = enqueue(job_in("a")).value().id;
  std::atomic<bool> finished{false};
  const GiveUp give_up = outbox_->watch(id, [&](const Result<JobInfo>& info) {
    EXPECT_TRUE(info && info->state == JobState::kDone);
    finished = true;
  });
  const GiveUp other = outbox_->watch(id, [](const Result<JobInfo>&) { FAIL() << "it was given up"; });
  link_->down = false;
  ASSERT_TRUE(is_empty());
  other();
  auto subscription = outbox_->subscribe({.queues = {{"a", 1}}}, [&](std::vector<Lease> leases) {
    for (const Lease& lease : leases) {
      outbox_->settle({{.lease = {lease.job.id, lease.token}, .outcome = Done{}}},
                      [](const Result<std::vector<Status>>&) {});
    }
  });
  ASSERT_TRUE(subscription);
  EXPECT_TRUE(eventually([&] { return finished.load(); }));
}

TEST_F(OutboxTest, AnOutboxBelongsToOneTarget) {
  open();
  outbox_.reset();
  const auto other = OutboxBroker::open({.directory = folder_.path() + "/outbox", .target = "elsewhere"},
                                        []() -> Result<Target> { return Error{ErrorCode::kUnavailable, ""}; });
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(other.error().message.find("belongs to there"), std::string::npos) << other.error().message;
}

TEST_F(OutboxTest, ATargetWhoseSettingsAreWrongIsRefusedAtOnce) {
  const auto wrong =
      OutboxBroker::open({.directory = folder_.path() + "/outbox", .target = "there"},
                         []() -> Result<Target> { return Error{ErrorCode::kInvalidArgument, "no such setting"}; });
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "no such setting");
}

TEST_F(OutboxTest, TwoProcessesShareOneAndOneOfThemForwards) {
  open();
  auto second = OutboxBroker::open({.directory = folder_.path() + "/outbox", .target = "there"},
                                   [this]() -> Result<Target> { return Target{link_, inspector_}; });
  ASSERT_TRUE(second) << second.error().message;
  std::unique_ptr<OutboxBroker> first = std::exchange(outbox_, std::move(*second));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(enqueue(job_in("a", std::to_string(i))));
  ASSERT_TRUE(is_empty());
  EXPECT_FALSE(status().forwards_here);
  EXPECT_EQ(link_->arrived("a").size(), 100u);
  // The other takes over.
  first.reset();
  ASSERT_TRUE(enqueue(job_in("a", "last")));
  ASSERT_TRUE(is_empty());
  EXPECT_TRUE(status().forwards_here);
  EXPECT_EQ(link_->arrived("a").back(), "last");
}

}  // namespace
}  // namespace bide::outbox
