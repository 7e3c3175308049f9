// A server that takes no messages: what publishes nothing goes on, what publishes waits, and nothing happens twice.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bide/client.h"
#include "bide/wait.h"
#include "bide/worker.h"
#include "brokers/open_broker.h"
#include "rabbitmq/rabbitmq_fixture.h"
#include "support/temporary_directory.h"

namespace bide::rabbitmq_test {
namespace {

using namespace std::chrono_literals;

class RabbitmqAlarm : public RabbitmqTest<1> {
 protected:
  void TearDown() override {
    if (support::RabbitmqServer::is_installed()) server().set_memory_alarm(false);
    RabbitmqTest<1>::TearDown();
  }

  static Job job(const std::string& kind, const std::string& body) {
    Job job;
    job.kind = kind;
    job.queue = "jobs";
    job.body = body;
    return job;
  }
  static std::vector<Result<Enqueued>> enqueue(Broker& broker, std::vector<Job> jobs) {
    return wait<std::vector<Result<Enqueued>>>([&](auto done) { broker.enqueue(std::move(jobs), std::move(done)); })
        .value();
  }

  // The server says that it takes nothing when something is published, and not in the moment of the alarm.
  static bool publish_until_blocked(Broker& broker) {
    return eventually([&] {
      if (broker.pressure().level == Pressure::Level::kBlocked) return true;
      broker.enqueue({job("works", "more")}, [](const auto&) {});
      return false;
    });
  }

