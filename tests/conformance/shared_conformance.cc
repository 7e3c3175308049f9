// The engine as another process sees it, through the socket of its data directory: the suite talks to a guest, and a
// crash is that of the guest and of the owner after it. Virtual clock and simulated disk; only the socket is real.

#include <stdexcept>

#include "brokers/shared/guest.h"
#include "brokers/shared/host.h"
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
    guest_->close();
    host_.reset();
    engine_.reset();
  }

  Broker& broker() override { return *guest_; }
  Inspector& inspector() override { return *guest_; }

  void reopen() override {
    guest_->close();
    host_.reset();
    engine_.reset();
    open();
  }

  void crash_and_reopen() override {
    guest_->vanish();
    host_.reset();  // It has noticed by then.
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
    auto host = Host::open(directory_.path(), *engine_);
    if (!host) throw std::runtime_error("the host does not open: " + host.error().message);
    host_ = std::move(*host);
    auto greeted = greet_owner(directory_.path(), Milliseconds(10'000));
    if (!greeted) throw std::runtime_error("the host does not answer: " + greeted.error().message);
    guest_ = Guest::start(std::move(*greeted), []() -> Result<std::variant<Greeted, Successor>> {
      return Error{ErrorCode::kUnavailable, "there is no other owner"};
    });
  }

  // What the engine has handed out has also arrived: answers come behind it.
  void wait_until_arrived() {
    engine_->wait_until_idle();
    (void)wait<std::vector<QueueInfo>>([this](auto done) { guest_->queues(std::move(done)); });
  }

  support::TemporaryDirectory directory_;
  support::VirtualClock clock_;
  support::SimulatedDisk disk_{1};
  support::SeededRandom random_{1};
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<Host> host_;
  std::shared_ptr<Guest> guest_;
};

INSTANTIATE_TEST_SUITE_P(Shared, BrokerConformance,
                         testing::Values(SubjectParam{"guest", [] { return std::make_unique<SharedSubject>(); }}),
                         SubjectParam::name_of);

}  // namespace
}  // namespace bide::conformance
