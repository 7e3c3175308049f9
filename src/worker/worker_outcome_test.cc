// What handlers return, throw and say, and what it is settled as.

#include <gtest/gtest.h>

#include <stdexcept>

#include "worker/worker_test_bench.h"

namespace bide::worker {

namespace {

using namespace std::chrono_literals;

template <class Handler>
Settlement settlement_of(Handler handler, Lease lease) {
  Bench bench;
  bench.worker.handle("a", std::move(handler));
  EXPECT_TRUE(bench.worker.start());
  bench.broker->give(std::move(lease));
  return bench.broker->wait_for_settled(1)[0];
}

template <class Handler>
Settlement settlement_of(Handler handler, Job job = {.kind = "a", .retry = RetryPolicy::fixed(7s, 3)}) {
  return settlement_of(std::move(handler), support::FakeBroker::lease_of(std::move(job)));
}

template <class Handler>
Outcome outcome_of(Handler handler) {
  return settlement_of(std::move(handler)).outcome;
}

TEST(WorkerOutcome, ReturningIsDone) { EXPECT_TRUE(std::holds_alternative<Done>(outcome_of([] {}))); }

TEST(WorkerOutcome, AnExceptionIsAFailureWithItsText) {
  const Outcome outcome = outcome_of([] { throw std::runtime_error("no connection"); });
  const auto& retry = std::get<RetryAt>(outcome);
  EXPECT_EQ(retry.error, "no connection");
  EXPECT_EQ(retry.fault, Fault::kFailed);
  EXPECT_EQ(retry.after, 7s);
}

TEST(WorkerOutcome, AThrownIntIsAFailureThatSaysSo) {
  const Outcome outcome = outcome_of([] { throw 42; });
  EXPECT_EQ(std::get<RetryAt>(outcome).error, "threw something that is not a std::exception");
}

TEST(WorkerOutcome, AHandlerChoosesItsWait) {
  const Outcome outcome = outcome_of([] { return retry_after(90s, "later"); });
  EXPECT_EQ(std::get<RetryAt>(outcome).after, 90s);
  EXPECT_EQ(std::get<RetryAt>(outcome).error, "later");
}

TEST(WorkerOutcome, RetryAtIsAWaitFromNow) {
  const auto in_an_hour = std::chrono::floor<Milliseconds>(std::chrono::system_clock::now()) + 1h;
  const Outcome outcome = outcome_of([=] { return retry_at(in_an_hour); });
  EXPECT_GT(std::get<RetryAt>(outcome).after, 50min);
  EXPECT_LE(std::get<RetryAt>(outcome).after, 1h);
}

TEST(WorkerOutcome, AHandlerDoesNotChooseItsNumberOfAttempts) {
  Lease lease = support::FakeBroker::lease_of({.kind = "a", .retry = RetryPolicy::fixed(7s, 3)});
  lease.attempt = 3;
  lease.counts.failed = 2;
  const Settlement settlement = settlement_of([] { return retry_after(90s, "later"); }, std::move(lease));
  EXPECT_EQ(std::get<Dead>(settlement.outcome).reason, DeadReason::kExhausted);
}

TEST(WorkerOutcome, DeadIsRejected) {
  const Outcome outcome = outcome_of([] { return dead("no such customer"); });
  EXPECT_EQ(std::get<Dead>(outcome).reason, DeadReason::kRejected);
  EXPECT_EQ(std::get<Dead>(outcome).error, "no such customer");
}

TEST(WorkerOutcome, EffectsAreSettledTogetherWithTheOutcome) {
  JobId promised;
  const Settlement settlement = settlement_of([&](Context& context) {
    promised = context.enqueue("next", "body", {.queue = "other", .delay = 5s}).value();
  });
  ASSERT_EQ(settlement.effects.size(), 1u);
  EXPECT_EQ(settlement.effects[0].id, promised);
  EXPECT_EQ(settlement.effects[0].kind, "next");
  EXPECT_EQ(settlement.effects[0].queue, "other");
  EXPECT_EQ(settlement.effects[0].delay, 5s);
}

TEST(WorkerOutcome, EffectsOfAFailedAttemptAreDropped) {
  const Settlement settlement = settlement_of([](Context& context) {
    context.enqueue("next", "body").value();
    throw std::runtime_error("after all not");
  });
  EXPECT_TRUE(settlement.effects.empty());
}

TEST(WorkerOutcome, AnInvalidEffectIsRefusedWhereItIsMade) {
  Notes notes;
  const Settlement settlement = settlement_of([&](Context& context) {
    const auto refused = context.enqueue("next", "body", {.queue = "../x"});
    notes.add(refused ? "accepted" : std::string(to_string(refused.error().code)));
  });
  EXPECT_NE(notes.all()[0], "accepted");
  EXPECT_TRUE(settlement.effects.empty());
  EXPECT_TRUE(std::holds_alternative<Done>(settlement.outcome));
}

TEST(WorkerOutcome, AResultOfTenMegabytesIsKept) {
  const Outcome outcome = outcome_of([](Context& context) {
    context.set_result(std::string(10'000'000, 'x'), "text/plain");
  });
  EXPECT_EQ(std::get<Done>(outcome).result.size(), 10'000'000u);
  EXPECT_EQ(std::get<Done>(outcome).content_type, "text/plain");
}

TEST(WorkerOutcome, AResultOverTheLimitIsAFailureThatNamesIt) {
  const Outcome outcome = outcome_of([](Context& context) {
    context.set_result(std::string(Limits::kBodyBytes + 1, 'x'));
  });
  EXPECT_EQ(std::get<RetryAt>(outcome).error, "the result has 16777217 bytes; at most 16777216 are allowed");
}

TEST(WorkerOutcome, ASavedBodyIsThereForTheNextAttemptAfterARetry) {
  const Outcome outcome = outcome_of([](Context& context) -> Outcome {
    EXPECT_EQ(context.save_body("step 2").error().code, ErrorCode::kUnsupported);
    return retry_after(1s);
  });
  EXPECT_EQ(std::get<RetryAt>(outcome).body, "step 2");
}

TEST(WorkerOutcome, ASavedBodyIsThereForTheNextAttemptAfterAnException) {
  const Outcome outcome = outcome_of([](Context& context) {
    EXPECT_EQ(context.save_body("step 2").error().code, ErrorCode::kUnsupported);
    throw std::runtime_error("oops");
  });
  EXPECT_EQ(std::get<RetryAt>(outcome).body, "step 2");
}

TEST(WorkerOutcome, TheContextTellsAboutTheAttempt) {
  Lease lease = support::FakeBroker::lease_of({.kind = "a", .body = "payload"});
  lease.attempt = 3;
  lease.counts.failed = 2;
  lease.history.push_back({.attempt = 2, .at = {}, .fault = Fault::kFailed, .text = "before"});
  settlement_of(
      [](const Job& job, Context& context) {
        EXPECT_EQ(job.body, "payload");
        EXPECT_EQ(context.attempt(), 3u);
        EXPECT_EQ(context.counts().failed, 2u);
        EXPECT_EQ(context.history()[0].text, "before");
        EXPECT_TRUE(context.keep_alive());
        EXPECT_FALSE(context.lease_lost());
        EXPECT_GT(context.deadline(), std::chrono::steady_clock::now());
      },
      std::move(lease));
}

TEST(WorkerOutcome, HandlersTakeWhatTheyNeed) {
  Bench bench({.concurrency = 1});
  Notes notes;
  bench.worker.handle("job", [&](const Job& job) { notes.add(job.kind); });
  bench.worker.handle("job_context", [&](const Job& job, Context&) { notes.add(job.kind); });
  bench.worker.handle("body", [&](std::string_view body) { notes.add(std::string(body)); });
  bench.worker.handle("string", [&](const std::string& body, Context&) { notes.add(body); });
  bench.worker.handle("context", [&](Context& context) { notes.add(context.job().kind); });
  bench.worker.handle("nothing", [&] { notes.add("nothing"); });
  ASSERT_TRUE(bench.worker.start());
  for (const char* kind : {"job", "job_context", "body", "string", "context", "nothing"}) {
    bench.broker->give(Job{.kind = kind, .body = "b"});
  }
  EXPECT_EQ(notes.wait_for(6), (std::vector<std::string>{"job", "job_context", "b", "b", "context", "nothing"}));
}

TEST(WorkerOutcome, HooksHearOfOutcomesAndOfDeaths) {
  Bench bench({.concurrency = 1});
  Notes outcomes;
  Notes deaths;
  bench.worker.on_outcome([&](const Finished& finished) { outcomes.add(finished.job.kind); });
  bench.worker.on_dead([&](const Finished& finished) { deaths.add(std::get<Dead>(finished.outcome).error); });
  bench.worker.handle("good", [] {});
  bench.worker.handle("bad", [] { return dead("why"); });
  ASSERT_TRUE(bench.worker.start());
  bench.broker->give("good");
  bench.broker->give("bad");
  bench.broker->wait_for_settled(2);
  EXPECT_EQ(outcomes.all(), (std::vector<std::string>{"good", "bad"}));
  EXPECT_EQ(deaths.all(), (std::vector<std::string>{"why"}));
}

TEST(WorkerOutcome, AnUnknownKindIsGivenBackForAWhileAndReportedOnce) {
  Bench bench({.unknown_kind_wait = 7s});
  bench.worker.handle("known", [] {});
  ASSERT_TRUE(bench.worker.start());
  bench.broker->give("unknown", 3);
  for (const Settlement& settlement : bench.broker->wait_for_settled(3)) {
    const auto& returned = std::get<Returned>(settlement.outcome);
    EXPECT_EQ(returned.after, 7s);
    EXPECT_EQ(returned.note, "no handler for kind 'unknown' in worker tester");
  }
  bench.worker.stop();
  EXPECT_EQ(bench.problems.all().size(), 1u);
}

}  // namespace
}  // namespace bide::worker
