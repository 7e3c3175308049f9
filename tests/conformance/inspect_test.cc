// Looking around: counts, single jobs, lists, explanations, audit, watching.

#include <algorithm>
#include <set>

#include <map>

#include "conformance/broker_conformance.h"

namespace bide::conformance {

TEST_P(BrokerConformance, QueueCountsItsJobsInEveryState) {
  BIDE_NEEDS(inspect);
  Job job = make_job("work", "counted");
  const bool dead_set = can().dead_set;
  if (dead_set) make_dead(job);
  enqueue_one(job);
  ASSERT_TRUE(succeeded(settle_one(lease_one("counted"))));
  const Time oldest = now();
  enqueue_many(4, job);
  Consumer consumer = subscribe_to("counted", 1);
  consumer.leases().take();
  advance(beats(1));
  job.delay = std::chrono::hours(1);
  enqueue_many(2, job);

  QueueInfo info = queue("counted");
  EXPECT_EQ(info.scheduled, 2u);
  EXPECT_EQ(info.ready, 3u);
  EXPECT_EQ(info.running, 1u);
  EXPECT_EQ(info.dead, dead_set ? 1u : 0u);
  if (can().results) {
    EXPECT_EQ(info.done, 1u);
  }
  EXPECT_EQ(info.workers, 1);
  EXPECT_FALSE(info.paused);
  ASSERT_TRUE(info.oldest_ready.has_value());
  EXPECT_GE(*info.oldest_ready, oldest);
  EXPECT_LT(*info.oldest_ready, oldest + beats(1));

  consumer.unsubscribe();
  EXPECT_EQ(queue("counted").workers, 0);
  EXPECT_EQ(queue("counted").running, 1u);
}

TEST_P(BrokerConformance, FoundJobHasEverythingItWasGiven) {
  BIDE_NEEDS(inspect);
  Job job = make_job("resize", "images");
  job.id = make_id();
  job.body = std::string("\0\xff\n\r\"\\", 6);
  job.content_type = "image/png";
  job.headers = {{"a", "1"}, {"b", ""}, {"a", "2"}};
  job.time_limit = Milliseconds(4321);
  job.due = now() + std::chrono::hours(1);
  job.retry = RetryPolicy::fixed(Milliseconds(250), 9);
  if (can().priorities) job.priority = -3;
  if (can().unique_keys) job.unique_key = "the key";
  if (can().expiry) job.expires = now() + std::chrono::hours(2);
  enqueue_one(job);

  const JobInfo info = find(job.id);
  EXPECT_EQ(info.job.id, job.id);
  EXPECT_EQ(info.job.kind, job.kind);
  EXPECT_EQ(info.job.queue, job.queue);
  EXPECT_EQ(info.job.body, job.body);
  EXPECT_EQ(info.job.content_type, job.content_type);
  EXPECT_EQ(info.job.headers, job.headers);
  EXPECT_EQ(info.job.time_limit, job.time_limit);
  EXPECT_EQ(info.job.retry, job.retry);
  EXPECT_EQ(info.job.priority, job.priority);
  EXPECT_EQ(info.job.unique_key, job.unique_key);
  EXPECT_EQ(info.job.expires, job.expires);
  EXPECT_EQ(info.state, JobState::kScheduled);
  EXPECT_EQ(info.due, *job.due);
  EXPECT_EQ(info.attempts, 0u);
  EXPECT_EQ(info.counts, AttemptCounts{});
  EXPECT_TRUE(info.history.empty());
  EXPECT_FALSE(info.finished.has_value());
  EXPECT_FALSE(info.dead_reason.has_value());
}

TEST_P(BrokerConformance, FoundJobSaysWhereItIsInItsLife) {
  BIDE_NEEDS(inspect);
  Job job = make_job();
  job.delay = beats(2);
  const Time accepted = now();
  const JobId id = enqueue_one(job);
  EXPECT_EQ(find(id).state, JobState::kScheduled);
  EXPECT_GE(find(id).due, accepted + beats(2));
  EXPECT_LE(find(id).due, now() + beats(2));
  advance(beats(2));
  barrier();
  EXPECT_EQ(find(id).state, JobState::kReady);
  const Lease lease = lease_as({.worker = "worker 7"});
  JobInfo info = find(id);
  EXPECT_EQ(info.state, JobState::kRunning);
  EXPECT_EQ(info.attempts, 1u);
  EXPECT_EQ(info.worker, "worker 7");
  ASSERT_TRUE(succeeded(settle_one(lease, RetryAt{.after = beats(1), .error = "once more"})));
  info = find(id);
  EXPECT_EQ(info.state, JobState::kScheduled);
  EXPECT_EQ(info.attempts, 1u);
  EXPECT_EQ(info.counts.failed, 1u);
  EXPECT_EQ(info.worker, "");
  ASSERT_EQ(info.history.size(), 1u);
  EXPECT_EQ(info.history[0].text, "once more");
  advance(beats(1));
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  if (can().results) {
    info = find(id);
    EXPECT_EQ(info.state, JobState::kDone);
    EXPECT_EQ(info.attempts, 2u);
    EXPECT_TRUE(info.finished.has_value());
    EXPECT_EQ(info.job.kind, "work");
    EXPECT_EQ(info.job.queue, "default");
    EXPECT_EQ(info.job.body, info.whole ? "body of work" : "");  // Kept as a whole, or nothing of it.
  }
}

TEST_P(BrokerConformance, UnknownJobIsNotFound) {
  BIDE_NEEDS(inspect);
  EXPECT_TRUE(refused(try_find(make_id()), ErrorCode::kNotFound));
  const auto explained = wait<Explanation>([&](auto done) { inspector().explain(make_id(), std::move(done)); });
  EXPECT_TRUE(refused(explained, ErrorCode::kNotFound));
}

TEST_P(BrokerConformance, ListIsInTheOrderOfDueTimesOverManyPagesWithoutDuplicatesOrGaps) {
  BIDE_NEEDS(inspect);
  std::vector<Job> jobs;
  for (int i = 0; i < 240; ++i) {
    jobs.push_back(make_job("work", "listed"));
    jobs.back().delay = std::chrono::minutes(1) + std::chrono::seconds((i * 53) % 60);  // Four jobs for each second.
  }
  const std::vector<JobId> ids = enqueue_all(jobs);
  enqueue_many(20, make_job("work", "other"));
  for (const std::size_t page_size : {std::size_t{1000}, std::size_t{240}, std::size_t{7}, std::size_t{1}}) {
    SCOPED_TRACE(page_size);
    const std::vector<JobInfo> listed = list({.queue = "listed"}, page_size);
    std::set<JobId> seen;
    for (const JobInfo& info : listed) seen.insert(info.job.id);
    EXPECT_EQ(listed.size(), ids.size());
    EXPECT_EQ(seen, std::set<JobId>(ids.begin(), ids.end()));
    EXPECT_TRUE(std::is_sorted(listed.begin(), listed.end(),
                               [](const JobInfo& a, const JobInfo& b) { return a.due < b.due; }));
  }
}

TEST_P(BrokerConformance, JobsThatStayAreListedOnceThoughOthersComeAndGoBetweenPages) {
  BIDE_NEEDS(inspect);
  BIDE_NEEDS(cancel);
  std::vector<Job> jobs;
  for (int i = 0; i < 60; ++i) {
    jobs.push_back(make_job(i % 3 == 0 ? "goes" : "stays", "listed"));
    jobs.back().delay = std::chrono::minutes(1 + i / 2);
  }
  const std::vector<JobId> ids = enqueue_all(jobs);
  std::vector<JobId> seen;
  std::string cursor;
  std::size_t gone = 0;
  do {
    const auto page = try_list({.queue = "listed"}, cursor, 8);
    ASSERT_TRUE(succeeded(page));
    for (const JobInfo& info : page->jobs) {
      if (info.job.kind == "stays") seen.push_back(info.job.id);
    }
    cursor = page->next;
    for (int i = 0; i < 3 && gone < ids.size(); ++i, gone += 3) ASSERT_TRUE(succeeded(cancel_one(ids[gone])));
    Job comes = make_job("comes", "listed");
    comes.delay = std::chrono::seconds(1);
    enqueue_one(comes);
  } while (!cursor.empty());
  std::vector<JobId> stays;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i % 3 != 0) stays.push_back(ids[i]);
  }
  std::sort(seen.begin(), seen.end());
  std::sort(stays.begin(), stays.end());
  EXPECT_EQ(seen, stays);
}

