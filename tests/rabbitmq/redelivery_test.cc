// The server delivers again what was out on a channel or connection that ended. Only the death of a process counts
// against a job.

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
  Taker(const std::string& url, int credit) : opened_(brokers::open_broker(url).value()) {
    subscription_ = opened_.broker
                        ->subscribe({.credit = credit, .lease = 5min},
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
  void set_credit(int credit) { subscription_->set_credit(credit); }

 private:
  std::mutex mutex_;  // Guards the leases.
  std::vector<Lease> leases_;
  brokers::OpenedBroker opened_;
  std::unique_ptr<Subscription> subscription_;
};

class RabbitmqRedelivery : public RabbitmqTest<1> {
 protected:
  static Result<Enqueued> enqueue(Broker& broker, const std::string& queue = "default") {
    Job job;
    job.kind = "work";
    job.queue = queue;
    auto results = wait<std::vector<Result<Enqueued>>>([&](auto done) { broker.enqueue({job}, std::move(done)); });
    if (!results) return results.error();
    return results->front();
  }
};

TEST_F(RabbitmqRedelivery, AChannelThatTheServerClosesCostsNoJobACrash) {
  // As an attempt that outlives consumer_timeout, which is looked at now and then.
  server().evaluate("application:set_env(rabbit, consumer_timeout, 1000), application:set_env(rabbit, channel_tick_interval, 500)");
  {
    Taker first(url(), 1);
    ASSERT_TRUE(enqueue(first.broker()));
    ASSERT_TRUE(eventually([&] { return first.leases().size() == 2; })) << "it was not delivered again";
    EXPECT_EQ(first.leases()[1].job.id, first.leases()[0].job.id);
    EXPECT_EQ(first.leases()[1].counts.crashed, 0u);
    EXPECT_EQ(first.leases()[1].counts.lost, 1u);
  }
  server().evaluate("application:set_env(rabbit, consumer_timeout, 1800000), application:set_env(rabbit, channel_tick_interval, 60000)");
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
