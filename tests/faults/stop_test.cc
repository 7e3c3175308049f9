// SIGTERM from outside, to a worker that is busy.

#include "faults/fault_bench.h"

namespace bide::faults {
namespace {

class StopTest : public FaultBench, public testing::WithParamInterface<Role> {
 protected:
  void be_the_owner_or_not() {
    if (GetParam() == Role::kOwner)
      leave();
    else
      client();
  }
};

TEST_P(StopTest, ATermUnderLoadEndsWithZeroAndChargesNothing) {
  std::vector<JobId> all = enqueue_many(3000, "sleep", "5");
  // One that never returns, and one that ends by an exception when it is asked to.
  all.push_back(enqueue("hang", "", {.priority = 10}));
  all.push_back(enqueue("patient", "", {.priority = 10}));
  be_the_owner_or_not();
  start_worker("worker", {"grace_ms=5000"});
  ASSERT_TRUE(eventually([&] { return events("worker", "settled") > 50; }));
  processes().terminate("worker");
  EXPECT_EQ(processes().wait("worker", kPatience), 0);
  ASSERT_EQ(events("worker", "stats"), 1u) << "it did not come to an end in order";

  std::size_t done = 0;
  for (const JobId id : all) {
    const JobInfo info = find(id);
    if (info.state == JobState::kDone) {
      ++done;
      continue;
    }
    EXPECT_TRUE(info.state == JobState::kReady || info.state == JobState::kScheduled) << to_string(info.state);
    EXPECT_EQ(info.attempts, 0u);
    EXPECT_EQ(info.counts, AttemptCounts{});
  }
  EXPECT_GT(done, 50u);
  EXPECT_LT(done, all.size()) << "it was not stopped under load";
  EXPECT_EQ(find(all[3000]).attempts, 0u);
  EXPECT_TRUE(audit().ok());
}

TEST_P(StopTest, WithinTheGraceTimeTheProcessIsGoneThoughAHandlerNeverReturns) {
  enqueue("hang", "");
  be_the_owner_or_not();
  constexpr auto kGrace = 4000ms;
  start_worker("worker", {"grace_ms=" + std::to_string(kGrace.count())});
  ASSERT_TRUE(eventually([&] { return events("worker", "start") == 1; }));
  const auto before = std::chrono::steady_clock::now();
  processes().terminate("worker");
  ASSERT_EQ(processes().wait("worker", kPatience), 0);
  // The grace time is a promise about time. The rest is for a machine that is busy with other things.
  EXPECT_LT(std::chrono::steady_clock::now() - before, kGrace + 10s);
}

TEST_P(StopTest, ASecondTermHurries) {
  const JobId id = enqueue("hang", "");
  be_the_owner_or_not();
  start_worker("worker", {"grace_ms=3600000"});
  ASSERT_TRUE(eventually([&] { return events("worker", "start") == 1; }));
  processes().terminate("worker");
  std::optional<int> status = processes().wait("worker", 500ms);
  EXPECT_EQ(status, std::nullopt);
  // A signal that comes before the last one was noticed is the same signal.
  for (int i = 0; !status && i < kPatience / 1s; ++i) {
    processes().terminate("worker");
    status = processes().wait("worker", 1s);
  }
  EXPECT_EQ(status, 0);
  EXPECT_EQ(find(id).attempts, 0u);
  EXPECT_EQ(find(id).state, JobState::kReady);
}

INSTANTIATE_TEST_SUITE_P(Roles, StopTest, testing::Values(Role::kOwner, Role::kGuest), name_of);

}  // namespace
}  // namespace bide::faults
