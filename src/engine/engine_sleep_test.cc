// The engine's thread sleeps until something is due, by clocks that may jump meanwhile.

#include <future>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bide/wait.h"
#include "engine/engine.h"
#include "support/seeded_random.h"
#include "support/simulated_disk.h"
#include "support/virtual_clock.h"

namespace bide::engine {
namespace {

class SleepingEngine : public testing::Test {
 protected:
  SleepingEngine() {
    auto opened =
        Engine::open({.directory = "/store", .disk = &disk_, .clock = &clock_, .random = &random_});
    EXPECT_TRUE(opened);
    engine_ = std::move(*opened);
  }

  // Its subscriber is told when it is there. The engine is asleep when this returns.
  std::future<void> start_of(Job job) {
    EXPECT_TRUE(wait<std::vector<Result<Enqueued>>>([&](auto done) { engine_->enqueue({job}, std::move(done)); }));
    auto started = std::make_shared<std::promise<void>>();
    auto future = started->get_future();
    subscription_ = *engine_->subscribe({.credit = 1}, [started](const std::vector<Lease>&) { started->set_value(); });
    engine_->wait_until_idle();
    return future;
  }
  static bool is_there(const std::future<void>& future) {
    return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  support::SimulatedDisk disk_{1};
  support::VirtualClock clock_;
  support::SeededRandom random_{1};
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Subscription> subscription_;
};

// Nothing but the clock wakes it in these tests: whoever waits for a job that is not handed out waits for ever.

TEST_F(SleepingEngine, IsWokenWhenElapsedTimeHasGoneOn) {
  Job job{.kind = "work"};
  job.delay = std::chrono::hours(1);
  const auto started = start_of(std::move(job));
  clock_.advance(std::chrono::hours(1));
  started.wait();
}

TEST_F(SleepingEngine, IsWokenWhenTheWallClockIsSetForward) {
  Job job{.kind = "work"};
  job.due = Time(std::chrono::floor<Milliseconds>(std::chrono::microseconds(clock_.now().wall_us))) + std::chrono::hours(1);
  const auto started = start_of(std::move(job));
  clock_.step_wall(3'600'000);
  started.wait();
}

TEST_F(SleepingEngine, ADelayIsNotOverWhenTheWallClockIsSetForward) {
  Job job{.kind = "work"};
  job.delay = std::chrono::hours(1);
  const auto started = start_of(std::move(job));
  clock_.step_wall(3'600'000);
  engine_->wait_until_idle();
  EXPECT_FALSE(is_there(started));
  clock_.advance(std::chrono::hours(1));
  started.wait();
}

}  // namespace
}  // namespace bide::engine
