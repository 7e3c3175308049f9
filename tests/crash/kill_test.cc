// kill -9 of a real process under load, again and again, on the real disk; then what it said is held against what is
// there.

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "bide/wait.h"
#include "crash/history.h"
#include "engine/engine.h"
#include "support/seeded_random.h"
#include "support/temporary_directory.h"

extern char** environ;

namespace bide::crash {
namespace {

constexpr int kKills = 20;
// Below this it was no test of anything.
constexpr std::uint64_t kLeastConfirmed = 1000;
constexpr std::uint64_t kLeastDuplicates = 5;

pid_t spawn(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, BIDE_KILL_CHILD, nullptr, nullptr, arguments.data(), environ), 0);
  return child;
}

std::uint64_t lines_of(const std::string& path, char event) {
  std::uint64_t count = 0;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) count += !line.empty() && line[0] == event ? 1 : 0;
  return count;
}

TEST(KillNine, LosesNothingThatWasConfirmedAndRunsNothingTwiceThatWasSettled) {
  const support::TemporaryDirectory directory;
  const std::string store = directory.path() + "/store";
  const std::string history = directory.path() + "/history";
  support::SeededRandom random(static_cast<std::uint64_t>(getpid()));
  for (int kill_number = 0; kill_number < kKills; ++kill_number) {
    const std::uint64_t confirmed = lines_of(history, 'E');
    const pid_t child = spawn({"kill_child", store, history, std::to_string(kill_number * 2)});
    // It must be at work when it is hit.
    for (int left = 6000; lines_of(history, 'E') < confirmed + 20 && left > 0; --left) {
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, WNOHANG), 0) << "it ended by itself";
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random.next_below(200'000)));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "kill number " << kill_number << " did not hit";
  }
  const pid_t last = spawn({"kill_child", store, history, "0", "--drain"});
  int status = 0;
  ASSERT_EQ(waitpid(last, &status, 0), last);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "what was left could not be run";

  const Findings findings = examine(history);
  EXPECT_EQ(findings.early, 0u) << findings.first_problem;
  EXPECT_EQ(findings.run_after_settle, 0u) << findings.first_problem;
  EXPECT_EQ(findings.overlap, 0u) << findings.first_problem;
  EXPECT_EQ(findings.attempts_not_counted, 0u) << findings.first_problem;

  engine::EngineOptions options;
  options.directory = store;
  options.done_limit = 10'000'000;
  auto engine = engine::Engine::open(options);
  ASSERT_TRUE(engine) << engine.error().message;
  std::uint64_t lost = 0;
  std::uint64_t unsaid = 0;
  for (const auto& [text, done] : findings.jobs) {
    if (done) continue;
    // Its settle may have been durable without anybody living to say so.
    const auto info =
        wait<JobInfo>([&, id = JobId::parse(text).value()](auto tell) { (*engine)->find(id, std::move(tell)); });
    const bool is_done = info && info->state == JobState::kDone;
    unsaid += is_done ? 1 : 0;
    lost += is_done ? 0 : 1;
  }
  EXPECT_EQ(lost, 0u);
  const auto audit = wait<AuditReport>([&](auto done) { (*engine)->audit(std::move(done)); });
  ASSERT_TRUE(audit);
  EXPECT_TRUE(audit->ok());
  EXPECT_EQ(audit->live, 0u);
  EXPECT_GE(audit->accepted, findings.confirmed);

  EXPECT_EQ(findings.processes, static_cast<std::uint64_t>(kKills) + 1);
  EXPECT_GE(findings.confirmed, kLeastConfirmed);
  EXPECT_GE(findings.duplicates_by_crash, kLeastDuplicates) << "no kill hit an attempt";
  std::printf(
      "confirmed %llu, started %llu, settled %llu (and %llu unsaid), started again: %llu after a kill, %llu retries\n",
      static_cast<unsigned long long>(findings.confirmed), static_cast<unsigned long long>(findings.starts),
      static_cast<unsigned long long>(findings.settled), static_cast<unsigned long long>(unsaid),
      static_cast<unsigned long long>(findings.duplicates_by_crash), static_cast<unsigned long long>(findings.retries));
}

}  // namespace
}  // namespace bide::crash
