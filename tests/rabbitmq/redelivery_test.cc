// The server delivers again what was out on a channel or connection that ended. Only the death of a process counts
// against a job.

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bide/wait.h"
#include "brokers/open_broker.h"
#include "rabbitmq/rabbitmq_fixture.h"
#include "support/tcp_proxy.h"

namespace bide::rabbitmq_test {
namespace {

using namespace std::chrono_literals;

// What a worker was handed.
class Taker {
 public:
  Taker(const std::string& url, int credit, const std::string& queue = "default")
      : opened_(brokers::open_broker(url).value()) {
    subscription_ = opened_.broker
                        ->subscribe({.queues = {{queue, 1}}, .credit = credit, .lease = 5min},
                                    [this](std::vector<Lease> leases) {
                                      const std::lock_guard lock(mutex_);
                                      for (Lease& lease : leases) leases_.push_back(std::move(lease));
                                    })
                        .value();
  }
  std::vector<Lease> leases() {
    const std::lock_guard lock(mutex_);
    return leases_;
  }
  Broker& broker() { return *opened_.broker; }
  Status settle(const Lease& lease, Outcome outcome) {
    return wait<std::vector<Status>>([&](auto done) {
             broker().settle({{.lease = {lease.job.id, lease.token}, .outcome = std::move(outcome)}}, std::move(done));
           })
        .value()
        .front();
  }
  void set_credit(int credit) { subscription_->set_credit(credit); }

 private:
  std::mutex mutex_;  // Guards the leases.
  std::vector<Lease> leases_;
  brokers::OpenedBroker opened_;
  std::unique_ptr<Subscription> subscription_;
};

class RabbitmqRedelivery : public RabbitmqTest<1> {
 protected:
  void TearDown() override {
    if (support::RabbitmqServer::is_installed()) set_consumer_timeout(30min);
    RabbitmqTest<1>::TearDown();
  }

