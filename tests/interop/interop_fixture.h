// InteropTest: a RabbitMQ of our own with a bide broker on one side and another system, played by the test, on the
// other.

#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bide/client.h"
#include "bide/wait.h"
#include "bide/worker.h"
#include "brokers/open_broker.h"
#include "rabbitmq/rabbitmq_fixture.h"

namespace bide::interop_test {

class InteropTest : public rabbitmq_test::RabbitmqTest<1> {
 protected:
  void TearDown() override {
    if (support::RabbitmqServer::is_installed()) server().forget(prefix_);
  }

  std::string mode_url(const std::string& options) const { return url() + "&heartbeat=5s&" + options; }

  std::uint64_t messages_in(const std::string& queue) const {
    for (const support::RabbitmqQueue& one : server().queues()) {
      if (one.name == queue) return one.messages;
    }
    return 0;
  }

  static Result<Enqueued> enqueue(Broker& broker, Job job) {
    auto results =
        wait<std::vector<Result<Enqueued>>>([&](auto done) { broker.enqueue({std::move(job)}, std::move(done)); });
    if (!results) return results.error();
    return results->front();
  }
  static Status settle(Broker& broker, const Lease& lease, Outcome outcome) {
    auto results = wait<std::vector<Status>>([&](auto done) {
      broker.settle({{.lease = {lease.job.id, lease.token}, .outcome = std::move(outcome)}}, std::move(done));
    });
    if (!results) return results.error();
    return results->front();
  }
};

// Takes leases one by one.
class Taker {
 public:
  Taker(Broker& broker, const std::string& queue, int credit = 10) {
    auto subscription = broker.subscribe({.queues = {{queue, 1}}, .credit = credit, .lease = std::chrono::seconds(60)},
                                         [this](std::vector<Lease> arrived) {
                                           const std::lock_guard lock(mutex_);
                                           for (Lease& lease : arrived) leases_.push_back(std::move(lease));
                                           arrived_.notify_all();
                                         });
    EXPECT_TRUE(subscription) << subscription.error().message;
    if (subscription) subscription_ = std::move(*subscription);
  }

  // Fails the test after a minute.
  Lease next() {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, std::chrono::minutes(1), [this] { return !leases_.empty(); })) {
      ADD_FAILURE() << "no job came";
      return {};
    }
    Lease lease = std::move(leases_.front());
    leases_.erase(leases_.begin());
    return lease;
  }

 private:
  std::mutex mutex_;  // Guards everything below, except the subscription.
  std::condition_variable arrived_;
  std::vector<Lease> leases_;
  std::unique_ptr<Subscription> subscription_;
};

}  // namespace bide::interop_test
