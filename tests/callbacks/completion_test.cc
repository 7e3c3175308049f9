// Who is told when a job is done or dead, and where its result goes.

#include <map>

#include "callbacks/callback_bench.h"
#include "server/callbacks/completing_broker.h"

namespace bide::server {
namespace {

class Completed : public CallbackTest {
 protected:
  void SetUp() override {
    CallbackTest::SetUp();
    start();
  }

  // A job for workers.
  Job job_for(const std::string& queue) {
    Job job;
    job.kind = "resize";
    job.queue = queue;
    job.body = "cat";
    job.headers = {{"bide-on-done", told.url("/done")}};
    return job;
  }
  // The next lease of the queue, through the given broker.
  static Lease lease_from(Broker& from, const std::string& queue, Milliseconds lease = 15s) {
    struct Slot {
      std::mutex mutex;
      std::condition_variable arrived;
      std::vector<Lease> leases;
    };
    auto slot = std::make_shared<Slot>();
    auto subscription =
        from.subscribe({.queues = {{queue, 1}}, .credit = 1, .lease = lease}, [slot](std::vector<Lease> given) {
          std::lock_guard lock(slot->mutex);
          for (Lease& each : given) slot->leases.push_back(std::move(each));
          slot->arrived.notify_all();
        });
    std::unique_lock lock(slot->mutex);
    slot->arrived.wait(lock, [&] { return !slot->leases.empty(); });
    Lease taken = slot->leases.front();
    lock.unlock();
    return taken;
  }
  std::string told_body(std::size_t count = 1) { return told.wait_for(count).at(count - 1).body; }

  HttpReceiver told{[](const HttpReceived&, HttpPeer& peer) { peer.answer("204 No Content"); }};
};

TEST_F(Completed, ADoneJobIsToldWithItsResult) {
  const JobId id = enqueue(job_for("images"));
  const Lease lease = lease_from(*broker, "images");
  ASSERT_TRUE(settle({.lease = {id, lease.token}, .outcome = Done{R"({"width":640})", "application/json"}}));
  EXPECT_EQ(told_body(), R"({"id":")" + id.to_string() +
                             R"(","kind":"resize","queue":"images","state":"done","attempts":1,)"
                             R"("result":{"width":640},"result_content_type":"application/json"})");
  EXPECT_EQ(told.received().at(0).line, "POST /done HTTP/1.1");
  EXPECT_EQ(told.received().at(0).fields.at("bide-kind"), "bide.on_done");
}

TEST_F(Completed, ADeadJobIsToldWithItsError) {
  const JobId id = enqueue(job_for("images"));
  const Lease lease = lease_from(*broker, "images");
  ASSERT_TRUE(
      settle({.lease = {id, lease.token}, .outcome = Dead{DeadReason::kRejected, Fault::kFailed, "no \"cat\""}}));
  EXPECT_EQ(told_body(), R"({"id":")" + id.to_string() +
                             R"(","kind":"resize","queue":"images","state":"dead","attempts":1,)"
                             R"("reason":"rejected","error":"no \"cat\""})");
}

TEST_F(Completed, ARetryIsNotToldAndNeitherIsAReturn) {
  const JobId id = enqueue(job_for("images"));
  Lease lease = lease_from(*broker, "images");
  ASSERT_TRUE(settle({.lease = {id, lease.token}, .outcome = RetryAt{0ms, Fault::kFailed, "again", {}}}));
  lease = lease_from(*broker, "images");
  ASSERT_TRUE(settle({.lease = {id, lease.token}, .outcome = Returned{}}));
  lease = lease_from(*broker, "images");
  ASSERT_TRUE(settle({.lease = {id, lease.token}, .outcome = Done{}}));
  EXPECT_NE(told_body().find("\"state\":\"done\",\"attempts\":2}"), std::string::npos) << told_body();
  EXPECT_EQ(told.received().size(), 1u);
}

TEST_F(Completed, ADeliveredJobIsToldToo) {
  HttpReceiver receiver(
      [](const HttpReceived&, HttpPeer& peer) { peer.answer("200 OK", "fine", "Content-Type: text/plain\r\n"); });
  Job job = job_to(receiver.url());
  job.headers.emplace_back("bide-on-done", told.url());
  deliver(job);
  EXPECT_NE(told_body().find(R"("result_text":"fine")"), std::string::npos) << told_body();
}

TEST_F(Completed, AnAcceptedJobIsToldWhenItsReceiverSettlesIt) {
  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) { peer.answer("202 Accepted"); });
  Job job = job_to(receiver.url());
  job.headers.emplace_back("bide-on-done", told.url());
  const JobId id = enqueue(job);
  const std::uint64_t token = std::stoull(receiver.wait_for(1).at(0).fields.at("bide-lease-token"));
  ASSERT_TRUE(settle({.lease = {id, token}, .outcome = Done{"late", "text/plain"}}));
  EXPECT_NE(told_body().find(R"("result_text":"late")"), std::string::npos) << told_body();
}

