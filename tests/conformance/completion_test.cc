// Completion: whoever asked for it is told of the end of a job, in the step that ends it, whoever decides the end.

#include <map>

#include "conformance/broker_conformance.h"

namespace bide::conformance {
namespace {

Job with_reply(Job job) {
  job.headers = {{"bide-reply-queue", "replies"}};
  job.retry = RetryPolicy::none();
  return job;
}

std::map<std::string, std::string> headers_of(const Lease& lease) {
  return {lease.job.headers.begin(), lease.job.headers.end()};
}

}  // namespace

TEST_P(BrokerConformance, ADoneJobIsToldInItsReplyQueueWithItsResult) {
  BIDE_NEEDS(completions);
  const JobId id = enqueue_one(with_reply(make_job("resize")));
  ASSERT_TRUE(succeeded(settle_one(lease_one(), Done{.result = "640", .content_type = "text/plain"})));
  restart(Restart::kCrash);
  const Lease reply = lease_one("replies");
  EXPECT_EQ(reply.job.kind, "resize.result");
  EXPECT_EQ(reply.job.body, "640");
  EXPECT_EQ(reply.job.content_type, "text/plain");
  EXPECT_EQ(headers_of(reply).at("bide-origin-id"), id.to_string());
  EXPECT_EQ(headers_of(reply).at("bide-origin-state"), "done");
}

TEST_P(BrokerConformance, AnOnDoneGoesIntoTheQueueOfTheCallbacks) {
  BIDE_NEEDS(completions);
  for (const std::string name : {"", "hooks"}) {
    Job job = make_job("resize");
    job.headers = {{"bide-on-done", "http://127.0.0.1/done"}};
    if (!name.empty()) job.headers.emplace_back("bide-on-done-queue", name);
    enqueue_one(job);
    ASSERT_TRUE(succeeded(settle_one(lease_one(), Dead{.error = "no\nway"})));
    const Lease told = lease_one(name.empty() ? "callbacks" : name);
    EXPECT_EQ(told.job.kind, "bide.on_done");
    EXPECT_EQ(told.job.body, "no\nway");
    EXPECT_EQ(headers_of(told).at("bide-callback"), "http://127.0.0.1/done");
    EXPECT_EQ(headers_of(told).at("bide-origin-reason"), "rejected");
    EXPECT_EQ(headers_of(told).at("bide-origin-attempts"), "1");
  }
}

TEST_P(BrokerConformance, AJobThatGoesOnTellsNobodyAndItsEndIsToldOnce) {
  BIDE_NEEDS(completions);
  BIDE_NEEDS(inspect);
  enqueue_one(with_reply(make_job()));
  ASSERT_TRUE(succeeded(settle_one(lease_one(), Returned{})));
  ASSERT_TRUE(succeeded(settle_one(lease_one(), RetryAt{.error = "again"})));
  const Lease last = lease_one();
  EXPECT_TRUE(list_ids({.queue = "replies"}).empty());
  ASSERT_TRUE(succeeded(settle_one(last)));
  ASSERT_TRUE(succeeded(settle_one(last))) << "settling again is harmless";
  EXPECT_EQ(list_ids({.queue = "replies"}).size(), 1u);
}

TEST_P(BrokerConformance, ALostLastLeaseIsTold) {
  BIDE_NEEDS(completions);
  const JobId id = enqueue_one(with_reply(make_job()));
  const Milliseconds time = beats(4);
  lease_as({.credit = 1, .lease = time});
  advance(time + grace());
  const Lease reply = lease_one("replies");
  EXPECT_EQ(headers_of(reply).at("bide-origin-id"), id.to_string());
  EXPECT_EQ(headers_of(reply).at("bide-origin-state"), "dead");
  EXPECT_FALSE(headers_of(reply).at("bide-origin-error").empty());
}

TEST_P(BrokerConformance, AJobThatExpiresIsTold) {
  BIDE_NEEDS(completions);
  BIDE_NEEDS(expiry);
  Job job = with_reply(make_job());
  job.expires = now() + beats(2);
  const JobId id = enqueue_one(job);
  advance(beats(3));
  const Consumer taker = subscribe_to("default");
  const Lease reply = lease_one("replies");
  EXPECT_EQ(headers_of(reply).at("bide-origin-id"), id.to_string());
  EXPECT_EQ(headers_of(reply).at("bide-origin-state"), "dead");
}

TEST_P(BrokerConformance, AJobWhoseWorkerDiedForTheLastTimeIsToldAtTheNextStart) {
  BIDE_NEEDS(completions);
  BIDE_NEEDS_ATTEMPTS_TO_SURVIVE_A_CRASH();
  BIDE_NEEDS_DEAD_WORKERS_TO_BE_NOTICED();
  const JobId id = enqueue_one(with_reply(make_job()));
  lease_one();
  restart(Restart::kCrash);
  let_crashed_jobs_return();
  const Lease reply = lease_one("replies");
  EXPECT_EQ(headers_of(reply).at("bide-origin-id"), id.to_string());
  EXPECT_EQ(headers_of(reply).at("bide-origin-state"), "dead");
}

TEST_P(BrokerConformance, ALeaseFromBeforeARestartIsToldOfToo) {
  BIDE_NEEDS(completions);
  BIDE_NEEDS(lasting_leases);
  enqueue_one(with_reply(make_job("resize")));
  const Lease lease = lease_as({.credit = 1, .lease = beats(20), .outlives_process = true});
  restart(Restart::kClean);
  ASSERT_TRUE(succeeded(settle_one(lease, Done{.result = "late"})));
  EXPECT_EQ(lease_one("replies").job.body, "late");
}

}  // namespace bide::conformance