TEST_P(BrokerConformance, ListFiltersByStateQueueKindAndTime) {
  BIDE_NEEDS(inspect);
  Job job = make_job("a", "one");
  job.delay = std::chrono::hours(1);
  const JobId scheduled = enqueue_one(job);
  const JobId running = enqueue_one(make_job("b", "one"));
  const Lease lease = lease_one("one");
  ASSERT_EQ(lease.job.id, running);
  const JobId ready = enqueue_one(make_job("a", "one"));
  const JobId elsewhere = enqueue_one(make_job("a", "two"));
  const Time horizon = now() + std::chrono::minutes(30);

  const auto set = [](const std::vector<JobId>& ids) { return std::set<JobId>(ids.begin(), ids.end()); };
  using Ids = std::set<JobId>;
  EXPECT_EQ(set(list_ids({})), (Ids{scheduled, running, ready, elsewhere}));
  EXPECT_EQ(set(list_ids({.states = {JobState::kReady}})), (Ids{ready, elsewhere}));
  EXPECT_EQ(set(list_ids({.states = {JobState::kScheduled, JobState::kRunning}})), (Ids{scheduled, running}));
  EXPECT_EQ(set(list_ids({.queue = "one"})), (Ids{scheduled, running, ready}));
  EXPECT_EQ(set(list_ids({.queue = "one", .kind = "a"})), (Ids{scheduled, ready}));
  EXPECT_EQ(set(list_ids({.queue = "nowhere"})), Ids{});
  EXPECT_EQ(set(list_ids({.kind = "nothing"})), Ids{});
  EXPECT_EQ(set(list_ids({.queue = "one", .since = horizon})), Ids{scheduled});
  EXPECT_EQ(set(list_ids({.queue = "one", .until = horizon})), (Ids{running, ready}));
}

