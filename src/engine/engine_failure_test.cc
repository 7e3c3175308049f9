// The disk fails: what callers are told.

#include <future>
#include <memory>
#include <string>
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

class FailingStore : public testing::Test {
 protected:
  FailingStore() {
    auto opened = Engine::open({.directory = "/store",
                                .on_fatal = [this](const Error& error) { fatal_.set_value(error); },
                                .disk = &disk_,
                                .clock = &clock_,
                                .random = &random_});
    EXPECT_TRUE(opened);
    engine_ = std::move(*opened);
    engine_->tidy_up();
  }

  Result<std::vector<Result<Enqueued>>> enqueue(std::size_t bytes) {
    return wait<std::vector<Result<Enqueued>>>([&](auto done) {
      engine_->enqueue({Job{.kind = "work", .body = std::string(bytes, 'b')}}, std::move(done));
    });
  }

  // A large one is committed by another thread.
  void expect_unconfirmed(const support::PlannedFault& fault, std::size_t bytes) {
    disk_.plan(fault);
    const auto unknown = enqueue(bytes);
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::kUnconfirmed) << unknown.error().message;
    EXPECT_NE(unknown.error().message.find("/store/journal/"), std::string::npos) << unknown.error().message;
    fatal_.get_future().wait();
    const auto after = enqueue(10);
    ASSERT_FALSE(after);
    EXPECT_EQ(after.error().code, ErrorCode::kUnavailable) << after.error().message;
    EXPECT_EQ(disk_.faults_outstanding(), 0u);
  }

  support::SimulatedDisk disk_{1};
  support::VirtualClock clock_;
  support::SeededRandom random_{1};
  std::promise<Error> fatal_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(FailingStore, AJobWhoseSyncFailedIsUnconfirmedAndTheNextIsNotBegun) {
  expect_unconfirmed({.operation = support::Operation::kSync}, 10);
}

TEST_F(FailingStore, AJobWhoseSyncFailedInAnotherThreadIsUnconfirmed) {
  expect_unconfirmed({.operation = support::Operation::kSync}, 100'000);
}

TEST_F(FailingStore, AWriteThatFindsTheDiskFullAfterAllIsUnconfirmedAndNotRefused) {
  expect_unconfirmed({.operation = support::Operation::kWrite, .fault = support::Fault::kDiskFull}, 10);
}

}  // namespace
}  // namespace bide::engine
