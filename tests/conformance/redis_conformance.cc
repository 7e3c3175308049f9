// A real Redis under the suite, in real time. All tests share it; each has a prefix of its own there. The broker under test
// reaches it through a proxy, so that a crash is what the server sees of one: connections that end in the middle of
// whatever they were doing, and nobody says goodbye. With BIDE_REDIS_KILL set, the server is killed, too.
//
// The second subject has the bodies in a real MariaDB.

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "brokers/open_broker.h"
#include "conformance/broker_conformance.h"
#include "core/url_escape.h"
#include "support/redis_server.h"
#include "support/sql_server.h"
#include "support/tcp_proxy.h"

namespace bide::conformance {
namespace {

using support::RedisServer;
using support::TcpProxy;

constexpr Milliseconds kClientTimeout{600};
constexpr Milliseconds kRetention{10'000};

RedisServer& server() {
  static RedisServer shared;
  return shared;
}

support::MariadbServer& database() {
  static support::MariadbServer shared;
  return shared;
}

bool kills_server() { return std::getenv("BIDE_REDIS_KILL") != nullptr; }

class RedisSubject : public Subject {
 public:
  // `bodies`: what the URL says about them.
  explicit RedisSubject(std::string bodies = {}) : bodies_(std::move(bodies)) {
    static int last = 0;
    prefix_ = "conformance" + std::to_string(++last);
    open();
  }
  ~RedisSubject() override {
    close();
    for (std::thread& ending : crashed_) ending.join();
  }

  Broker& broker() override { return *opened_.broker; }
  Inspector& inspector() override { return *opened_.inspector; }

  void reopen() override {
    close();
    open();
  }
  void crash_and_reopen() override {
    proxy_->refuse(true);
    proxy_->cut();
    // What is left of it may try for a while to reach the server, in vain. A dead process would not be waited for.
    crashed_.emplace_back([opened = std::exchange(opened_, {}), proxy = std::move(proxy_)]() mutable {
      opened = {};
      proxy.reset();
    });
    if (kills_server()) {
      server().kill();
      server().start();
    }
    open();
  }
  // It was heard of just before, and somebody must look.
  Milliseconds crash_notice() override { return kClientTimeout * 7 / 4; }
  bool parts_last_chances() override { return true; }
  std::optional<Milliseconds> retention() override { return kRetention; }

  void advance(Milliseconds by) override { std::this_thread::sleep_for(by); }
  Time now() override { return std::chrono::floor<Milliseconds>(std::chrono::system_clock::now()); }

 private:
  void open() {
    proxy_ = std::make_unique<TcpProxy>(server().port());
    auto opened = brokers::open_broker("redis://127.0.0.1:" + std::to_string(proxy_->port()) + "?prefix=" + prefix_ +
                                       "&client_timeout=" + std::to_string(kClientTimeout.count()) + "ms" +
                                       "&result_retention=" + std::to_string(kRetention.count()) + "ms" + bodies_);
    if (!opened) throw std::runtime_error("the broker does not open: " + opened.error().message);
    opened_ = std::move(*opened);
  }
  void close() {
    opened_ = {};
    proxy_.reset();
  }

  const std::string bodies_;
  std::string prefix_;
  std::unique_ptr<TcpProxy> proxy_;
  brokers::OpenedBroker opened_;
  std::vector<std::thread> crashed_;
};

INSTANTIATE_TEST_SUITE_P(Redis, BrokerConformance,
                         testing::Values(SubjectParam{
                             "server", [] { return std::make_unique<RedisSubject>(); },
                             RedisServer::is_installed() ? "" : "redis-server is not installed"}),
                         SubjectParam::name_of);

INSTANTIATE_TEST_SUITE_P(RedisAndBodiesInMariadb, BrokerConformance,
                         testing::Values(SubjectParam{
                             "server",
                             [] {
                               return std::make_unique<RedisSubject>("&body_retention=1s&orphan_age=1s&bodies=" +
                                                                     core::escape_url(database().url()));
                             },
                             RedisServer::is_installed() && support::MariadbServer::is_installed() ? "" : "redis-server is not installed"}),
                         SubjectParam::name_of);

}  // namespace
}  // namespace bide::conformance