TEST_P(BrokerConformance, TamperedCursorIsRefused) {
  BIDE_NEEDS(inspect);
  enqueue_many(3);
  EXPECT_TRUE(refused(try_list({}, "not a cursor", 2), ErrorCode::kInvalidArgument));
}

TEST_P(BrokerConformance, ExplainNamesTheOneReason) {
  BIDE_NEEDS(inspect);
  Job job = make_job();
  job.delay = beats(1);
  const JobId id = enqueue_one(job);
  EXPECT_EQ(explain(id), "scheduled");
  advance(beats(1));
  barrier();
  EXPECT_EQ(explain(id), "no_worker");
  if (can().pause) {
    ASSERT_TRUE(succeeded(pause("default")));
    EXPECT_EQ(explain(id), "paused");
    ASSERT_TRUE(succeeded(pause("default", false)));
  }
  const Lease lease = lease_one();
  EXPECT_EQ(explain(id), "running");
  if (can().results) {
    ASSERT_TRUE(succeeded(settle_one(lease)));
    EXPECT_EQ(explain(id), "done");
  }
  if (can().dead_set) {
    EXPECT_EQ(explain(make_dead()), "dead");
  }
}

TEST_P(BrokerConformance, ExplainSaysThatTheWorkersAreBusy) {
  BIDE_NEEDS(inspect);
  const std::vector<JobId> ids = enqueue_many(3);
  Consumer consumer = subscribe({.credit = 1});
  consumer.leases().take();
  barrier();
  EXPECT_EQ(explain(ids[0]), "running");
  for (const JobId& id : {ids[1], ids[2]}) {
    const std::string code = explain(id);
    EXPECT_TRUE(code == "credit" || code == "behind") << code;
  }
}

