// Handlers that misbehave, in a process of their own: each attempt ends as it should, and the worker goes on.

#include "faults/fault_bench.h"

namespace bide::faults {
namespace {

class HandlerTest : public FaultBench, public testing::WithParamInterface<Role> {
 protected:
  void be_the_owner_or_not() {
    if (GetParam() == Role::kOwner)
      leave();
    else
      client();
  }
};

TEST_P(HandlerTest, WhateverAHandlerDoesItsAttemptEndsAsDocumentedAndTheWorkerGoesOn) {
  const RetryPolicy once = RetryPolicy::none();
  const JobId hang = enqueue("hang", "", {.time_limit = 300ms, .retry = once});
  const JobId throws = enqueue("throw_int", "", {.retry = once});
  const JobId large = enqueue("result", std::to_string(10 << 20), {.retry = once});
  const JobId too_large = enqueue("result", std::to_string(30 << 20), {.retry = once});
  be_the_owner_or_not();
  start_worker("worker");
  ASSERT_TRUE(eventually([&] {
    return is(hang, JobState::kDead) && is(throws, JobState::kDead) && is(large, JobState::kDone) &&
           is(too_large, JobState::kDead);
  }));

  EXPECT_EQ(find(hang).counts, (AttemptCounts{.timed_out = 1}));
  EXPECT_NE(find(hang).history.back().text.find("time limit"), std::string::npos);
  EXPECT_EQ(find(throws).counts, (AttemptCounts{.failed = 1}));
  EXPECT_NE(find(throws).history.back().text.find("not a std::exception"), std::string::npos);
  EXPECT_EQ(find(large).result.size(), std::size_t{10} << 20);
  EXPECT_EQ(find(too_large).counts, (AttemptCounts{.failed = 1}));
  EXPECT_NE(find(too_large).history.back().text.find("the result has 31457280 bytes"), std::string::npos);

  const JobId after = enqueue("sleep", "1");
  EXPECT_TRUE(eventually([&] { return is(after, JobState::kDone); })) << "the worker did not go on";
  processes().terminate("worker");
  EXPECT_EQ(processes().wait("worker", kPatience), 0);
  EXPECT_TRUE(audit().ok());
}

TEST_P(HandlerTest, AWorkerWithTooManyAbandonedThreadsLeavesTheWorkToOthers) {
  std::vector<JobId> hanging;
  for (int i = 0; i < 3; ++i) {
    hanging.push_back(enqueue("hang", "", {.time_limit = 300ms, .retry = RetryPolicy::none()}));
  }
  be_the_owner_or_not();
  start_worker("stuck", {"concurrency=2", "abandoned=2"});
  ASSERT_TRUE(eventually([&] { return said("stuck", "problem", "3") && said("stuck", "problem", "taken"); }));
  start_worker("fresh");
  // One may have been on its way to the stuck worker; no more.
  for (int i = 0; i < 10; ++i) {
    const JobId next = enqueue("sleep", "1");
    ASSERT_TRUE(eventually([&] { return is(next, JobState::kDone); }));
  }
  EXPECT_GE(events("fresh", "start"), 9u);
  EXPECT_LE(events("stuck", "start"), 4u);
  for (const JobId id : hanging) EXPECT_EQ(find(id).counts, (AttemptCounts{.timed_out = 1}));
  processes().terminate("stuck");
  EXPECT_EQ(processes().wait("stuck", kPatience), 0);
}

INSTANTIATE_TEST_SUITE_P(Roles, HandlerTest, testing::Values(Role::kOwner, Role::kGuest), name_of);

}  // namespace
}  // namespace bide::faults
