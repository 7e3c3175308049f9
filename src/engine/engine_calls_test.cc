// How much one call may bring, and many at once.

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

using Answers = std::vector<Result<Enqueued>>;

class LargeCalls : public testing::Test {
 protected:
  LargeCalls() {
    auto opened = Engine::open({.directory = "/store", .call_bytes = 100'000, .disk = &disk_, .clock = &clock_, .random = &random_});
    EXPECT_TRUE(opened);
    engine_ = std::move(*opened);
  }
  static std::vector<Job> jobs(std::size_t many) {
    return std::vector<Job>(many, Job{.kind = "k", .body = std::string(10'000, 'x')});
  }

  support::SimulatedDisk disk_{1};
  support::VirtualClock clock_;
  support::SeededRandom random_{1};
  std::unique_ptr<Engine> engine_;
};

TEST_F(LargeCalls, OneThatIsTooLargeForABatchIsRefusedAsAWhole) {
  const auto answer = wait<Answers>([&](auto done) { engine_->enqueue(jobs(11), std::move(done)); });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(wait<AuditReport>([&](auto done) { engine_->audit(std::move(done)); })->accepted, 0u);
  EXPECT_TRUE(wait<Answers>([&](auto done) { engine_->enqueue(jobs(4), std::move(done)); }));
}

TEST_F(LargeCalls, ManyAtOnceAreWrittenInSeveralBatches) {
  std::vector<std::future<bool>> answers;
  for (int i = 0; i < 50; ++i) {
    auto answered = std::make_shared<std::promise<bool>>();
    answers.push_back(answered->get_future());
    engine_->enqueue(jobs(4), [answered](const Result<Answers>& answer) { answered->set_value(answer.has_value()); });
  }
  for (auto& answer : answers) EXPECT_TRUE(answer.get());
  const auto report = wait<AuditReport>([&](auto done) { engine_->audit(std::move(done)); });
  EXPECT_TRUE(report->ok());
  EXPECT_EQ(report->live, 200u);
}

}  // namespace
}  // namespace bide::engine