TEST_P(BrokerConformance, AuditAccountsForEveryJobOfAMixedHistory) {
  BIDE_NEEDS(audit);
  const AuditReport before = audit();
  EXPECT_TRUE(before.ok());
  Job later = make_job();
  later.delay = std::chrono::hours(1);
  enqueue_many(5, later);                                     // 5 stay scheduled ...
  const JobId cancelled = enqueue_one(later);                 // ... 1 is cancelled,
  if (can().cancel) {
    ASSERT_TRUE(succeeded(cancel_one(cancelled)));
  }
  enqueue_many(6);
  const std::vector<Lease> leases = subscribe({.credit = 6}).leases().take(6);
  ASSERT_TRUE(succeeded(settle_one(leases[0])));              // 3 are done,
  ASSERT_TRUE(succeeded(settle_one(leases[1], Done{"result"})));
  ASSERT_TRUE(succeeded(settle_one(leases[2], Done{}, {later})));  // with 1 effect,
  ASSERT_TRUE(succeeded(settle_one(leases[3], RetryAt{.after = beats(1)})));
  ASSERT_TRUE(succeeded(settle_one(leases[4], Dead{.error = "rejected"})));
  Job invalid = make_job("");                                 // 1 is refused,
  EXPECT_TRUE(refused(try_enqueue(invalid), ErrorCode::kInvalidArgument));

  const AuditReport after = audit();
  EXPECT_TRUE(after.ok());
  for (const std::string& problem : after.problems) ADD_FAILURE() << problem;
  EXPECT_EQ(after.accepted - before.accepted, 13u);
  EXPECT_EQ(after.done - before.done, 3u);
  EXPECT_EQ(after.removed - before.removed, can().cancel ? 1u : 0u);
  EXPECT_EQ(after.live - before.live, can().cancel ? 9u : 10u);
  EXPECT_EQ(after.accepted, after.done + after.removed + after.live);
}

TEST_P(BrokerConformance, WatchCompletesWhenTheJobIsDone) {
  BIDE_NEEDS(inspect);
  BIDE_NEEDS(results);
  const JobId id = enqueue_one();
  const Pending<JobInfo> first = watch(id), second = watch(id);
  const Lease lease = lease_one();
  ASSERT_TRUE(succeeded(settle_one(lease, RetryAt{})));
  barrier();
  EXPECT_FALSE(first.answered()) << "a failed attempt is not the end";
  ASSERT_TRUE(succeeded(settle_one(lease_one(), Done{.result = "42", .content_type = "text/plain"})));
  for (const auto& pending : {first, second}) {
    const auto answer = pending.wait();
    ASSERT_TRUE(answer.has_value());
    ASSERT_TRUE(succeeded(*answer));
    EXPECT_EQ((*answer)->state, JobState::kDone);
    EXPECT_EQ((*answer)->result, "42");
    EXPECT_EQ((*answer)->result_content_type, "text/plain");
    EXPECT_EQ(pending.answers(), 1);
  }
}

TEST_P(BrokerConformance, WatchCompletesWhenTheJobIsDead) {
  BIDE_NEEDS(inspect);
  BIDE_NEEDS(dead_set);
  const JobId id = enqueue_one();
  const Pending<JobInfo> pending = watch(id);
  ASSERT_TRUE(succeeded(settle_one(lease_one(), Dead{.error = "never"})));
  const auto answer = pending.wait();
  ASSERT_TRUE(answer.has_value());
  ASSERT_TRUE(succeeded(*answer));
  EXPECT_EQ((*answer)->state, JobState::kDead);
  EXPECT_EQ((*answer)->dead_reason, DeadReason::kRejected);
}

TEST_P(BrokerConformance, WatchCompletesWhenTheJobIsRemoved) {
  BIDE_NEEDS(inspect);
  BIDE_NEEDS(cancel);
  const JobId id = enqueue_one();
  const Pending<JobInfo> pending = watch(id);
  ASSERT_TRUE(succeeded(cancel_one(id)));
  const auto answer = pending.wait();
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(refused(*answer, ErrorCode::kNotFound));
}

