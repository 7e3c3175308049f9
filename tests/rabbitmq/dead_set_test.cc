// Many dead jobs: more than a quorum queue delivers to one consumer.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bide/wait.h"
#include "brokers/open_broker.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/job_message.h"
#include "core/job_ids.h"
#include "platform/clock.h"
#include "rabbitmq/rabbitmq_fixture.h"

namespace bide::rabbitmq_test {
namespace {

using brokers::rabbitmq::AmqpMessage;
using brokers::rabbitmq::Connection;
using brokers::rabbitmq::JobMessage;

class RabbitmqDeadSet : public RabbitmqTest<1> {
 protected:
  void SetUp() override {
    RabbitmqTest<1>::SetUp();
    if (IsSkipped()) return;
    auto opened = brokers::open_broker(url() + options());
    ASSERT_TRUE(opened) << opened.error().message;
    opened_ = std::move(*opened);
    const auto settings = brokers::rabbitmq::parse_amqp_url(url().substr(5), false);
    ASSERT_TRUE(settings);
    auto stranger = Connection::open(*settings, "stranger");
    ASSERT_TRUE(stranger) << stranger.error().message;
    stranger_ = std::move(*stranger);
    ASSERT_TRUE(stranger_->open_channel(1));
    // So that both queues are there.
    Job job;
    job.kind = "first";
    ASSERT_TRUE(enqueue(job));
    run_once(Dead{.error = "enough"});
  }
  void TearDown() override {
    stranger_.reset();
    opened_ = {};
    RabbitmqTest<1>::TearDown();
  }

  virtual std::string options() const { return ""; }

  Status enqueue(const Job& job) {
    const auto results =
        wait<std::vector<Result<Enqueued>>>([&](auto done) { opened_.broker->enqueue({job}, std::move(done)); });
    return results && results->front() ? Status() : Status(Error{ErrorCode::kUnavailable, "not enqueued"});
  }
  // Settles what comes, until there is nothing in the queue.
  void run_once(const Outcome& outcome) {
    auto subscription = opened_.broker->subscribe({.credit = 10}, [this, outcome](std::vector<Lease> leases) {
      for (const Lease& lease : leases) {
        opened_.broker->settle({{.lease = {lease.job.id, lease.token}, .outcome = outcome}}, [](const auto&) {});
      }
    });
    ASSERT_TRUE(subscription);
    EXPECT_TRUE(eventually([&] { return messages_in(queue_name()) == 0; }));
  }

  std::uint64_t messages_in(const std::string& name) {
    for (const support::RabbitmqQueue& queue : server().queues()) {
      if (queue.name == name) return queue.messages;
    }
    return 0;
  }
  std::string dead_queue() const { return prefix_ + ".dead.default"; }

  // Every second of kind "even". Their ids, oldest first.
  std::vector<JobId> bury(int count) {
    core::JobIdSource ids;
    std::vector<JobId> all;
    const std::int64_t now_us = platform::real_clock().now().wall_us;
    for (int i = 0; i < count; ++i) {
      JobMessage message;
      message.job.id = ids.next(now_us / 1000, static_cast<std::uint64_t>(i) + 1);
      message.job.kind = i % 2 == 0 ? "even" : "odd";
      message.job.body = std::to_string(i);
      message.generation = message.published = message.dead_at = now_us + i;
      message.dead = DeadReason::kExhausted;
      all.push_back(message.job.id);
      const Status sent = stranger_->publish(1, "", dead_queue(), encode(std::move(message)), true);
      EXPECT_TRUE(sent);
    }
    const auto buried = static_cast<std::uint64_t>(count) + 1;
    EXPECT_TRUE(eventually([&] { return messages_in(dead_queue()) == buried; }));
    return all;
  }
  std::vector<JobInfo> list(JobFilter filter, std::size_t limit) {
    filter.states = {JobState::kDead};
    std::vector<JobInfo> all;
    std::string cursor;
    do {
      auto page = wait<JobPage>([&](auto done) { opened_.inspector->list(filter, cursor, limit, std::move(done)); });
      EXPECT_TRUE(page) << page.error().message;
      if (!page) return all;
      EXPECT_LE(page->jobs.size(), limit);
      std::move(page->jobs.begin(), page->jobs.end(), std::back_inserter(all));
      cursor = page->next;
    } while (!cursor.empty());
    return all;
  }
  std::vector<Status> cancel(std::vector<JobId> ids, CancelOptions options) {
    return wait<std::vector<Status>>([&](auto done) { opened_.inspector->cancel(ids, options, std::move(done)); })
        .value();
  }

