// RabbitmqTest: the fixture of tests on a RabbitMQ of our own. One server for all tests of the executable, names of its
// own for each test.

#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "support/rabbitmq_server.h"

namespace bide::rabbitmq_test {

template <int nodes>
class RabbitmqTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!support::RabbitmqServer::is_installed()) GTEST_SKIP() << "rabbitmq-server is not installed";
    for (int node = 0; node < nodes; ++node) server().start(node);
  }
  void TearDown() override {
    if (support::RabbitmqServer::is_installed()) server().forget(prefix_ + ".");
  }

  static support::RabbitmqServer& server() {
    static support::RabbitmqServer shared(nodes);
    return shared;
  }

  // Of all nodes, under the names of this test.
  std::string url() const {
    std::string hosts;
    for (int node = 0; node < nodes; ++node) hosts += (node > 0 ? "," : "") + host(server().port(node));
    return "amqp://guest:guest@" + hosts + "?prefix=" + prefix_;
  }
  // By way of one port of loopback.
  std::string url(std::uint16_t port) const { return "amqp://guest:guest@" + host(port) + "?prefix=" + prefix_; }
  std::string queue_name(const std::string& queue = "default") const { return prefix_ + ".queue." + queue; }

  // True as soon as it holds; false when it does not for a minute.
  static bool eventually(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

  const std::string prefix_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();

 private:
  static std::string host(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }
};

}  // namespace bide::rabbitmq_test