  // Every tenth job fails the first time, all others are done. Many more fail than the worker may hold.
  void run_through_an_alarm(const std::string& options) {
    constexpr int kJobs = 600, kEvery = 10, kCredit = 8;
    auto producer = brokers::open_broker(url() + options);
    ASSERT_TRUE(producer) << producer.error().message;
    std::vector<Job> jobs;
    for (int i = 0; i < kJobs; ++i) jobs.push_back(job(i % kEvery == 0 ? "fails" : "works", std::to_string(i)));
    for (const auto& each : enqueue(*producer->broker, jobs)) ASSERT_TRUE(each) << each.error().message;

    server().set_memory_alarm(true);
    auto opened = brokers::open_broker(url() + options);
    ASSERT_TRUE(opened) << opened.error().message;
    Worker worker(Client(opened->broker), {.queues = {"jobs"}, .concurrency = 4, .credit = kCredit});
    std::mutex mutex;
    std::map<std::string, int> runs;
    const auto run = [&](const Job& each) {
      const std::lock_guard lock(mutex);
      return ++runs[each.body];
    };
    worker.handle("works", [&](const Job& each) { run(each); });
    worker.handle("fails", [&](const Job& each) -> Outcome {
      if (run(each) == 1) return retry_after(10ms, "not yet");
      return Done{};
    });
    ASSERT_TRUE(worker.start());
    EXPECT_TRUE(eventually([&] { return worker.stats().done == kJobs - kJobs / kEvery; }))
        << "only " << worker.stats().done << " were settled while the server takes no messages";
    EXPECT_EQ(worker.stats().retried, 0u) << "invalid: the server took messages";

    server().set_memory_alarm(false);
    EXPECT_TRUE(eventually([&] { return worker.stats().done == kJobs; }));
    worker.stop();
    EXPECT_EQ(worker.stats().retried, static_cast<std::uint64_t>(kJobs / kEvery));
    for (int i = 0; i < kJobs; ++i) EXPECT_EQ(runs[std::to_string(i)], i % kEvery == 0 ? 2 : 1) << "job " << i;
  }
};

TEST_F(RabbitmqAlarm, JobsThatPublishNothingAreSettledWhileTheServerTakesNoMessages) { run_through_an_alarm(""); }

// BIDE_ALARM_SECONDS=60 for a longer alarm.
TEST_F(RabbitmqAlarm, JobsThatPublishNothingKeepTheirRate) {
  const char* const given = std::getenv("BIDE_ALARM_SECONDS");
  const int seconds = given != nullptr ? std::atoi(given) : 8;
  constexpr int kBefore = 5, kEvery = 20, kConcurrency = 4;
  const int jobs = (kBefore + seconds + 5) * kConcurrency * 100;  // More than there is time for.
  auto opened = brokers::open_broker(url());
  ASSERT_TRUE(opened) << opened.error().message;
  std::vector<Job> all;
  for (int i = 0; i < jobs; ++i) all.push_back(job(i % kEvery == 0 ? "fails" : "works", std::to_string(i)));
  for (const auto& each : enqueue(*opened->broker, all)) ASSERT_TRUE(each) << each.error().message;

  Worker worker(Client(opened->broker), {.queues = {"jobs"}, .concurrency = kConcurrency});
  std::mutex mutex;
  std::map<std::string, int> runs;
  const auto run = [&](const Job& each) {
    std::this_thread::sleep_for(10ms);
    const std::lock_guard lock(mutex);
    return ++runs[each.body];
  };
  worker.handle("works", [&](const Job& each) { run(each); });
  worker.handle("fails", [&](const Job& each) -> Outcome {
    if (run(each) == 1) return retry_after(10ms, "not yet");
    return Done{};
  });
  const auto rate_in = [&](std::chrono::seconds time) {
    const std::uint64_t before = worker.stats().done;
    const auto start = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(time);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    return static_cast<double>(worker.stats().done - before) / passed.count();
  };
  ASSERT_TRUE(worker.start());
  ASSERT_TRUE(eventually([&] { return worker.stats().done > 100; }));
  const double before = rate_in(std::chrono::seconds(kBefore));
  server().set_memory_alarm(true);
  ASSERT_TRUE(publish_until_blocked(*opened->broker));
  const double meanwhile = rate_in(std::chrono::seconds(seconds));
  EXPECT_LT(worker.stats().done, static_cast<std::uint64_t>(jobs)) << "invalid: there was nothing left to do";
  server().set_memory_alarm(false);
  std::printf("%.0f jobs/s before the alarm, %.0f in the %d s of it: %.2f\n", before, meanwhile, seconds, meanwhile / before);
  EXPECT_GE(meanwhile, 0.8 * before);
  // Each runs once, and once more after it has failed.
  const auto differ = [&](auto differs) {
    const std::lock_guard lock(mutex);
    int count = 0;
    for (int i = 0; i < jobs; ++i) count += differs(runs[std::to_string(i)], i % kEvery == 0 ? 2 : 1);
    return count;
  };
  for (int minutes = 0; minutes < 4; ++minutes) {
    if (eventually([&] { return differ(std::less<>()) == 0; })) break;
  }
  EXPECT_EQ(differ(std::less<>()), 0) << "have not run";
  worker.stop();
  EXPECT_EQ(differ(std::greater<>()), 0) << "have run too often";
}

TEST_F(RabbitmqAlarm, AnOutcomeThatIsNotConfirmedIsAnsweredWhenTheBrokerIsClosed) {
  auto opened = brokers::open_broker(url() + "&patience=1s");
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_TRUE(enqueue(*opened->broker, {job("works", "")}).front());
  std::mutex mutex;
  std::vector<Lease> leases;
  auto subscription = opened->broker->subscribe({.queues = {{"jobs", 1}}}, [&](std::vector<Lease> arrived) {
    const std::lock_guard lock(mutex);
    for (Lease& lease : arrived) leases.push_back(std::move(lease));
  });
  ASSERT_TRUE(subscription);
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return leases.size() == 1;
  }));
  server().set_memory_alarm(true);
  ASSERT_TRUE(publish_until_blocked(*opened->broker));
  std::vector<Status> answers;
  opened->broker->settle({{.lease = {leases[0].job.id, leases[0].token}, .outcome = RetryAt{.error = "again"}}},
                         [&](Result<std::vector<Status>> statuses) { answers = std::move(statuses).value(); });
  subscription->reset();
  *opened = {};
  ASSERT_EQ(answers.size(), 1u);
  ASSERT_FALSE(answers[0]);
  EXPECT_EQ(answers[0].error().code, ErrorCode::kUnconfirmed);
}

