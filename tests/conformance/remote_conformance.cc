// A bide server as a C++ program sees it: the suite talks to the remote broker, which talks HTTP over loopback to the
// server's API, which stands in front of the engine. Virtual clock and simulated disk; HTTP, sockets and threads are
// real. A crash is that of the client and of the server together. Nobody can see a client die over HTTP: its leases stay
// valid until they run out.

#include <stdexcept>

#include "brokers/remote/remote_broker.h"
#include "conformance/broker_conformance.h"
#include "engine/engine.h"
#include "server/api/api.h"
#include "server/http/http_server.h"
#include "support/seeded_random.h"
#include "support/simulated_disk.h"
#include "support/virtual_clock.h"

namespace bide::conformance {
namespace {

class RemoteSubject : public Subject {
 public:
  RemoteSubject() { open(); }
  ~RemoteSubject() override { close(); }

  Broker& broker() override { return *remote_; }
  Inspector& inspector() override { return *remote_; }

  void reopen() override {
    close();
    open();
  }

  void crash_and_reopen() override {
    remote_->vanish();
    disk_.halt();
    close();
    disk_.crash({.unsynced = support::Survival::kEverything});
    open();
  }
  bool notices_dead_workers() override { return false; }

  void advance(Milliseconds by) override {
    clock_.advance(by);
    engine_->wait_until_idle();
  }
  void step_wall_clock(Milliseconds by) override {
    clock_.step_wall(by);
    engine_->wait_until_idle();
  }
  Time now() override {
    return Time(std::chrono::floor<Milliseconds>(std::chrono::microseconds(clock_.now().wall_us)));
  }
  bool has_virtual_time() override { return true; }
  std::optional<Milliseconds> retention() override { return engine::EngineOptions().result_retention; }

 private:
  void open() {
    auto engine = engine::Engine::open(
        {.directory = "/data", .on_fatal = [](const Error&) {}, .disk = &disk_, .clock = &clock_, .random = &random_});
    if (!engine) throw std::runtime_error("the engine does not open: " + engine.error().message);
    engine_ = std::move(*engine);
    server::ApiOptions options;
    options.broker = std::shared_ptr<Broker>(std::shared_ptr<void>(), engine_.get());
    options.inspector = engine_.get();
    options.now = [this] { return now(); };
    api_ = std::make_unique<server::Api>(std::move(options));
    auto http = server::HttpServer::start(
        {.listen = {{.host = "127.0.0.1", .port = 0}}, .service = {.routes = api_->routes()}});
    if (!http) throw std::runtime_error("the server does not start: " + http.error().message);
    http_ = std::move(*http);
    brokers::remote::RemoteSettings settings;
    settings.base = http_->urls().front();
    auto remote = brokers::remote::RemoteBroker::open(settings, clock_);
    if (!remote) throw std::runtime_error("the server does not answer: " + remote.error().message);
    remote_ = std::move(*remote);
  }

  void close() {
    remote_.reset();
    http_.reset();
    api_.reset();
    engine_.reset();
  }

  support::VirtualClock clock_;
  support::SimulatedDisk disk_{1};
  support::SeededRandom random_{1};
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<server::Api> api_;
  std::unique_ptr<server::HttpServer> http_;
  std::shared_ptr<brokers::remote::RemoteBroker> remote_;
};

INSTANTIATE_TEST_SUITE_P(Remote, BrokerConformance,
                         testing::Values(SubjectParam{"http", [] { return std::make_unique<RemoteSubject>(); }}),
                         SubjectParam::name_of);

}  // namespace
}  // namespace bide::conformance
