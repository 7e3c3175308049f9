// The engine as another process sees it, through the socket of its data directory: the suite talks to a client, and a
// crash is that of the client and of the owner after it. Virtual clock and simulated disk; only the socket is real.

#include <stdexcept>

#include "brokers/shared/shared_client.h"
#include "brokers/shared/shared_server.h"
#include "conformance/broker_conformance.h"
#include "engine/engine.h"
#include "support/seeded_random.h"
#include "support/simulated_disk.h"
#include "support/temporary_directory.h"
#include "support/virtual_clock.h"

namespace bide::conformance {
namespace {

using namespace brokers::shared;

class SharedSubject : public Subject {
 public:
  SharedSubject() { open(); }
  ~SharedSubject() override {
    client_->close();
    server_.reset();
    engine_.reset();
  }

  Broker& broker() override { return *client_; }
  Inspector& inspector() override { return *client_; }

  void reopen() override {
    client_->close();
    server_.reset();
    engine_.reset();
    open();
  }

  void crash_and_reopen() override {
    client_->abort_connection();
    server_.reset();  // It has noticed by then.
    disk_.halt();
    engine_.reset();
    disk_.crash({.unsynced = support::Survival::kEverything});
    open();
  }

  void advance(Milliseconds by) override {
    clock_.advance(by);
    wait_until_arrived();
  }
  void step_wall_clock(Milliseconds by) override {
    clock_.step_wall(by);
    wait_until_arrived();
  }
  Time now() override {
    return Time(std::chrono::floor<Milliseconds>(std::chrono::microseconds(clock_.now().wall_us)));
  }
  std::optional<Milliseconds> retention() override { return engine::EngineOptions().result_retention; }

 private:
  void open() {
    auto engine = engine::Engine::open(
        {.directory = "/data", .on_fatal = [](const Error&) {}, .disk = &disk_, .clock = &clock_, .random = &random_});
    if (!engine) throw std::runtime_error("the engine does not open: " + engine.error().message);
    engine_ = std::move(*engine);
    auto server = SharedServer::open(directory_.path(), *engine_);
    if (!server) throw std::runtime_error("the server does not open: " + server.error().message);
    server_ = std::move(*server);
    auto connected = connect_to_owner(directory_.path(), Milliseconds(10'000));
    if (!connected) throw std::runtime_error("the server does not answer: " + connected.error().message);
    client_ = SharedClient::start(std::move(*connected), []() -> Result<std::variant<OwnerConnection, LocalOwner>> {
      return Error{ErrorCode::kUnavailable, "there is no other owner"};
    });
  }

  // What the engine has handed out has also arrived: answers come behind it.
  void wait_until_arrived() {
    engine_->wait_until_idle();
    (void)wait<std::vector<QueueInfo>>([this](auto done) { client_->queues(std::move(done)); });
  }

  support::TemporaryDirectory directory_;
  support::VirtualClock clock_;
  support::SimulatedDisk disk_{1};
  support::SeededRandom random_{1};
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<SharedServer> server_;
  std::shared_ptr<SharedClient> client_;
};

INSTANTIATE_TEST_SUITE_P(Shared, BrokerConformance,
                         testing::Values(SubjectParam{"guest", [] { return std::make_unique<SharedSubject>(); }}),
                         SubjectParam::name_of);

}  // namespace
}  // namespace bide::conformance
