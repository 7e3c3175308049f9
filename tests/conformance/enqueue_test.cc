// Enqueuing: what is accepted, what is refused, and when two jobs are one.

#include <algorithm>
#include <set>
#include <thread>

#include "conformance/broker_conformance.h"

namespace bide::conformance {

TEST_P(BrokerConformance, JobIsDeliveredWithEverythingItWasGiven) {
  Job job;
  job.id = make_id();
  job.kind = "resize:v2.large";
  job.queue = "images_2-x";
  for (int byte = 0; byte < 256; ++byte) job.body.push_back(static_cast<char>(byte));
  job.content_type = "image/png";
  job.headers = {{"traceparent", "00-ab-cd-01"}, {"empty", ""}, {"twice", "first"}, {"twice", "second"}};
  job.time_limit = Milliseconds(123'456);
  job.retry = RetryPolicy::steps({Milliseconds(10'000), Milliseconds(100'000)});
  if (can().priorities) job.priority = 7;
  if (can().unique_keys) job.unique_key = "cat.png \xc3\xa9";
  if (can().expiry) job.expires = now() + std::chrono::hours(1);
  const Time before = now();
  EXPECT_EQ(enqueue_one(job), job.id);

  const Lease lease = lease_one(job.queue);
  EXPECT_EQ(lease.job.id, job.id);
  EXPECT_EQ(lease.job.kind, job.kind);
  EXPECT_EQ(lease.job.queue, job.queue);
  EXPECT_EQ(lease.job.body, job.body);
  EXPECT_EQ(lease.job.content_type, job.content_type);
  EXPECT_EQ(lease.job.headers, job.headers);
  EXPECT_EQ(lease.job.time_limit, job.time_limit);
  EXPECT_EQ(lease.job.retry, job.retry);
  EXPECT_EQ(lease.job.priority, job.priority);
  EXPECT_EQ(lease.job.unique_key, job.unique_key);
  EXPECT_EQ(lease.job.expires, job.expires);
  EXPECT_EQ(lease.attempt, 1u);
  EXPECT_GT(lease.token, 0u);
  EXPECT_GE(lease.due, before);
  EXPECT_LE(lease.due, now());
  EXPECT_EQ(lease.counts, AttemptCounts{});
  EXPECT_TRUE(lease.history.empty());
}

TEST_P(BrokerConformance, EmptyBodyIsABody) {
  Job job = make_job();
  job.body.clear();
  enqueue_one(job);
  EXPECT_EQ(lease_one().job.body, "");
}

TEST_P(BrokerConformance, BodyOfTheGreatestSizeIsDeliveredWhole) {
  Job job = make_job();
  job.body.resize(Limits::kBodyBytes);
  for (std::size_t i = 0; i < job.body.size(); ++i) job.body[i] = static_cast<char>(i * 31 + (i >> 12));
  enqueue_one(job);
  EXPECT_TRUE(lease_one().job.body == job.body);
}

TEST_P(BrokerConformance, BatchGivesOneResultForEachJobInOrder) {
  std::vector<Job> jobs(20, make_job());
  for (Job& job : jobs) job.id = make_id();
  const auto results = try_enqueue(jobs);
  ASSERT_EQ(results.size(), jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    ASSERT_TRUE(succeeded(results[i]));
    EXPECT_EQ(results[i]->id, jobs[i].id);
    EXPECT_FALSE(results[i]->existed);
  }
  Consumer consumer = subscribe();
  EXPECT_TRUE(consumer.leases().wait_for(jobs.size()));
}

TEST_P(BrokerConformance, EmptyBatchGivesNoResults) { EXPECT_TRUE(try_enqueue(std::vector<Job>()).empty()); }

TEST_P(BrokerConformance, InvalidJobIsRefusedAloneWhileTheOthersOfItsBatchSucceed) {
  struct Case {
    const char* what;
    std::function<void(Job&)> spoil;
  };
  const std::vector<Case> cases = {
      {"no kind", [](Job& job) { job.kind.clear(); }},
      {"a space in the kind", [](Job& job) { job.kind = "send email"; }},
      {"no queue", [](Job& job) { job.queue.clear(); }},
      {"a path as queue", [](Job& job) { job.queue = "../x"; }},
      {"a queue with a leading dot", [](Job& job) { job.queue = ".hidden"; }},
      {"a control character in the queue", [](Job& job) { job.queue = std::string("a\0b", 3); }},
      {"a long queue", [](Job& job) { job.queue.assign(Limits::kNameBytes + 1, 'q'); }},
      {"a long kind", [](Job& job) { job.kind.assign(Limits::kNameBytes + 1, 'k'); }},
      {"a large body", [](Job& job) { job.body.assign(Limits::kBodyBytes + 1, 'b'); }},
      {"large headers", [](Job& job) { job.headers = {{"name", std::string(Limits::kHeaderBytes, 'h')}}; }},
      {"a long unique key", [](Job& job) { job.unique_key.assign(Limits::kUniqueKeyBytes + 1, 'u'); }},
      {"delay and due", [this](Job& job) { job.delay = beats(1), job.due = now() + beats(1); }},
      {"a negative delay", [](Job& job) { job.delay = Milliseconds(-1); }},
      {"a delay without end", [](Job& job) { job.delay = Limits::kDelay + Milliseconds(1); }},
      {"a priority too high", [](Job& job) { job.priority = 101; }},
      {"a priority too low", [](Job& job) { job.priority = -101; }},
      {"no time to run", [](Job& job) { job.time_limit = Milliseconds(0); }},
      {"a policy without attempts", [](Job& job) { job.retry.max_attempts = 0; }},
      {"too much jitter", [](Job& job) { job.retry.jitter = 1.5; }},
  };
  std::vector<Job> jobs;
  for (const Case& one : cases) {
    jobs.push_back(make_job("good"));
    jobs.push_back(make_job("bad"));
    one.spoil(jobs.back());
  }
  const auto results = try_enqueue(jobs);
  ASSERT_EQ(results.size(), jobs.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_TRUE(succeeded(results[2 * i])) << "beside " << cases[i].what;
    EXPECT_TRUE(refused(results[2 * i + 1], ErrorCode::kInvalidArgument)) << cases[i].what;
  }
  Consumer consumer = subscribe();
  EXPECT_TRUE(consumer.leases().wait_for(cases.size()));
  barrier();
  EXPECT_EQ(consumer.leases().count(), cases.size());
}

TEST_P(BrokerConformance, NamesOfTheGreatestLengthAreAccepted) {
  Job job = make_job(std::string(Limits::kNameBytes, 'k'), std::string(Limits::kNameBytes, 'q'));
  enqueue_one(job);
  EXPECT_EQ(lease_one(job.queue).job.kind, job.kind);
}

TEST_P(BrokerConformance, JobsWithoutAnIdGetDifferentOnes) {
  const std::vector<JobId> ids = enqueue_many(50);
  for (const JobId& id : ids) EXPECT_FALSE(id.is_nil());
  EXPECT_EQ(std::set<JobId>(ids.begin(), ids.end()).size(), 50u);
}

TEST_P(BrokerConformance, SameIdEnqueuedTwiceIsOneJob) {
  BIDE_NEEDS(idempotent_ids);
  Job job = make_job();
  job.id = make_id();
  job.body = "first";
  enqueue_one(job);
  job.body = "second";
  const auto again = try_enqueue(job);
  ASSERT_TRUE(succeeded(again));
  EXPECT_TRUE(again->existed);
  EXPECT_EQ(again->id, job.id);

  Consumer consumer = subscribe();
  EXPECT_EQ(consumer.leases().take().job.body, "first");
  barrier();
  EXPECT_EQ(consumer.leases().count(), 1u);
}

TEST_P(BrokerConformance, SameIdTwiceInABatchIsOneJob) {
  BIDE_NEEDS(idempotent_ids);
  Job job = make_job();
  job.id = make_id();
  const auto results = try_enqueue(std::vector<Job>{job, job});
  ASSERT_EQ(results.size(), 2u);
  ASSERT_TRUE(succeeded(results[0]));
  ASSERT_TRUE(succeeded(results[1]));
  EXPECT_FALSE(results[0]->existed);
  EXPECT_TRUE(results[1]->existed);
  Consumer consumer = subscribe();
  consumer.leases().take();
  barrier();
  EXPECT_EQ(consumer.leases().count(), 1u);
}

TEST_P(BrokerConformance, IdOfADoneJobDoesNotRunItAgain) {
  BIDE_NEEDS(idempotent_ids);
  BIDE_NEEDS(final_settle);
  Job job = make_job();
  job.id = make_id();
  enqueue_one(job);
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  const auto again = try_enqueue(job);
  ASSERT_TRUE(succeeded(again));
  EXPECT_TRUE(again->existed);
  Consumer consumer = subscribe();
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
}

TEST_P(BrokerConformance, UniqueKeyIsRefusedWhileALiveJobHoldsIt) {
  BIDE_NEEDS(unique_keys);
  Job job = make_job();
  job.unique_key = "invoice 7";
  job.delay = beats(2);
  enqueue_one(job);
  EXPECT_TRUE(refused(try_enqueue(job), ErrorCode::kAlreadyExists)) << "scheduled";
  advance(job.delay);
  EXPECT_TRUE(refused(try_enqueue(job), ErrorCode::kAlreadyExists)) << "ready";
  const Lease lease = lease_one();
  EXPECT_TRUE(refused(try_enqueue(job), ErrorCode::kAlreadyExists)) << "running";
  ASSERT_TRUE(succeeded(settle_one(lease, RetryAt{.after = beats(1)})));
  EXPECT_TRUE(refused(try_enqueue(job), ErrorCode::kAlreadyExists)) << "waiting for its next attempt";
  job.unique_key = "invoice 8";
  EXPECT_TRUE(succeeded(try_enqueue(job))) << "another key";
}

TEST_P(BrokerConformance, UniqueKeyTwiceInABatchIsRefusedTheSecondTime) {
  BIDE_NEEDS(unique_keys);
  Job job = make_job();
  job.unique_key = "once";
  const auto results = try_enqueue(std::vector<Job>{job, job});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(succeeded(results[0]));
  EXPECT_TRUE(refused(results[1], ErrorCode::kAlreadyExists));
}

TEST_P(BrokerConformance, SameIdWithItsOwnUniqueKeyIsTheSameJob) {
  BIDE_NEEDS(unique_keys);
  BIDE_NEEDS(idempotent_ids);
  Job job = make_job();
  job.id = make_id();
  job.unique_key = "mine";
  enqueue_one(job);
  const auto again = try_enqueue(job);
  ASSERT_TRUE(succeeded(again));
  EXPECT_TRUE(again->existed);
}

TEST_P(BrokerConformance, UniqueKeyIsFreeOnceItsJobIsDone) {
  BIDE_NEEDS(unique_keys);
  Job job = make_job();
  job.unique_key = "free me";
  enqueue_one(job);
  ASSERT_TRUE(succeeded(settle_one(lease_one())));
  EXPECT_TRUE(succeeded(try_enqueue(job)));
}

TEST_P(BrokerConformance, UniqueKeyIsFreeOnceItsJobIsDead) {
  BIDE_NEEDS(unique_keys);
  BIDE_NEEDS(dead_set);
  Job job = make_job();
  job.unique_key = "free me";
  make_dead(job);
  EXPECT_TRUE(succeeded(try_enqueue(job)));
}

TEST_P(BrokerConformance, UniqueKeyIsFreeOnceItsJobIsCancelled) {
  BIDE_NEEDS(unique_keys);
  BIDE_NEEDS(cancel);
  Job job = make_job();
  job.unique_key = "free me";
  ASSERT_TRUE(succeeded(cancel_one(enqueue_one(job))));
  EXPECT_TRUE(succeeded(try_enqueue(job)));
}

TEST_P(BrokerConformance, DueInThePastRunsAtOnce) {
  Job job = make_job();
  job.due = now() - std::chrono::hours(1);
  const JobId id = enqueue_one(job);
  const Lease lease = lease_one();
  EXPECT_EQ(lease.job.id, id);
  EXPECT_LE(lease.due, now());
}

TEST_P(BrokerConformance, ThreadsEnqueueBesideOneAnotherWithoutLosingAJob) {
  constexpr int kThreads = 4, kBatches = 10, kJobs = 5;
  Consumer consumer = subscribe({.credit = 1000});
  std::vector<std::vector<JobId>> ids(kThreads);
  std::vector<std::thread> threads;
  for (auto& mine : ids) {
    threads.emplace_back([this, &mine] {
      for (int batch = 0; batch < kBatches; ++batch) {
        for (const auto& result : try_enqueue(std::vector<Job>(kJobs, make_job()))) {
          if (result) mine.push_back(result->id);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<JobId> accepted;
  for (const auto& mine : ids) accepted.insert(mine.begin(), mine.end());
  EXPECT_EQ(accepted.size(), static_cast<std::size_t>(kThreads * kBatches * kJobs));
  ASSERT_TRUE(consumer.leases().wait_for(accepted.size()));
  barrier();
  const std::vector<JobId> delivered = consumer.leases().ids();
  EXPECT_EQ(delivered.size(), accepted.size());
  EXPECT_EQ(std::set<JobId>(delivered.begin(), delivered.end()), accepted);
}

TEST_P(BrokerConformance, IdleBrokerIsUnderNoPressure) {
  const Pressure pressure = broker().pressure();
  EXPECT_EQ(pressure.level, Pressure::Level::kOk);
  EXPECT_EQ(pressure.reason, "");
}

}  // namespace bide::conformance