TEST_F(Completed, AnExpiredJobIsToldThoughNobodySettledIt) {
  Job job = job_for("images");
  job.expires = std::chrono::floor<Milliseconds>(std::chrono::system_clock::now()) - 1s;
  const JobId id = enqueue(job);
  // Somebody would take it, but for its age.
  const auto subscription = witness->subscribe({.queues = {{"images", 1}}}, [](std::vector<Lease>) {});
  EXPECT_NE(told_body().find(R"("state":"dead")"), std::string::npos);
  EXPECT_NE(told_body().find(R"("reason":"expired")"), std::string::npos) << told_body();
  EXPECT_EQ(end_of(id).dead_reason, DeadReason::kExpired);
}

TEST_F(Completed, AJobThatExpiredWhileTheServerWasAwayIsTold) {
  Job job = job_for("images");
  job.expires = std::chrono::floor<Milliseconds>(std::chrono::system_clock::now()) - 1s;
  const JobId id = enqueue(job);
  stop();
  {
    const auto subscription = witness->subscribe({.queues = {{"images", 1}}}, [](std::vector<Lease>) {});
    EXPECT_EQ(end_of(id).dead_reason, DeadReason::kExpired);
  }
  close();
  open();
  start();
  EXPECT_NE(told_body().find(R"("state":"dead","attempts":0,"reason":"expired","error":"not started before it expired")"),
            std::string::npos)
      << told_body();
}

TEST_F(Completed, ALastLeaseThatWasLostWhileTheServerWasAwayIsTold) {
  Job job = job_for("images");
  job.retry = RetryPolicy::none();
  const JobId id = enqueue(job);
  stop();
  lease_from(*witness, "images", 100ms);
  EXPECT_EQ(end_of(id).state, JobState::kDead);
  close();
  open();
  start();
  EXPECT_NE(told_body().find(R"("state":"dead","attempts":1,"reason":"exhausted")"), std::string::npos) << told_body();
}

TEST_F(Completed, AnOnDoneComesByTheQueueThatTheServerDelivers) {
  stop();
  CallbackOptions chosen = options();
  chosen.queues = {"hooks", "callbacks"};
  start(chosen);
  Job job = job_for("images");
  job.headers.emplace_back("bide-on-done-queue", "elsewhere");
  const JobId id = enqueue(job);
  const Lease lease = lease_from(*broker, "images");
  ASSERT_TRUE(settle({.lease = {id, lease.token}, .outcome = Done{}}));
  EXPECT_EQ(told.wait_for(1).at(0).fields.at("bide-queue"), "hooks");
}

TEST(CompletingBrokerTest, TheWishOfALeaseGoesWithThatLeaseOnly) {
  // The first lease of the job is settled late, when the job has been leased again.
  struct Inner : Broker {
    void enqueue(std::vector<Job>, Completion<std::vector<Result<Enqueued>>>) override {}
    Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions, LeaseSink given) override {
      sink = std::move(given);
      return std::unique_ptr<Subscription>();
    }
    void extend(std::vector<LeaseRef>, Completion<std::vector<Extended>>) override {}
    void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override {
      effects.push_back(settlements.at(0).effects);
      waiting.push_back(std::move(done));
    }
    Pressure pressure() const override { return {}; }
    Capabilities capabilities() const override { return {}; }
    LeaseSink sink;
    std::vector<std::vector<Job>> effects;
    std::vector<Completion<std::vector<Status>>> waiting;
  };
  const auto inner = std::make_shared<Inner>();
  CompletingBroker broker(inner);
  ASSERT_TRUE(broker.subscribe({}, [](std::vector<Lease>) {}));
  Lease lease;
  lease.job.id = JobId::parse("0190d6c0-8a5e-7f2a-9d0e-5b8a52f6f0c1").value();
  lease.job.kind = "resize";
  lease.job.headers = {{"bide-reply-queue", "replies"}};
  lease.token = 1;
  inner->sink({lease});
  broker.settle({{.lease = {lease.job.id, 1}, .outcome = Returned{}}}, [](auto) {});
  lease.token = 2;
  inner->sink({lease});
  inner->waiting.at(0)(std::vector<Status>{Status()});
  broker.settle({{.lease = {lease.job.id, 2}, .outcome = Done{"x", ""}}}, [](auto) {});
  EXPECT_TRUE(inner->effects.at(0).empty());
  ASSERT_EQ(inner->effects.at(1).size(), 1u);
  EXPECT_EQ(inner->effects.at(1).at(0).kind, "resize.result");
  EXPECT_FALSE(inner->effects.at(1).at(0).id.is_nil());
}

TEST_F(Completed, AJobThatAnotherProcessSettlesIsTold) {
  const JobId id = enqueue(job_for("images"));
  const Lease lease = lease_from(*witness, "images");  // Not through the service.
  const auto settled = wait<std::vector<Status>>([&](auto done) {
    witness->settle({{.lease = {id, lease.token}, .outcome = Done{"x", "text/plain"}}}, std::move(done));
  });
  ASSERT_TRUE(settled.value().at(0));
  EXPECT_NE(told_body().find(R"("result_text":"x")"), std::string::npos) << told_body();
}

