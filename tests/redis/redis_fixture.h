// RedisTest: the fixture of tests on a Redis of their own, and the calls of a broker in a short, blocking form.

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bide/wait.h"
#include "brokers/open_broker.h"
#include "support/redis_server.h"

namespace bide::redis_test {

class RedisTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!support::RedisServer::is_installed()) GTEST_SKIP() << "redis-server is not installed";
  }

  static brokers::OpenedBroker open(const std::string& url) {
    auto opened = brokers::open_broker(url);
    if (!opened) throw std::runtime_error("the broker does not open: " + opened.error().message);
    return std::move(*opened);
  }

  static Job make_job(std::string body = "body") {
    Job job;
    job.kind = "work";
    job.body = std::move(body);
    return job;
  }

  static Result<Enqueued> enqueue(Broker& broker, Job job) {
    auto results = wait<std::vector<Result<Enqueued>>>([&](auto done) { broker.enqueue({std::move(job)}, std::move(done)); });
    if (!results) return results.error();
    return std::move(results->at(0));
  }

  // One lease, when it comes within the time.
  static std::optional<Lease> take(Broker& broker, std::chrono::milliseconds at_most = std::chrono::seconds(30)) {
    struct Arrived {
      std::mutex mutex;
      std::condition_variable changed;
      std::optional<Lease> lease;
    };
    const auto arrived = std::make_shared<Arrived>();
    auto subscription = broker.subscribe({.credit = 1}, [arrived](std::vector<Lease> leases) {
      const std::lock_guard lock(arrived->mutex);
      arrived->lease = std::move(leases.front());
      arrived->changed.notify_all();
    });
    std::unique_lock lock(arrived->mutex);
    arrived->changed.wait_for(lock, at_most, [&] { return arrived->lease.has_value(); });
    std::optional<Lease> lease = std::move(arrived->lease);
    lock.unlock();
    return lease;
  }

  static Status settle(Broker& broker, const Lease& lease, Outcome outcome = Done{}) {
    auto statuses = wait<std::vector<Status>>([&](auto done) {
      broker.settle({Settlement{.lease = {lease.job.id, lease.token}, .outcome = std::move(outcome), .effects = {}}}, std::move(done));
    });
    if (!statuses) return statuses.error();
    return statuses->at(0);
  }

  static AuditReport audit(const brokers::OpenedBroker& opened) {
    auto report = wait<AuditReport>([&](auto done) { opened.inspector->audit(std::move(done)); });
    if (!report) throw std::runtime_error("audit: " + report.error().message);
    return std::move(*report);
  }

  // True as soon as it holds; false when it does not for a minute.
  static bool eventually(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }
};

template <class T>
testing::AssertionResult succeeded(const Result<T>& result) {
  if (result) return testing::AssertionSuccess();
  return testing::AssertionFailure() << to_string(result.error().code) << ": " << result.error().message;
}

}  // namespace bide::redis_test
