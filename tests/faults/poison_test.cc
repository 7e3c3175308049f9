// A handler that kills its process, which somebody starts again each time.

#include "bide/enqueue_options.h"
#include "faults/fault_bench.h"

namespace bide::faults {
namespace {

class PoisonTest : public FaultBench, public testing::WithParamInterface<Role> {};

TEST_P(PoisonTest, AJobThatAbortsItsWorkerThreeTimesIsDeadAndThoseBesideItAreDone) {
  // It is started first and all the others are held when it strikes; some of them run too long to escape it.
  const JobId killer = enqueue("abort", "20", {.priority = 10});
  std::vector<JobId> others;
  for (int i = 0; i < 8; ++i) others.push_back(enqueue("sleep", "400", {.priority = 5}));
  for (const JobId id : enqueue_many(100, "sleep", "1")) others.push_back(id);
  if (GetParam() == Role::kOwner) leave();

  int deaths = 0;
  for (int number = 1; deaths < 3; ++number) {
    const std::string name = "worker" + std::to_string(number);
    processes().spawn(name, {"work", "credit=200"});
    ASSERT_EQ(processes().wait(name, kPatience), 128 + 6) << "after " << deaths << " deaths";
    ++deaths;
  }
  start_worker("last");
  ASSERT_TRUE(eventually([&] {
    for (const JobId id : others) {
      const JobState state = find(id).state;
      if (state != JobState::kDone && state != JobState::kDead) return false;
    }
    return true;
  })) << "the others did not go on";
  for (const JobId id : others) ASSERT_EQ(find(id).state, JobState::kDone) << "an innocent job died with it";
  EXPECT_TRUE(processes().reap().empty()) << "it killed once more";

  const JobInfo info = find(killer);
  EXPECT_EQ(info.state, JobState::kDead);
  EXPECT_EQ(info.dead_reason, DeadReason::kPoison);
  EXPECT_EQ(info.attempts, 3u);
  EXPECT_EQ(info.counts, (AttemptCounts{.crashed = 3}));
  EXPECT_NE(info.history.back().text.find("killed its worker 3 times"), std::string::npos) << info.history.back().text;
  EXPECT_TRUE(audit().ok());
}

INSTANTIATE_TEST_SUITE_P(Roles, PoisonTest, testing::Values(Role::kOwner, Role::kGuest), name_of);

}  // namespace
}  // namespace bide::faults
