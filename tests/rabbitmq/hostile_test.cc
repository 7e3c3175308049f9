// Messages in a bide queue that are no jobs, or only look like some. Each ends in the dead set or among the lost ones,
// and whatever is behind it runs.

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bide/wait.h"
#include "brokers/open_broker.h"
#include "brokers/rabbitmq/connection.h"
#include "rabbitmq/rabbitmq_fixture.h"

namespace bide::rabbitmq_test {
namespace {

using brokers::rabbitmq::AmqpMessage;
using brokers::rabbitmq::Connection;
using brokers::rabbitmq::Field;
using brokers::rabbitmq::FieldList;
using brokers::rabbitmq::FieldTable;

constexpr std::size_t kFrame = 131'072;

// Since 1970.
std::int64_t now_ms() {
  return std::chrono::duration_cast<Milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class RabbitmqHostile : public RabbitmqTest<1> {
 protected:
  void SetUp() override {
    RabbitmqTest<1>::SetUp();
    if (IsSkipped()) return;
    auto opened = brokers::open_broker(url());
    ASSERT_TRUE(opened) << opened.error().message;
    opened_ = std::move(*opened);
    // So that the queue is there.
    enqueue_good("first");
    const auto settings = brokers::rabbitmq::parse_amqp_url(url().substr(5), false);
    ASSERT_TRUE(settings);
    auto stranger = Connection::open(*settings, "stranger");
    ASSERT_TRUE(stranger) << stranger.error().message;
    stranger_ = std::move(*stranger);
    ASSERT_TRUE(stranger_->open_channel(1));
  }
  void TearDown() override {
    subscription_.reset();
    stranger_.reset();
    opened_ = {};
    RabbitmqTest<1>::TearDown();
  }

  void enqueue_good(const std::string& body) {
    Job job;
    job.kind = "good";
    job.body = body;
    const auto enqueued =
        wait<std::vector<Result<Enqueued>>>([&](auto done) { opened_.broker->enqueue({job}, std::move(done)); });
    ASSERT_TRUE(enqueued && enqueued->front());
  }

  void put(const AmqpMessage& message) {
    const Status sent = stranger_->publish(1, "", queue_name(), message, true);
    ASSERT_TRUE(sent) << sent.error().message;
  }

  // Settles whatever comes; `outcome` of those that are not "good".
  void work(Outcome outcome = Done{}) {
    auto subscription = opened_.broker->subscribe({.credit = 4}, [this, outcome](std::vector<Lease> leases) {
      std::vector<Settlement> settlements;
      const std::lock_guard lock(mutex_);
      for (const Lease& lease : leases) {
        seen_.push_back(lease.job);
        seen_at_.push_back(now_ms());
        settlements.push_back(
            {.lease = {lease.job.id, lease.token}, .outcome = lease.job.kind == "good" ? Outcome(Done{}) : outcome});
      }
      opened_.broker->settle(std::move(settlements), [](const auto&) {});
    });
    ASSERT_TRUE(subscription);
    subscription_ = std::move(*subscription);
  }
  bool has_run(const std::string& body) {
    const std::lock_guard lock(mutex_);
    for (const Job& job : seen_) {
      if (job.body == body) return true;
    }
    return false;
  }

  std::uint64_t messages_in(const std::string& name) {
    for (const support::RabbitmqQueue& queue : server().queues()) {
      if (queue.name == name) return queue.messages;
    }
    return 0;
  }
  std::uint64_t dead() { return messages_in(prefix_ + ".dead.default"); }
  std::uint64_t lost() { return messages_in(prefix_ + ".lost"); }

  std::vector<JobInfo> dead_jobs() {
    JobFilter filter;
    filter.states = {JobState::kDead};
    auto page = wait<JobPage>([&](auto done) { opened_.inspector->list(filter, "", 1000, std::move(done)); });
    EXPECT_TRUE(page) << page.error().message;
    return page ? page->jobs : std::vector<JobInfo>();
  }

  std::mutex mutex_;
  std::vector<Job> seen_;
  std::vector<std::int64_t> seen_at_;  // Milliseconds since 1970.
  brokers::OpenedBroker opened_;
  std::unique_ptr<Connection> stranger_;
  std::unique_ptr<Subscription> subscription_;
};

AmqpMessage job_like(FieldTable headers) {
  AmqpMessage message;
  message.type = "bad";
  message.body = "body";
  message.headers = std::move(headers);
  return message;
}

FieldTable nested(int depth) {
  FieldTable table{{"x", 1}};
  for (int i = 0; i < depth; ++i) table = {{"t", std::move(table)}};
  return table;
}

TEST_F(RabbitmqHostile, WhatCannotBeReadIsDeadWithTheReasonAndHoldsUpNobody) {
  std::vector<AmqpMessage> bad;
  bad.push_back({});  // No property, no header, no body.
  bad.push_back({.type = "not a name!", .body = "x"});
  bad.push_back({.message_id = "no uuid", .body = std::string("\0\xff\xfe", 3)});
  for (const char* name :
       {"bide-format", "bide-generation", "bide-published", "bide-due", "bide-expires", "bide-limit", "bide-priority",
        "bide-counts", "bide-history", "bide-headers", "bide-retry", "bide-token", "bide-dead-at"}) {
    bad.push_back(job_like({{name, FieldTable{{"a", 1}}}}));
  }
  bad.push_back(job_like({{"bide-format", 99}}));
  bad.push_back(job_like({{"bide-due", std::int64_t{1} << 62}}));
  bad.push_back(job_like({{"bide-published", std::int64_t{1} << 62}}));
  bad.push_back(job_like({{"bide-limit", -1}}));
  bad.push_back(job_like({{"bide-priority", 1'000'000}}));
  bad.push_back(job_like({{"bide-retry", "whenever"}}));
  bad.push_back(job_like({{"bide-counts", FieldList{1, 2}}}));
  bad.push_back(job_like({{"bide-counts", FieldList{"a", "b", "c", "d"}}}));
  bad.push_back(job_like({{"bide-history", FieldList{FieldList{1, 2, "no such fault", "text"}}}}));
  bad.push_back(job_like({{"bide-headers", FieldList{"odd"}}}));
  bad.push_back(job_like({{"bide-headers", FieldList{"long", std::string(100'000, 'h')}}}));
  for (AmqpMessage& message : bad) put(message);
  enqueue_good("behind them");
  work();
  EXPECT_TRUE(eventually([&] { return has_run("behind them"); }));
  EXPECT_TRUE(eventually([&] { return dead() == bad.size(); })) << dead() << " of " << bad.size() << " are dead";
  EXPECT_TRUE(eventually([&] { return messages_in(queue_name()) == 0; }));
  for (const JobInfo& info : dead_jobs()) {
    EXPECT_EQ(info.job.kind, "unreadable");
    ASSERT_FALSE(info.history.empty());
    EXPECT_NE(info.history.back().text, "");
  }
  EXPECT_EQ(lost(), 0u);
}

TEST_F(RabbitmqHostile, OddMessagesWithAKindAreJobs) {
  std::vector<AmqpMessage> odd;
  odd.push_back({.type = "odd", .content_type = "application/x-nobody-knows", .body = "{\"cut off"});
  odd.push_back({.type = "odd", .content_encoding = "gzip", .body = "1"});
  odd.push_back({.type = "odd", .correlation_id = "c", .reply_to = "nowhere", .body = "2"});
  odd.push_back({.type = "odd", .timestamp = ~std::uint64_t{0}, .priority = 255, .persistent = false, .body = "3"});
  odd.push_back({.type = "odd", .headers = nested(1000), .body = "4"});
  odd.push_back({.type = "odd", .headers = {{"x-death", "not a list"}, {"x-delivery-count", "many"}}, .body = "5"});
  odd.push_back(
      {.type = "odd", .headers = {{"x-death", FieldList{FieldTable{{"queue", 1}, {"count", "x"}}}}}, .body = "6"});
  odd.push_back({.type = "odd", .headers = {{"", Field()}, {"", 1.5}, {"same", true}, {"same", false}}, .body = ""});
  for (const AmqpMessage& message : odd) put(message);
  enqueue_good("behind them");
  work();
  EXPECT_TRUE(eventually([&] { return has_run("behind them"); }));
  for (const AmqpMessage& message : odd) {
    EXPECT_TRUE(eventually([&] { return has_run(message.body); })) << message.body;
  }
  EXPECT_TRUE(eventually([&] { return messages_in(queue_name()) == 0; }));
  EXPECT_EQ(dead(), 0u);
}

TEST_F(RabbitmqHostile, OddJobsThatFailAreDeadWithTheirHistory) {
  put({.type = "odd", .content_type = "text/odd", .headers = {{"foreign", std::string(50'000, 'f')}}, .body = "fails"});
  work(Dead{.error = "no use"});
  EXPECT_TRUE(eventually([&] { return dead() == 1; }));
  const std::vector<JobInfo> jobs = dead_jobs();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].job.kind, "odd");
  EXPECT_EQ(jobs[0].job.content_type, "text/odd");
  EXPECT_EQ(jobs[0].history.back().text, "no use");
}

// Headers are not split into frames: what fills one has no room for what the server or bide would add.
TEST_F(RabbitmqHostile, HeadersThatFillAFrameBlockNothing) {
  for (const std::size_t room : {200u, 500u, 2000u, 20'000u}) {
    AmqpMessage unreadable;
    unreadable.body = "unreadable";
    unreadable.headers = {{"h", std::string(kFrame - room, 'h')}};
    put(unreadable);
    AmqpMessage job = unreadable;
    job.type = "large";
    job.body = "large";
    put(job);
  }
  AmqpMessage many;
  for (int i = 0; i < 7000; ++i) many.headers.emplace_back("h" + std::to_string(i), i);
  ASSERT_NO_FATAL_FAILURE(put(many));
  enqueue_good("behind them");
  work(RetryAt{.after = Milliseconds(0), .error = "once more"});
  EXPECT_TRUE(eventually([&] { return has_run("behind them"); }));
  EXPECT_TRUE(eventually([&] { return dead() + lost() >= 5; })) << dead() << " dead, " << lost() << " lost";
  // A retry carries what bide knows of, and that is short.
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex_);
    return std::count_if(seen_.begin(), seen_.end(), [](const Job& job) { return job.kind == "large"; }) >= 8;
  }));
}

// A delivery adds a header to what has none to spare; the worker that gets it must be able to take it.
TEST_F(RabbitmqHostile, LargeHeadersGrowOnTheirWayAndAreTaken) {
  put({.type = "large", .headers = {{"h", std::string(kFrame - 150, 'h')}}, .body = "grows"});
  {
    // Handed out to somebody whose connection ends: it is delivered again, with the number of deliveries.
    const auto settings = brokers::rabbitmq::parse_amqp_url(url().substr(5), false);
    auto dies = Connection::open(*settings, "dies");
    ASSERT_TRUE(dies);
    ASSERT_TRUE((*dies)->open_channel(1));
    ASSERT_TRUE((*dies)->consume(1, {.queue = queue_name(), .tag = "dies", .prefetch = 10}));
    int taken = 0;
    EXPECT_TRUE(eventually([&] {
      const auto event = (*dies)->next_event();
      taken += event && event->has_value() && std::holds_alternative<brokers::rabbitmq::Delivery>(**event) ? 1 : 0;
      return taken == 2;
    }));
  }
  enqueue_good("behind it");
  work();
  EXPECT_TRUE(eventually([&] { return has_run("behind it"); }));
  EXPECT_TRUE(eventually([&] { return has_run("grows"); }));
  EXPECT_TRUE(eventually([&] { return messages_in(queue_name()) == 0; }));
}

// As if nodes whose clocks differ had measured its delay.
TEST_F(RabbitmqHostile, WhatTheServerLetsPassBeforeItIsDueWaitsUntilThen) {
  work();
  const std::int64_t start = now_ms();
  for (const std::int64_t early : {10, 30, 400}) {
    AmqpMessage message = job_like({{"bide-due", start + early}});
    message.body = std::to_string(early);
    put(message);
  }
  for (const std::int64_t early : {400, 30, 10}) {
    ASSERT_TRUE(eventually([&] { return has_run(std::to_string(early)); }));
  }
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (seen_[i].kind != "bad") continue;
    EXPECT_GE(seen_at_[i], start + std::stoll(seen_[i].body)) << seen_[i].body;
  }
}

TEST_F(RabbitmqHostile, WhatIsDueInAnotherAgeByTheClockOfItsSenderIsNotHeldUp) {
  work();
  put(job_like({{"bide-due", now_ms() + 3'600'000}}));
  EXPECT_TRUE(eventually([&] { return has_run("body"); }));
}

TEST_F(RabbitmqHostile, WhatExpiresInAQueueIsLostWhereItIsSeen) {
  // The server looks at the first of a queue only.
  work();
  ASSERT_TRUE(eventually([&] { return has_run("first"); }));
  subscription_.reset();
  AmqpMessage message;
  message.type = "short";
  message.expiration = "1";
  put(message);
  EXPECT_TRUE(eventually([&] { return lost() == 1; }));
}

}  // namespace
}  // namespace bide::rabbitmq_test
