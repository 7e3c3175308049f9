// kill -9 of a real process under load, again and again, on the real disk, with segments so small that snapshots and
// compaction are hit too; then what it said is held against what is there.

#include <thread>

#include <gtest/gtest.h>

#include "crash/checker.h"
#include "crash/processes.h"
#include "crash/read_back.h"
#include "engine/engine.h"
#include "support/seeded_random.h"
#include "support/temporary_directory.h"

namespace bide::crash {
namespace {

constexpr std::uint64_t kKills = 20;
// Below this it was no test of anything.
constexpr std::uint64_t kLeastConfirmed = 1000;
constexpr std::uint64_t kLeastDuplicates = 5;

TEST(KillNine, LosesNothingThatWasConfirmedAndRunsNothingTwiceThatWasSettled) {
  const support::TemporaryDirectory directory;
  const support::TemporaryDirectory histories;
  const std::string store = directory.path() + "/store";
  support::SeededRandom random(static_cast<std::uint64_t>(now_us()));
  Processes processes(BIDE_KILL_CHILD, store, histories.path());
  for (std::uint64_t kill_number = 0; kill_number < kKills; ++kill_number) {
    const std::string name = "child" + std::to_string(kill_number);
    processes.spawn(name, {std::to_string(kill_number * 2)});
    // It must be at work when it is hit.
    for (int left = 6000; count_events(histories.path(), name, "enqueued") < 20 && left > 0; --left) {
      ASSERT_TRUE(processes.reap().empty()) << "it ended by itself";
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random.next_below(200'000)));
    processes.kill(name);
  }
  processes.spawn("last", {"0", "--drain"});
  ASSERT_EQ(processes.wait("last", std::chrono::minutes(5)), 0) << "what was left could not be run";

  engine::EngineOptions options;
  options.directory = store;
  options.done_limit = 10'000'000;
  auto engine = engine::Engine::open(options);
  ASSERT_TRUE(engine) << engine.error().message;
  const Capabilities can = (*engine)->capabilities();
  const Findings findings = check(read_histories(histories.path()), read_back(can, **engine), can);
  std::printf("%s", findings.report().c_str());
  EXPECT_EQ(findings.violation_count(), 0u);
  EXPECT_GE(findings.confirmed, kLeastConfirmed);
  ASSERT_EQ(findings.kills.size(), 1u);
  EXPECT_EQ(findings.kills.begin()->second, kKills);
  EXPECT_GE(findings.duplicates.at("crashed"), kLeastDuplicates) << "no kill hit an attempt";
}

}  // namespace
}  // namespace bide::crash
