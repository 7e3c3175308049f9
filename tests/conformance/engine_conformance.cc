// The embedded engine under the suite, on a virtual clock and a simulated disk: once with crashes that kill the process
// (what was written stays) and once with crashes that cut the power (what was not synced is gone, or half there). What
// survives of it is drawn from BIDE_SEED.

#include <cstdlib>
#include <stdexcept>

#include "conformance/broker_conformance.h"
#include "engine/engine.h"
#include "support/seeded_random.h"
#include "support/simulated_disk.h"
#include "support/virtual_clock.h"

namespace bide::conformance {
namespace {

enum class Crash { kKill, kPowerLoss };

std::uint64_t seed() {
  const char* text = std::getenv("BIDE_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
}

class EngineSubject : public Subject {
 public:
  explicit EngineSubject(Crash crash) : crash_(crash) { open(); }

  Broker& broker() override { return *engine_; }
  Inspector& inspector() override { return *engine_; }

  void reopen() override {
    engine_.reset();
    open();
  }

  void crash_and_reopen() override {
    // From here on the old process cannot touch the disk, whatever its destructor tries.
    disk_.halt();
    engine_.reset();
    disk_.crash({.unsynced = crash_ == Crash::kKill ? support::Survival::kEverything : support::Survival::kChance});
    open();
  }
  bool crash_keeps_attempts() override { return crash_ == Crash::kKill; }

  void advance(Milliseconds by) override {
    clock_.advance(by);
    engine_->wait_until_idle();
  }
  void step_wall_clock(Milliseconds by) override {
    clock_.step_wall(by);
    engine_->wait_until_idle();
  }
  Time now() override { return Time(std::chrono::floor<Milliseconds>(std::chrono::microseconds(clock_.now().wall_us))); }
  std::optional<Milliseconds> retention() override { return engine::EngineOptions().result_retention; }

 private:
  void open() {
    auto opened = engine::Engine::open({.directory = "/data",
                                        .on_fatal = [](const Error&) {},
                                        .disk = &disk_,
                                        .clock = &clock_,
                                        .random = &random_});
    if (!opened) throw std::runtime_error("the engine does not open: " + opened.error().message);
    engine_ = std::move(*opened);
  }

  const Crash crash_;
  support::VirtualClock clock_;
  support::SimulatedDisk disk_{seed()};
  support::SeededRandom random_{seed()};
  std::unique_ptr<engine::Engine> engine_;
};

SubjectParam subject_that_crashes_by(Crash crash, std::string name) {
  return {std::move(name), [crash] { return std::make_unique<EngineSubject>(crash); }};
}

INSTANTIATE_TEST_SUITE_P(Engine, BrokerConformance,
                         testing::Values(subject_that_crashes_by(Crash::kKill, "killed"),
                                         subject_that_crashes_by(Crash::kPowerLoss, "power_loss")),
                         SubjectParam::name_of);

}  // namespace
}  // namespace bide::conformance