TEST_F(Completed, ALeaseFromBeforeARestartIsToldAsWell) {
  const JobId id = enqueue(job_for("images"));
  const Lease lease = lease_from(*broker, "images");
  stop();
  start();
  ASSERT_TRUE(settle({.lease = {id, lease.token}, .outcome = Done{"after", "text/plain"}}));
  EXPECT_NE(told_body().find(R"("result_text":"after")"), std::string::npos) << told_body();
}

TEST_F(Completed, ASettlementThatIsRefusedTellsNobody) {
  const JobId id = enqueue(job_for("images"));
  const Lease lease = lease_from(*broker, "images");
  EXPECT_FALSE(settle({.lease = {id, lease.token + 1}, .outcome = Done{"wrong", ""}}));
  ASSERT_TRUE(settle({.lease = {id, lease.token}, .outcome = Done{"right", "text/plain"}}));
  EXPECT_NE(told_body().find("right"), std::string::npos);
  EXPECT_EQ(told.received().size(), 1u);
}

TEST_F(Completed, ALongResultIsLeftOut) {
  const JobId id = enqueue(job_for("images"));
  const Lease lease = lease_from(*broker, "images");
  ASSERT_TRUE(settle({.lease = {id, lease.token}, .outcome = Done{std::string(100'000, 'x'), ""}}));
  EXPECT_NE(told_body().find(R"("result_bytes":100000)"), std::string::npos) << told_body();
}

TEST_F(Completed, AResultGoesIntoItsReplyQueue) {
  Job job = job_for("images");
  job.headers = {{"bide-reply-queue", "replies"}, {"traceparent", "00-1-2-01"}};
  const JobId id = enqueue(job);
  const Lease lease = lease_from(*broker, "images");
  ASSERT_TRUE(settle({.lease = {id, lease.token}, .outcome = Done{R"({"width":640})", "application/json"}}));
  const Lease reply = lease_from(*broker, "replies");
  EXPECT_EQ(reply.job.kind, "resize.result");
  EXPECT_EQ(reply.job.body, R"({"width":640})");
  EXPECT_EQ(reply.job.content_type, "application/json");
  const std::map<std::string, std::string> headers(reply.job.headers.begin(), reply.job.headers.end());
  EXPECT_EQ(headers.at("bide-origin-id"), id.to_string());
  EXPECT_EQ(headers.at("bide-origin-kind"), "resize");
  EXPECT_EQ(headers.at("bide-origin-state"), "done");
  EXPECT_EQ(headers.at("traceparent"), "00-1-2-01");
}

TEST_F(Completed, ADeathGoesIntoTheReplyQueueToo) {
  Job job = job_for("images");
  job.headers = {{"bide-reply-queue", "replies"}};
  const JobId id = enqueue(job);
  const Lease lease = lease_from(*broker, "images");
  ASSERT_TRUE(
      settle({.lease = {id, lease.token}, .outcome = Dead{DeadReason::kRejected, Fault::kFailed, "line\nbreak"}}));
  const Lease reply = lease_from(*broker, "replies");
  const std::map<std::string, std::string> headers(reply.job.headers.begin(), reply.job.headers.end());
  EXPECT_EQ(headers.at("bide-origin-state"), "dead");
  EXPECT_EQ(headers.at("bide-origin-error"), "line break");
}

TEST_F(Completed, AWishThatCannotBeFulfilledDoesNotStandInTheWayOfTheOutcome) {
  Job job = job_for("images");
  job.headers = {{"bide-reply-queue", "not a name"}, {"bide-on-done", "not a url"}};
  const JobId id = enqueue(job);
  const Lease lease = lease_from(*broker, "images");
  ASSERT_TRUE(settle({.lease = {id, lease.token}, .outcome = Done{"x", std::string(300, 't')}}));
  EXPECT_EQ(end_of(id).state, JobState::kDone);
}

TEST_F(Completed, AReplayedJobIsToldOfItsSecondEnd) {
  const JobId id = enqueue(job_for("images"));
  Lease lease = lease_from(*broker, "images");
  ASSERT_TRUE(settle({.lease = {id, lease.token}, .outcome = Dead{DeadReason::kRejected, Fault::kFailed, "first"}}));
  EXPECT_NE(told_body().find("first"), std::string::npos);
  ASSERT_TRUE(wait<std::vector<Status>>([&](auto done) { inspector->replay({id}, {}, std::move(done)); }));
  lease = lease_from(*broker, "images");
  ASSERT_TRUE(settle({.lease = {id, lease.token}, .outcome = Dead{DeadReason::kRejected, Fault::kFailed, "second"}}));
  EXPECT_NE(told_body(2).find("second"), std::string::npos);
}

}  // namespace
}  // namespace bide::server
