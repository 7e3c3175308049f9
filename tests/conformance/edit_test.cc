// Editing: other content and rules for a job that waits or is dead.

#include "conformance/broker_conformance.h"

namespace bide::conformance {

namespace {

constexpr Restart kCloseAndCrash[] = {Restart::kClean, Restart::kCrash};

}  // namespace

TEST_P(BrokerConformance, JobThatWaitsRunsAsItWasEdited) {
  BIDE_NEEDS(edit);
  Job job = make_job();
  job.body = "before";
  job.headers = {{"tenant", "a"}};
  const JobId id = enqueue_one(job);
  const RetryPolicy retry = RetryPolicy::fixed(Milliseconds(5), 3);
  JobEdit edit{.body = "after, and longer",
               .content_type = "text/plain",
               .headers = Headers{{"tenant", "b"}, {"by", "hand"}},
               .queue = "other",
               .retry = retry,
               .time_limit = std::chrono::minutes(7)};
  if (can().priorities) edit.priority = 9;
  ASSERT_TRUE(succeeded(edit_one(id, edit)));
  const JobInfo info = find(id);
  EXPECT_EQ(info.state, JobState::kReady);
  EXPECT_NE(info.note.find("queue default to other"), std::string::npos) << info.note;
  Consumer nobody = subscribe();
  const Lease lease = lease_one("other");
  EXPECT_EQ(nobody.leases().count(), 0u);
  EXPECT_EQ(lease.job.id, id);
  EXPECT_EQ(lease.attempt, 1u);
  EXPECT_EQ(lease.job.kind, job.kind);
  EXPECT_EQ(lease.job.body, "after, and longer");
  EXPECT_EQ(lease.job.content_type, "text/plain");
  EXPECT_EQ(lease.job.headers, *edit.headers);
  EXPECT_EQ(lease.job.retry, retry);
  EXPECT_EQ(lease.job.time_limit, std::chrono::minutes(7));
  if (can().priorities) {
    EXPECT_EQ(lease.job.priority, 9);
  }
}

TEST_P(BrokerConformance, EditLeavesWhatItDoesNotName) {
  BIDE_NEEDS(edit);
  Job job = make_job();
  job.body = "body";
  job.content_type = "text/plain";
  job.headers = {{"tenant", "a"}};
  job.retry = RetryPolicy::fixed(Milliseconds(1), 4);
  if (can().unique_keys) job.unique_key = "one";
  const JobId id = enqueue_one(job);
  ASSERT_TRUE(succeeded(settle_one(lease_one(), RetryAt{.after = std::chrono::hours(1), .error = "down"})));
  ASSERT_TRUE(succeeded(edit_one(id, {.time_limit = std::chrono::minutes(1)})));
  const JobInfo info = find(id);
  EXPECT_EQ(info.state, JobState::kScheduled);
  EXPECT_EQ(info.job.body, "body");
  EXPECT_EQ(info.job.content_type, "text/plain");
  EXPECT_EQ(info.job.headers, job.headers);
  EXPECT_EQ(info.job.retry, job.retry);
  EXPECT_EQ(info.attempts, 1u);
  EXPECT_EQ(info.counts, (AttemptCounts{.failed = 1}));
  ASSERT_EQ(info.history.size(), 1u);
  EXPECT_EQ(info.history[0].text, "down");
  if (can().unique_keys) {
    EXPECT_TRUE(refused(try_enqueue(job), ErrorCode::kAlreadyExists));
  }
}

TEST_P(BrokerConformance, EditMovesTheDueTimeOfAJob) {
  BIDE_NEEDS(edit);
  Job job = make_job();
  job.delay = std::chrono::hours(1);
  const JobId id = enqueue_one(job);
  const Time due = now() + beats(3);
  ASSERT_TRUE(succeeded(edit_one(id, {.body = "sooner", .due = due})));
  EXPECT_EQ(find(id).due, due);
  Consumer consumer = subscribe();
  expect_nothing_before(due, consumer);
  EXPECT_EQ(consumer.leases().take().job.body, "sooner");
}

TEST_P(BrokerConformance, DeadJobIsEditedAndReplayed) {
  BIDE_NEEDS(edit);
  BIDE_NEEDS(dead_set);
  const JobId id = make_dead(make_job(), "no such address");
  ASSERT_TRUE(succeeded(edit_one(id, {.body = "another address"})));
  const JobInfo info = find(id);
  EXPECT_EQ(info.state, JobState::kDead);
  EXPECT_EQ(info.dead_reason, DeadReason::kRejected);
  ASSERT_EQ(info.history.size(), 1u);
  EXPECT_EQ(info.history[0].text, "no such address");
  ASSERT_TRUE(succeeded(replay_one(id)));
  const Lease lease = lease_one();
  EXPECT_EQ(lease.job.id, id);
  EXPECT_EQ(lease.job.body, "another address");
  ASSERT_TRUE(succeeded(settle_one(lease)));
  EXPECT_TRUE(audit().ok());
}

TEST_P(BrokerConformance, EditSurvivesARestart) {
  BIDE_NEEDS(edit);
  const JobId ready = enqueue_one();
  const bool with_dead = can().dead_set;
  const JobId dead = with_dead ? make_dead(make_job("work", "other")) : JobId();
  int round = 0;
  for (const Restart how : kCloseAndCrash) {
    const std::string body = "edited " + std::to_string(++round);
    ASSERT_TRUE(succeeded(edit_one(ready, {.body = body})));
    if (with_dead) {
      ASSERT_TRUE(succeeded(edit_one(dead, {.body = body})));
    }
    restart(how);
    EXPECT_EQ(find(ready).job.body, body);
    if (with_dead) {
      EXPECT_EQ(find(dead).job.body, body);
      EXPECT_EQ(find(dead).state, JobState::kDead);
    }
  }
  EXPECT_EQ(lease_one().job.body, "edited 2");
  if (can().audit) {
    EXPECT_TRUE(audit().ok());
  }
}

TEST_P(BrokerConformance, RunningDoneAndUnknownJobsAreNotEdited) {
  BIDE_NEEDS(edit);
  enqueue_one();
  const Lease lease = lease_one();
  EXPECT_TRUE(refused(edit_one(lease.job.id, {.body = "new"}), ErrorCode::kWrongState)) << "running";
  ASSERT_TRUE(succeeded(settle_one(lease)));
  if (can().results) {
    EXPECT_TRUE(refused(edit_one(lease.job.id, {.body = "new"}), ErrorCode::kWrongState)) << "done";
  }
  EXPECT_TRUE(refused(edit_one(make_id(), {.body = "new"}), ErrorCode::kNotFound));
}

TEST_P(BrokerConformance, EditThatIsNotValidChangesNothing) {
  BIDE_NEEDS(edit);
  Job job = make_job();
  job.body = "body";
  const JobId id = enqueue_one(job);
  EXPECT_TRUE(refused(edit_one(id, {}), ErrorCode::kInvalidArgument)) << "nothing to change";
  EXPECT_TRUE(refused(edit_one(id, {.body = "new", .queue = "../x"}), ErrorCode::kInvalidArgument));
  EXPECT_TRUE(refused(edit_one(id, {.body = "new", .time_limit = Milliseconds(0)}), ErrorCode::kInvalidArgument));
  EXPECT_TRUE(refused(edit_one(id, {.body = "new", .priority = 101}), ErrorCode::kInvalidArgument));
  EXPECT_TRUE(refused(edit_one(id, {.body = std::string(Limits::kBodyBytes + 1, 'x')}), ErrorCode::kInvalidArgument));
  EXPECT_EQ(find(id).job.body, "body");
  EXPECT_EQ(lease_one().job.body, "body");
}

TEST_P(BrokerConformance, JobsAreListedByTheirHeaders) {
  BIDE_NEEDS(edit);  // Brokers that came before it do not look into headers.
  const auto of_tenant = [](const std::string& tenant) {
    Job job = make_job();
    job.headers = {{"tenant", tenant}, {"region", "north"}};
    return job;
  };
  const JobId first = enqueue_one(of_tenant("a"));
  enqueue_one(of_tenant("b"));
  enqueue_one();
  EXPECT_EQ(list_ids({.headers = {{"tenant", "a"}}}), (std::vector<JobId>{first}));
  EXPECT_EQ(list_ids({.headers = {{"region", "north"}}}).size(), 2u);
  EXPECT_EQ(list_ids({.headers = {{"region", "north"}, {"tenant", "c"}}}).size(), 0u);
  const Lease lease = lease_one();
  ASSERT_EQ(lease.job.id, first);
  ASSERT_TRUE(succeeded(settle_one(lease)));
  // A done one while it is kept whole.
  const std::size_t kept = find(first).whole ? 1 : 0;
  EXPECT_EQ(list_ids({.states = {JobState::kDone}, .headers = {{"tenant", "a"}}}).size(), kept);
  EXPECT_TRUE(list_ids({.states = {JobState::kDone}, .headers = {{"tenant", "b"}}}).empty());
}

}  // namespace bide::conformance
