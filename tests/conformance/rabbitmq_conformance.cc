// A real RabbitMQ under the suite, in real time: one node of our own, or as many as BIDE_RABBITMQ_NODES says. All tests
// share it; each has names of its own there. The broker under test reaches it through proxies, so that a crash is what
// the server sees of one: connections that end in the middle of whatever they were doing, and nobody says goodbye. With
// BIDE_RABBITMQ_KILL set, all nodes are killed, too.

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "brokers/open_broker.h"
#include "conformance/broker_conformance.h"
#include "support/rabbitmq_server.h"
#include "support/tcp_proxy.h"

namespace bide::conformance {
namespace {

using support::RabbitmqServer;
using support::TcpProxy;

RabbitmqServer& server() {
  static const char* const nodes = std::getenv("BIDE_RABBITMQ_NODES");
  static RabbitmqServer shared(nodes != nullptr ? std::atoi(nodes) : 1);
  return shared;
}

// Then a crash is also one of the server. A restart takes seconds, so the suite takes minutes more.
bool kills_server() { return std::getenv("BIDE_RABBITMQ_KILL") != nullptr; }

class RabbitmqSubject : public Subject {
 public:
  RabbitmqSubject() {
    static int last = 0;
    prefix_ = "conformance" + std::to_string(++last);
    open();
  }
  ~RabbitmqSubject() override {
    close();
    for (std::thread& ending : crashed_) ending.join();
    server().forget(prefix_ + ".");
  }

  Broker& broker() override { return *opened_.broker; }
  Inspector& inspector() override { return *opened_.inspector; }

  void reopen() override {
    close();
    open();
  }
  void crash_and_reopen() override {
    for (const auto& proxy : proxies_) {
      proxy->refuse(true);
      proxy->cut();
    }
    // What is left of it may try for a while to reach the server, in vain. A dead process would not be waited for.
    crashed_.emplace_back([opened = std::exchange(opened_, {}), proxies = std::exchange(proxies_, {})]() mutable {
      opened = {};
      proxies.clear();
    });
    if (kills_server()) {
      for (int node = 0; node < server().size(); ++node) server().kill(node);
      for (int node = 0; node < server().size(); ++node) server().start(node);
    }
    open();
  }
  // The server has to take note of the end of a connection.
  Milliseconds crash_notice() override { return beat() / 4; }

  void advance(Milliseconds by) override { std::this_thread::sleep_for(by); }
  Time now() override { return std::chrono::floor<Milliseconds>(std::chrono::system_clock::now()); }

 private:
  void open() {
    std::string hosts;
    for (int node = 0; node < server().size(); ++node) {
      proxies_.push_back(std::make_unique<TcpProxy>(server().port(node)));
      hosts += (node > 0 ? ",127.0.0.1:" : "127.0.0.1:") + std::to_string(proxies_.back()->port());
    }
    auto opened = brokers::open_broker("amqp://guest:guest@" + hosts + "?prefix=" + prefix_);
    if (!opened) throw std::runtime_error("the broker does not open: " + opened.error().message);
    opened_ = std::move(*opened);
  }
  void close() {
    opened_ = {};
    proxies_.clear();
  }

  std::string prefix_;
  std::vector<std::unique_ptr<TcpProxy>> proxies_;
  brokers::OpenedBroker opened_;
  std::vector<std::thread> crashed_;
};

INSTANTIATE_TEST_SUITE_P(Rabbitmq, BrokerConformance,
                         testing::Values(SubjectParam{
                             "server", [] { return std::make_unique<RabbitmqSubject>(); },
                             RabbitmqServer::is_installed() ? "" : "rabbitmq-server is not installed"}),
                         SubjectParam::name_of);

}  // namespace
}  // namespace bide::conformance
