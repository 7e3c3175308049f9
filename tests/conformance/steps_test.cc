// Steps and progress: what a running attempt says of itself.

#include "conformance/broker_conformance.h"

namespace bide::conformance {

namespace {

Status save_step(Broker& broker, const Lease& lease, Step step) {
  return wait<void>([&](auto done) { broker.save_step({lease.job.id, lease.token}, std::move(step), std::move(done)); });
}

}  // namespace

TEST_P(BrokerConformance, LaterAttemptsAreHandedTheStepsThatWereDone) {
  BIDE_NEEDS(steps);
  const JobId id = enqueue_one();
  const Lease first = lease_one();
  EXPECT_TRUE(first.steps.empty());
  ASSERT_TRUE(succeeded(save_step(broker(), first, {"charge", "receipt 7"})));
  ASSERT_TRUE(succeeded(save_step(broker(), first, {"tell", ""})));
  if (can().inspect) {
    EXPECT_EQ(find(id).steps, (std::vector<Step>{{"charge", "receipt 7"}, {"tell", ""}}));
  }
  ASSERT_TRUE(succeeded(settle_one(first, RetryAt{.error = "again"})));
  const Lease second = lease_one();
  EXPECT_EQ(second.steps, (std::vector<Step>{{"charge", "receipt 7"}, {"tell", ""}}));
  ASSERT_TRUE(succeeded(save_step(broker(), second, {"ship", "tomorrow"})));
  ASSERT_TRUE(succeeded(settle_one(second)));
}

TEST_P(BrokerConformance, StepThatIsSavedAgainTakesThePlaceOfTheFirst) {
  BIDE_NEEDS(steps);
  enqueue_one();
  const Lease lease = lease_one();
  ASSERT_TRUE(succeeded(save_step(broker(), lease, {"charge", "one"})));
  ASSERT_TRUE(succeeded(save_step(broker(), lease, {"charge", "two"})));
  ASSERT_TRUE(succeeded(settle_one(lease, Returned{})));
  EXPECT_EQ(lease_one().steps, (std::vector<Step>{{"charge", "two"}}));
}

TEST_P(BrokerConformance, StepsSurviveARestartAndADeath) {
  BIDE_NEEDS(steps);
  BIDE_NEEDS(dead_set);
  const std::vector<Step> steps = {{"charge", std::string("\0\x01 receipt", 10)}};
  const JobId id = enqueue_one();
  const Lease lease = lease_one();
  ASSERT_TRUE(succeeded(save_step(broker(), lease, steps[0])));
  ASSERT_TRUE(succeeded(settle_one(lease, Dead{.error = "no"})));
  for (const Restart how : {Restart::kClean, Restart::kCrash}) {
    restart(how);
    EXPECT_EQ(find(id).steps, steps);
  }
  ASSERT_TRUE(succeeded(replay_one(id)));
  EXPECT_EQ(lease_one().steps, steps);
}

TEST_P(BrokerConformance, StepOfALostLeaseIsRefused) {
  BIDE_NEEDS(steps);
  enqueue_one();
  const Lease lost = lease_one();
  ASSERT_TRUE(succeeded(settle_one(lost, Returned{})));
  EXPECT_TRUE(refused(save_step(broker(), lost, {"charge", "twice"}), ErrorCode::kLeaseLost));
  const Lease lease = lease_one();
  EXPECT_TRUE(refused(save_step(broker(), lost, {"charge", "twice"}), ErrorCode::kLeaseLost));
  EXPECT_TRUE(lease.steps.empty());
  Lease unknown = lease;
  unknown.job.id = make_id();
  EXPECT_TRUE(refused(save_step(broker(), unknown, {"charge", "never"}), ErrorCode::kNotFound));
}

TEST_P(BrokerConformance, StepsBeyondTheirLimitsAreRefused) {
  BIDE_NEEDS(steps);
  enqueue_one();
  const Lease lease = lease_one();
  EXPECT_TRUE(refused(save_step(broker(), lease, {"", "nameless"}), ErrorCode::kInvalidArgument));
  EXPECT_TRUE(refused(save_step(broker(), lease, {"large", std::string(Limits::kStepBytes, 'x')}), ErrorCode::kInvalidArgument));
  for (std::size_t i = 0; i < Limits::kSteps; ++i) {
    ASSERT_TRUE(succeeded(save_step(broker(), lease, {"step " + std::to_string(i), "done"})));
  }
  EXPECT_TRUE(refused(save_step(broker(), lease, {"one more", ""}), ErrorCode::kInvalidArgument));
  EXPECT_TRUE(succeeded(save_step(broker(), lease, {"step 0", "again"})));
  EXPECT_TRUE(succeeded(settle_one(lease)));
}

TEST_P(BrokerConformance, ProgressIsShownWhileTheAttemptGoesOn) {
  BIDE_NEEDS(progress);
  BIDE_NEEDS(inspect);
  const JobId id = enqueue_one();
  const Lease lease = lease_one();
  EXPECT_EQ(find(id).progress, std::nullopt);
  broker().report_progress(ref(lease), {0.25, "page 3"});
  broker().report_progress(ref(lease), {0.5, "page 6"});
  extend_one(lease);  // It may be carried by that.
  EXPECT_TRUE(eventually([&] { return find(id).progress == Progress{0.5, "page 6"}; }));
  ASSERT_TRUE(succeeded(settle_one(lease, Returned{})));
  EXPECT_EQ(find(id).progress, std::nullopt);
  const Lease next = lease_one();
  broker().report_progress(ref(lease), {0.9, "of a lease that is lost"});
  barrier();
  EXPECT_EQ(find(id).progress, std::nullopt);
  ASSERT_TRUE(succeeded(settle_one(next)));
}

}  // namespace bide::conformance
