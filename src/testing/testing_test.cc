#include "bide/testing.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace bide::testing {
namespace {

using namespace std::chrono_literals;

TEST(Kit, AJobRunsWhenItIsDueAndNotBefore) {
  Kit kit;
  std::vector<std::string> ran;
  kit.worker().handle("remind", [&](const std::string& body) { ran.push_back(body); });
  const JobId id = kit.client().enqueue("remind", "ann", {.delay = 3h}).value();
  kit.advance(3h - 1ms);
  EXPECT_EQ(kit.run_due(), 0u);
  EXPECT_EQ(kit.enqueued("remind").size(), 1u);
  kit.advance(1ms);
  EXPECT_EQ(kit.run_due(), 1u);
  EXPECT_EQ(ran, std::vector<std::string>{"ann"});
  EXPECT_EQ(kit.find(id).state, JobState::kDone);
  EXPECT_TRUE(kit.enqueued().empty());
  EXPECT_EQ(kit.done("remind").size(), 1u);
}

TEST(Kit, PlayRunsEveryRetryAtItsMoment) {
  Kit kit;
  std::vector<Milliseconds> moments;
  const Time start = kit.now();
  kit.worker().handle("pay", [&] {
    moments.push_back(kit.now() - start);
    throw std::runtime_error("declined");
  });
  kit.client().enqueue("pay", "", {.retry = RetryPolicy::steps({10s, 100s, 1h})}).value();
  EXPECT_EQ(kit.play(24h), 4u);
  EXPECT_EQ(kit.now() - start, 24h);
  EXPECT_EQ(moments, (std::vector<Milliseconds>{0s, 10s, 110s, 3710s}));
  ASSERT_EQ(kit.failed().size(), 1u);
  EXPECT_EQ(kit.failed()[0].state, JobState::kDead);
  EXPECT_EQ(kit.failed()[0].history.back().text, "declined");
}

TEST(Kit, FailedShowsWhatWaitsAfterAFaultAndWhy) {
  Kit kit;
  kit.worker().handle("pay", [] { throw std::runtime_error("declined"); });
  const JobId id = kit.client().enqueue("pay", "", {.retry = RetryPolicy::fixed(1min)}).value();
  kit.client().enqueue("untouched", "", {.delay = 1h}).value();
  EXPECT_EQ(kit.run_due(), 1u);
  ASSERT_EQ(kit.failed().size(), 1u);
  EXPECT_EQ(kit.failed()[0].job.id, id);
  EXPECT_EQ(kit.failed()[0].counts.failed, 1u);
  EXPECT_FALSE(kit.why(id).empty());
}

TEST(Kit, EffectsAreRealTogetherWithTheOutcomeAndRunInTheSameCall) {
  Kit kit;
  std::vector<std::string> ran;
  kit.worker().handle("order", [&](Context& context) {
    ran.push_back("order");
    context.enqueue("ship", "42").value();
    EXPECT_TRUE(kit.enqueued("ship").empty()) << "it is not real yet";
  });
  kit.worker().handle("ship", [&](const std::string& body) { ran.push_back("ship " + body); });
  kit.client().enqueue("order", "42").value();
  EXPECT_EQ(kit.run_due(), 2u);
  EXPECT_EQ(ran, (std::vector<std::string>{"order", "ship 42"}));
}

TEST(Kit, ASavedBodyReachesTheNextAttempt) {
  Kit kit;
  std::vector<std::string> bodies;
  kit.worker().handle("steps", [&](const std::string& body, Context& context) {
    bodies.push_back(body);
    if (body == "2") return;
    EXPECT_TRUE(context.save_body(std::to_string(std::stoi(body) + 1)));
    throw std::runtime_error("again");
  });
  kit.client().enqueue("steps", "0", {.retry = RetryPolicy::fixed(1s)}).value();
  EXPECT_EQ(kit.play(1min), 3u);
  EXPECT_EQ(bodies, (std::vector<std::string>{"0", "1", "2"}));
}

TEST(Kit, RetryAtMeansTheKitsTime) {
  Kit kit;
  Time second;
  int attempts = 0;
  kit.advance(1000h);
  const Time tomorrow = kit.now() + 24h;
  kit.worker().handle("poll", [&]() -> Outcome {
    if (++attempts == 1) return retry_at(tomorrow);
    second = kit.now();
    return Done{};
  });
  kit.client().enqueue("poll", "").value();
  EXPECT_EQ(kit.play(48h), 2u);
  EXPECT_EQ(second, tomorrow);
}

TEST(Kit, AResultOfTenMegabytesIsThereAfterwards) {
  Kit kit;
  kit.worker().handle("report", [](Context& context) { context.set_result(std::string(10'000'000, 'x')); });
  const JobId id = kit.client().enqueue("report", "").value();
  EXPECT_EQ(kit.run_due(), 1u);
  EXPECT_EQ(kit.find(id).result.size(), 10'000'000u);
}

TEST(Kit, AJobOfAnUnknownKindWaitsAndSaysWhy) {
  Kit kit({.name = "tester"});
  kit.worker().on_problem([](std::string_view) {});
  const JobId id = kit.client().enqueue("unknown", "").value();
  EXPECT_EQ(kit.run_due(), 1u);
  EXPECT_EQ(kit.find(id).counts.total(), 0u);
  EXPECT_EQ(kit.find(id).note, "no handler for kind 'unknown' in worker tester");
  EXPECT_TRUE(kit.failed().empty());
}

}  // namespace
}  // namespace bide::testing