  // Looked at by the server now and then.
  static void set_consumer_timeout(Milliseconds timeout) {
    server().evaluate("application:set_env(rabbit, consumer_timeout, " + std::to_string(timeout.count()) +
                      "), application:set_env(rabbit, channel_tick_interval, " +
                      std::to_string(timeout > 1min ? 60'000 : 500) + ")");
  }
  // So often a worker that does nothing against it loses a job.
  void await_timeouts(int times) {
    for (int i = 0; i < times; ++i) {
      const std::string queue = "clock" + std::to_string(++clocks_);
      Taker clock(url() + "&cancel=no", 1, queue);
      ASSERT_TRUE(enqueue(clock.broker(), queue));
      ASSERT_TRUE(eventually([&] { return clock.leases().size() == 2; }));
      ASSERT_TRUE(clock.settle(clock.leases()[1], Done{}));
    }
  }
  // In the default queue and on its way there.
  std::uint64_t waiting() const {
    std::uint64_t sum = 0;
    for (const support::RabbitmqQueue& queue : server().queues()) {
      if (queue.name == queue_name() || queue.name.starts_with(prefix_ + ".delay.")) sum += queue.messages;
    }
    return sum;
  }

  static Result<Enqueued> enqueue(Broker& broker, const std::string& queue = "default") {
    Job job;
    job.kind = "work";
    job.queue = queue;
    auto results = wait<std::vector<Result<Enqueued>>>([&](auto done) { broker.enqueue({job}, std::move(done)); });
    if (!results) return results.error();
    return results->front();
  }

 private:
  int clocks_ = 0;
};

TEST_F(RabbitmqRedelivery, AQueueThatIsDeletedCostsNoJobOfAnotherItsLease) {
  Taker kept(url(), 1, "kept");
  ASSERT_TRUE(enqueue(kept.broker(), "kept"));
  ASSERT_TRUE(eventually([&] { return kept.leases().size() == 1; }));
  std::atomic<int> taken = 0;
  const auto other = kept.broker().subscribe({.queues = {{"gone", 1}}, .credit = 10, .lease = 5min},
                                             [&](const std::vector<Lease>& leases) { taken += static_cast<int>(leases.size()); });
  ASSERT_TRUE(other);
  ASSERT_TRUE(enqueue(kept.broker(), "gone"));
  ASSERT_TRUE(eventually([&] { return taken == 1; }));
  server().delete_queue(queue_name("gone"));
  ASSERT_TRUE(enqueue(kept.broker(), "gone"));
  ASSERT_TRUE(eventually([&] { return taken == 2; })) << "the queue was not made again";
  EXPECT_TRUE(kept.settle(kept.leases()[0], Done{}));
  EXPECT_EQ(kept.leases().size(), 1u) << "it was delivered again";
}

TEST_F(RabbitmqRedelivery, AChannelThatTheServerClosesCostsNoJobACrash) {
  set_consumer_timeout(1s);
  {
    Taker first(url(), 1);
    ASSERT_TRUE(enqueue(first.broker()));
    ASSERT_TRUE(eventually([&] { return first.leases().size() == 2; })) << "it was not delivered again";
    EXPECT_EQ(first.leases()[1].job.id, first.leases()[0].job.id);
    EXPECT_EQ(first.leases()[1].counts.crashed, 0u);
    EXPECT_EQ(first.leases()[1].counts.lost, 1u);
  }
}

// Two workers; what is in hand with one of them outlasts the server's patience several times.
TEST_F(RabbitmqRedelivery, AJobThatOutlastsTheTimeoutOfTheServerRunsOnce) {
  set_consumer_timeout(5s);
  Taker first(url() + "&consumer_timeout=5s", 2);
  Taker second(url() + "&consumer_timeout=5s", 2);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(enqueue(first.broker()));
  const auto all = [&] { return first.leases().size() + second.leases().size(); };
  ASSERT_TRUE(eventually([&] { return all() == 4; }));
  await_timeouts(2);
  EXPECT_EQ(all(), 4u) << "one was handed out again while it runs";
  for (Taker* const taker : {&first, &second}) {
    for (const Lease& lease : taker->leases()) EXPECT_TRUE(taker->settle(lease, Done{}));
  }
  // The copies that held them are still under way.
  await_timeouts(2);
  EXPECT_EQ(all(), 4u) << "one that was done has run again";
  EXPECT_TRUE(eventually([&] { return waiting() == 0; }));
}

TEST_F(RabbitmqRedelivery, AnOutcomeOfAJobThatOutlastedTheTimeoutIsObeyed) {
  set_consumer_timeout(5s);
  Taker worker(url() + "&consumer_timeout=5s", 1);
  ASSERT_TRUE(enqueue(worker.broker()));
  ASSERT_TRUE(eventually([&] { return worker.leases().size() == 1; }));
  await_timeouts(2);
  ASSERT_TRUE(worker.settle(worker.leases()[0], RetryAt{.error = "again"}));
  ASSERT_TRUE(eventually([&] { return worker.leases().size() == 2; }));
  EXPECT_EQ(worker.leases()[1].attempt, 2u);
  EXPECT_EQ(worker.leases()[1].counts.failed, 1u);
  await_timeouts(2);
  ASSERT_TRUE(worker.settle(worker.leases()[1], Done{}));
  await_timeouts(2);
  EXPECT_EQ(worker.leases().size(), 2u);
}

TEST_F(RabbitmqRedelivery, AJobThatOutlastedTheTimeoutSurvivesTheConnectionOfItsWorker) {
  set_consumer_timeout(5s);
  support::TcpProxy proxy(server().port());
  Taker first(url(proxy.port()) + "&consumer_timeout=5s", 1);
  ASSERT_TRUE(enqueue(first.broker()));
  ASSERT_TRUE(eventually([&] { return first.leases().size() == 1; }));
  Taker second(url() + "&consumer_timeout=5s", 1);
  await_timeouts(2);
  proxy.cut();
  await_timeouts(2);
  EXPECT_EQ(second.leases().size(), 0u);
  EXPECT_TRUE(first.settle(first.leases()[0], Done{}));
}

TEST_F(RabbitmqRedelivery, AConnectionThatIsCutCostsNoJobACrashWhoeverGetsItNext) {
  support::TcpProxy proxy(server().port());
  Taker first(url(proxy.port()), 1);
  ASSERT_TRUE(enqueue(first.broker()));
  ASSERT_TRUE(eventually([&] { return first.leases().size() == 1; }));
  Taker second(url(), 1);
  first.set_credit(0);
  proxy.cut();
  ASSERT_TRUE(eventually([&] { return second.leases().size() == 1; }));
  EXPECT_EQ(second.leases()[0].counts.crashed, 0u);
  EXPECT_EQ(second.leases()[0].counts.lost, 1u);
}

TEST_F(RabbitmqRedelivery, FirstEnqueuesOfManyAtTheSameTimeAreAllTaken) {
  constexpr int kClients = 10, kJobs = 40;
  std::vector<std::thread> clients;
  std::mutex mutex;
  std::vector<std::string> refused;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      auto opened = brokers::open_broker(url());
      for (int j = 0; j < kJobs; ++j) {
        const Result<Enqueued> result = opened ? enqueue(*opened->broker, "fresh") : Result<Enqueued>(opened.error());
        if (result) continue;
        const std::lock_guard lock(mutex);
        refused.push_back(result.error().message);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(refused, std::vector<std::string>());
}

TEST_F(RabbitmqRedelivery, WhoComesWhileTheServerStartsAgainWaitsForIt) {
  server().kill();
  Result<Enqueued> result = Error{ErrorCode::kUnavailable, "not tried"};
  std::thread client([&] {
    auto opened = brokers::open_broker(url() + "&patience=5m");
    result = opened ? enqueue(*opened->broker) : Result<Enqueued>(opened.error());
  });
  server().start();
  client.join();
  EXPECT_TRUE(result) << result.error().message;
}

}  // namespace
}  // namespace bide::rabbitmq_test
