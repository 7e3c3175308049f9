// The SQL brokers under the suite, each with a real server of its own: crashes cut the connections of the broker; with
// BIDE_SQL_CRASH=server they also kill the server.

#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

#include "brokers/open_broker.h"
#include "conformance/broker_conformance.h"
#include "support/sql_server.h"
#include "support/tcp_proxy.h"

namespace bide::conformance {
namespace {

using support::MariadbServer;
using support::PostgresServer;
using support::SqlServer;
using support::TcpProxy;

// One for all tests of this process; each has its own schema.
template <class Server>
SqlServer& server() {
  static Server one;
  return one;
}

bool kills_server() {
  const char* text = std::getenv("BIDE_SQL_CRASH");
  return text != nullptr && std::string_view(text) == "server";
}

class SqlSubject : public Subject {
 public:
  explicit SqlSubject(SqlServer& server) : server_(server) {
    static int last = 0;
    schema_ = "conformance" + std::to_string(++last);
    open();
  }
  ~SqlSubject() override {
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
    // What is left of it tries to reach the server, in vain. A dead process would not be waited for.
    crashed_.emplace_back([opened = std::exchange(opened_, {}), proxy = std::move(proxy_)]() mutable {
      opened = {};
      proxy.reset();
    });
    if (kills_server()) {
      server_.kill();
      server_.start();
    }
    open();
  }
  // When all were silent, the first one that is not gives the others time, too.
  Milliseconds crash_notice() override { return 2 * kClientTimeout + beat() / 4; }
  // Long enough for several of them to pass beside a crash.
  Milliseconds beat() override { return Milliseconds(600); }
  bool parts_last_chances() override { return true; }
  std::optional<Milliseconds> retention() override { return kRetention; }

  void advance(Milliseconds by) override { std::this_thread::sleep_for(by); }
  Time now() override { return std::chrono::floor<Milliseconds>(std::chrono::system_clock::now()); }

 private:
  static constexpr Milliseconds kClientTimeout{600};
  static constexpr Milliseconds kRetention{8'000};

  void open() {
    proxy_ = std::make_unique<TcpProxy>(server_.port());
    auto opened = brokers::open_broker(server_.url_at(
        proxy_->port(), "schema=" + schema_ + "&client_timeout=" + std::to_string(kClientTimeout.count()) +
                            "ms&result_retention=" + std::to_string(kRetention.count()) + "ms"));
    if (!opened) throw std::runtime_error("the broker does not open: " + opened.error().message);
    opened_ = std::move(*opened);
  }
  void close() {
    opened_ = {};
    proxy_.reset();
  }

  SqlServer& server_;
  std::string schema_;
  std::unique_ptr<TcpProxy> proxy_;
  brokers::OpenedBroker opened_;
  std::vector<std::thread> crashed_;
};

template <class Server>
SubjectParam subject_on(std::string name) {
  return {std::move(name), [] { return std::make_unique<SqlSubject>(server<Server>()); },
          Server::is_installed() ? "" : "the database server is not installed"};
}

INSTANTIATE_TEST_SUITE_P(Postgres, BrokerConformance, testing::Values(subject_on<PostgresServer>("server")), SubjectParam::name_of);
INSTANTIATE_TEST_SUITE_P(Mariadb, BrokerConformance, testing::Values(subject_on<MariadbServer>("server")), SubjectParam::name_of);

}  // namespace
}  // namespace bide::conformance