TEST_P(BrokerConformance, WatchThatWasGivenUpIsNotAnswered) {
  BIDE_NEEDS(inspect);
  BIDE_NEEDS(cancel);
  const JobId id = enqueue_one();
  const Pending<JobInfo> given_up;
  const GiveUp give_up = inspector().watch(id, given_up.completion());
  const Pending<JobInfo> kept = watch(id);
  give_up();
  give_up();  // Again: nothing.
  barrier();
  ASSERT_TRUE(succeeded(cancel_one(id)));
  ASSERT_TRUE(kept.wait().has_value());
  barrier();
  EXPECT_FALSE(given_up.answered());
  give_up();
}

TEST_P(BrokerConformance, ListWithoutBodiesGivesEverythingElse) {
  BIDE_NEEDS(dead_set);
  Job job = make_job();
  job.body = "a body";
  job.headers = {{"one", "1"}};
  const JobId id = make_dead(job, "for good");
  JobFilter filter{.states = {JobState::kDead}, .queue = job.queue};
  for (const bool bodies : {true, false}) {
    filter.bodies = bodies;
    const std::vector<JobInfo> jobs = list(filter);
    ASSERT_EQ(jobs.size(), 1u);
    EXPECT_EQ(jobs[0].job.id, id);
    EXPECT_EQ(jobs[0].job.body, bodies ? "a body" : "");
    EXPECT_EQ(jobs[0].job.kind, job.kind);
    EXPECT_EQ(jobs[0].job.headers, job.headers);
    ASSERT_FALSE(jobs[0].history.empty());
    EXPECT_EQ(jobs[0].history.back().text, "for good");
  }
}

TEST_P(BrokerConformance, PageEndsEarlyWhenItsJobsAreLargeAndTheNextGoesOn) {
  BIDE_NEEDS(dead_set);
  std::map<JobId, std::string> sent;
  for (int i = 0; i < 6; ++i) {
    Job job = make_job();
    job.body = std::string(JobPage::kMostBytes * 2 / 5, static_cast<char>('a' + i));
    const std::string body = job.body;
    sent[make_dead(std::move(job))] = body;
  }
  JobFilter filter{.states = {JobState::kDead}, .queue = make_job().queue};
  std::size_t pages = 0;
  for (std::string cursor; pages == 0 || !cursor.empty(); ++pages) {
    const Result<JobPage> page = try_list(filter, cursor, 100);
    ASSERT_TRUE(succeeded(page));
    EXPECT_LE(page->jobs.size(), 3u);
    for (const JobInfo& info : page->jobs) {
      const auto found = sent.find(info.job.id);
      ASSERT_NE(found, sent.end()) << "not sent, or given twice";
      EXPECT_TRUE(info.job.body == found->second);
      sent.erase(found);
    }
    cursor = page->next;
  }
  EXPECT_TRUE(sent.empty());
  EXPECT_EQ(pages, 2u);
  filter.bodies = false;
  const Result<JobPage> all = try_list(filter, "", 100);
  ASSERT_TRUE(succeeded(all));
  EXPECT_EQ(all->jobs.size(), 6u);
  EXPECT_EQ(all->next, "");
}

TEST_P(BrokerConformance, WatchIsAnsweredWhenTheBrokerIsClosed) {
  BIDE_NEEDS(inspect);
  const Pending<JobInfo> pending = watch(enqueue_one());
  restart(Restart::kClean);
  const auto answer = pending.wait();
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(refused(*answer, ErrorCode::kUnavailable));
}

TEST_P(BrokerConformance, WatchOfAFinishedOrUnknownJobCompletesAtOnce) {
  BIDE_NEEDS(inspect);
  const auto unknown = watch(make_id()).wait();
  ASSERT_TRUE(unknown.has_value());
  EXPECT_TRUE(refused(*unknown, ErrorCode::kNotFound));
  if (can().dead_set) {
    const auto dead = watch(make_dead()).wait();
    ASSERT_TRUE(dead.has_value());
    ASSERT_TRUE(succeeded(*dead));
    EXPECT_EQ((*dead)->state, JobState::kDead);
  }
}

}  // namespace bide::conformance