TEST_F(RabbitmqAlarm, EnqueueIsRefusedAtOnceWhileTheConnectionIsKnownToBeBlocked) {
  // So long that the test ends in time only when nobody waits for it.
  auto opened = brokers::open_broker(url() + "&patience=1h");
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_TRUE(enqueue(*opened->broker, {job("works", "before")}).front());
  server().set_memory_alarm(true);
  std::mutex mutex;
  std::vector<Result<Enqueued>> first;
  opened->broker->enqueue({job("works", "first")}, [&](Result<std::vector<Result<Enqueued>>> results) {
    const std::lock_guard lock(mutex);
    first = std::move(results).value();
  });
  ASSERT_TRUE(publish_until_blocked(*opened->broker));
  const auto refused = enqueue(*opened->broker, {job("works", "second")});
  ASSERT_FALSE(refused.front());
  EXPECT_EQ(refused.front().error().code, ErrorCode::kOverloaded);
  server().set_memory_alarm(false);
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return !first.empty();
  }));
  EXPECT_TRUE(first.at(0)) << first.at(0).error().message;
  EXPECT_TRUE(eventually([&] { return opened->broker->pressure().level == Pressure::Level::kOk; }));
  EXPECT_TRUE(enqueue(*opened->broker, {job("works", "third")}).front());
}

TEST_F(RabbitmqAlarm, EachPolicyDoesWhatItSays) {
  support::TemporaryDirectory directory;
  const auto with = [](PressurePolicy policy) { return EnqueueOptions{.queue = "jobs", .pressure = policy}; };
  // So patient that the test ends in time only when no policy leaves it to the broker to wait.
  Client client =
      Client::open(url() + "&patience=1h&outbox=" + directory.path() + "/outbox&outbox_use=spill").value();
  ASSERT_TRUE(eventually([&] { return client.pressure().level == Pressure::Level::kOk; })) << client.pressure().reason;
  ASSERT_TRUE(client.enqueue("works", "before", with(PressurePolicy::fail())));
  std::promise<Pressure> blocked;
  std::promise<void> over;
  const PressureWatch watch = client.on_pressure([&](const Pressure& now) {
    if (now.level == Pressure::Level::kBlocked) blocked.set_value(now);
    else over.set_value();
  });
  server().set_memory_alarm(true);
  ASSERT_TRUE(publish_until_blocked(client.broker()));
  EXPECT_EQ(blocked.get_future().get().cause, Pressure::Cause::kMemory);
  EXPECT_GT(client.pressure().retry_after, 0ms);

  EXPECT_EQ(client.enqueue("works", "failed", with(PressurePolicy::fail())).error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(client.enqueue("works", "ignored", with(PressurePolicy::ignore())).error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(client.enqueue("works", "late", with(PressurePolicy::wait(50ms))).error().code, ErrorCode::kOverloaded);
  std::promise<Result<JobId>> waited;
  client.enqueue_async("works", "waited", with(PressurePolicy::wait(1h)),
                       [&](Result<JobId> id) { waited.set_value(std::move(id)); });
  const auto spilled = client.enqueue("works", "spilled", with(PressurePolicy::spill()));
  ASSERT_TRUE(spilled) << spilled.error().message;
  EXPECT_EQ(client.find(*spilled).value().note, "in the outbox, not handed to the broker yet");

  server().set_memory_alarm(false);
  EXPECT_TRUE(waited.get_future().get());
  over.get_future().get();
  std::mutex mutex;
  std::map<std::string, int> runs;
  Worker worker(client, {.queues = {"jobs"}});
  worker.handle("works", [&](const Job& each) {
    const std::lock_guard lock(mutex);
    ++runs[each.body];
  });
  worker.start().value();
  const auto all_have_run = [&] {
    const std::lock_guard lock(mutex);
    return runs.contains("before") && runs.contains("waited") && runs.contains("spilled");
  };
  EXPECT_TRUE(eventually(all_have_run));
  worker.stop();
  EXPECT_FALSE(runs.contains("failed"));
  EXPECT_FALSE(runs.contains("ignored"));
  EXPECT_FALSE(runs.contains("late"));
}

}  // namespace
}  // namespace bide::rabbitmq_test