  // For people: how long a cancel takes, one after another.
  void tell_cancels(const char* when) {
    core::JobIdSource ids;
    std::vector<double> ms;
    for (std::uint64_t i = 1; i <= 200; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_TRUE(cancel({ids.next(platform::real_clock().now().wall_us / 1000, i)}, {}).at(0));
      ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    }
    std::sort(ms.begin(), ms.end());
    std::printf("cancel %s dead jobs: p50 %.2f ms, p99 %.2f ms\n", when, ms[100], ms[198]);
  }

  brokers::OpenedBroker opened_;
  std::unique_ptr<Connection> stranger_;
};

TEST_F(RabbitmqDeadSet, ManyThousandsAreListedFoundReplayedAndDeleted) {
  constexpr int kDead = 20'000;
  tell_cancels("without");
  const std::vector<JobId> ids = bury(kDead);
  tell_cancels("with");

  std::vector<JobInfo> all = list({}, 700);
  ASSERT_EQ(all.size(), kDead + 1u);
  std::erase_if(all, [](const JobInfo& info) { return info.job.kind == "first"; });
  for (int i = 0; i < kDead; ++i) {
    ASSERT_EQ(all[static_cast<std::size_t>(i)].job.id, ids[static_cast<std::size_t>(kDead - 1 - i)]) << "newest first";
  }
  const auto found = wait<JobInfo>([&](auto done) { opened_.inspector->find(ids[kDead / 2], std::move(done)); });
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->job.body, std::to_string(kDead / 2));

  std::vector<JobId> even, odd;
  for (const JobInfo& info : list({.kind = "even"}, 1000)) even.push_back(info.job.id);
  for (const JobInfo& info : list({.kind = "odd"}, 1000)) odd.push_back(info.job.id);
  ASSERT_EQ(even.size(), kDead / 2u);
  ASSERT_EQ(odd.size(), kDead / 2u);
  const auto replayed = wait<std::vector<Status>>([&](auto done) { opened_.inspector->replay(even, {}, std::move(done)); });
  ASSERT_TRUE(replayed) << replayed.error().message;
  for (const Status& status : *replayed) ASSERT_TRUE(status) << status.error().message;
  EXPECT_TRUE(eventually([&] { return messages_in(queue_name()) == kDead / 2u; }));
  EXPECT_TRUE(eventually([&] { return messages_in(dead_queue()) == kDead / 2u + 1; }));

  odd.pop_back();
  for (const Status& status : cancel(odd, {.state = JobState::kDead})) ASSERT_TRUE(status) << status.error().message;
  EXPECT_TRUE(eventually([&] { return messages_in(dead_queue()) == 2u; }));
}

class RabbitmqDeadSetForAWhile : public RabbitmqDeadSet {
 protected:
  std::string options() const override { return "&dead_retention=1s"; }
};

TEST_F(RabbitmqDeadSetForAWhile, AMessageWithoutAnExpirationDoesNotKeepTheOthers) {
  ASSERT_TRUE(stranger_->confirm_select(1));
  ASSERT_TRUE(stranger_->publish(1, "", dead_queue(), AmqpMessage{.type = "stranger"}, true));
  ASSERT_TRUE(eventually([&] { return stranger_->next_event().value().has_value(); })) << "it is confirmed";
  EXPECT_TRUE(eventually([&] { return messages_in(dead_queue()) == 0; }));
}

TEST_F(RabbitmqDeadSet, CancelDoesNotLookAtTheDead) {
  // As somebody who looks at them and takes his time.
  ASSERT_TRUE(stranger_->declare_private_queue(1, prefix_ + ".visit.default"));
  core::JobIdSource ids;
  Job job;
  job.kind = "work";
  job.id = ids.next(platform::real_clock().now().wall_us / 1000, 7);
  ASSERT_TRUE(enqueue(job));
  for (const Status& status : cancel({job.id}, {})) EXPECT_TRUE(status) << status.error().message;
  run_once(Dead{.error = "it should have been dropped"});
  EXPECT_TRUE(eventually([&] { return messages_in(dead_queue()) == 1u; }));
}

TEST_F(RabbitmqDeadSet, OneOfSeveralEqualUnreadableMessagesIsDeletedAtATime) {
  AmqpMessage garbage;
  garbage.body = "garbage";
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stranger_->publish(1, "", queue_name(), garbage, true));
  ASSERT_TRUE(eventually([&] { return messages_in(queue_name()) == 3; }));
  run_once(Done{});
  ASSERT_TRUE(eventually([&] { return messages_in(dead_queue()) == 4u; }));
  const JobId id = list({.kind = "unreadable"}, 10).at(0).job.id;
  EXPECT_TRUE(cancel({id}, {.state = JobState::kDead}).at(0));
  EXPECT_TRUE(eventually([&] { return messages_in(dead_queue()) == 3u; }));
}

}  // namespace
}  // namespace bide::rabbitmq_test
