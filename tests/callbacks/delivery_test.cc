// What is sent, and what each answer means for the job.

#include "callbacks/callback_bench.h"
#include "core/time_text.h"

namespace bide::server {
namespace {

using DeliveryTest = CallbackTest;

TEST_F(DeliveryTest, TheBodyIsPostedWithWhatAReceiverNeedsToKnow) {
  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) { peer.answer("200 OK"); });
  start();
  Job job = job_to(receiver.url("/hook?key=1"), R"({"x": 1})");
  job.content_type = "application/json";
  job.headers.emplace_back("Colour", "green");
  job.headers.emplace_back("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  job.headers.emplace_back("bide-on-done", receiver.url("/done"));
  job.headers.emplace_back("not a field", "left out");
  const JobInfo info = deliver(job);

  EXPECT_EQ(info.state, JobState::kDone);
  const HttpReceived request = receiver.received().at(0);
  EXPECT_EQ(request.line, "POST /hook?key=1 HTTP/1.1");
  EXPECT_EQ(request.body, R"({"x": 1})");
  EXPECT_EQ(request.fields.at("content-type"), "application/json");
  EXPECT_EQ(request.fields.at("bide-job-id"), info.job.id.to_string());
  EXPECT_EQ(request.fields.at("webhook-id"), info.job.id.to_string());
  EXPECT_EQ(request.fields.at("bide-kind"), "greet");
  EXPECT_EQ(request.fields.at("bide-queue"), "callbacks");
  EXPECT_EQ(request.fields.at("bide-attempt"), "1");
  EXPECT_EQ(request.fields.at("bide-header-colour"), "green");
  EXPECT_EQ(request.fields.at("traceparent"), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  for (const auto& [name, value] : request.fields) {
    EXPECT_EQ(name.find("bide-callback"), std::string::npos) << name;
    EXPECT_EQ(name.find("on-done"), std::string::npos) << name;
    EXPECT_EQ(value.find("left out"), std::string::npos) << name;
  }
}

TEST_F(DeliveryTest, TheAnswerIsTheResult) {
  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) {
    peer.answer("201 Created", R"({"id":7})", "Content-Type: application/json\r\n");
  });
  start();
  const JobInfo info = deliver(job_to(receiver.url()));
  EXPECT_EQ(info.state, JobState::kDone);
  EXPECT_EQ(info.result, R"({"id":7})");
  EXPECT_EQ(info.result_content_type, "application/json");
}

TEST_F(DeliveryTest, AFailureIsTriedAgainByTheJobsPolicy) {
  std::atomic<int> requests = 0;
  HttpReceiver receiver([&](const HttpReceived&, HttpPeer& peer) {
    const int number = ++requests;
    peer.answer(number < 3 ? "400 Bad Request" : "200 OK", "thing " + std::to_string(number));
  });
  start();
  const JobInfo info = deliver(job_to(receiver.url()));
  EXPECT_EQ(info.state, JobState::kDone);
  EXPECT_EQ(info.attempts, 3u);
  const auto settled = witness->wait_for_settled(3);
  EXPECT_EQ(std::get<RetryAt>(settled.at(1).outcome).error, "the receiver answered 400: thing 2");
  EXPECT_EQ(std::get<RetryAt>(settled.at(1).outcome).after, 10ms);
  EXPECT_EQ(receiver.received().at(2).fields.at("bide-attempt"), "3");
  EXPECT_EQ(receiver.received().at(2).fields.at("webhook-id"), receiver.received().at(0).fields.at("webhook-id"));
}

TEST_F(DeliveryTest, WithoutAttemptsLeftItIsDead) {
  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) { peer.answer("500 Oops", "no"); });
  start();
  Job job = job_to(receiver.url());
  job.retry = RetryPolicy::none();
  const JobInfo info = deliver(job);
  EXPECT_EQ(info.state, JobState::kDead);
  EXPECT_EQ(info.dead_reason, DeadReason::kExhausted);
  EXPECT_EQ(info.history.back().text, "the receiver answered 500: no");
}

TEST_F(DeliveryTest, GoneIsDeadAtOnce) {
  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) { peer.answer("410 Gone", "unsubscribed"); });
  start();
  const JobInfo info = deliver(job_to(receiver.url()));
  EXPECT_EQ(info.state, JobState::kDead);
  EXPECT_EQ(info.dead_reason, DeadReason::kRejected);
  EXPECT_EQ(info.attempts, 1u);
  EXPECT_EQ(receiver.received().size(), 1u);
}

TEST_F(DeliveryTest, RetryAfterIsObeyedAndTheHostIsLeftAlone) {
  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) {
    peer.answer("429 Too Many Requests", "", "Retry-After: 86400\r\n");
  });
  CallbackOptions chosen = options();
  chosen.per_host = 1;
  start(chosen);
  const Time before = std::chrono::floor<Milliseconds>(std::chrono::system_clock::now());
  const JobId first = enqueue(job_to(receiver.url()));
  ASSERT_TRUE(std::holds_alternative<RetryAt>(witness->wait_for_settled(1).at(0).outcome));
  const JobId second = enqueue(job_to(receiver.url()));
  ASSERT_TRUE(std::holds_alternative<Returned>(witness->wait_for_settled(2).at(1).outcome));

  // A day was asked for; an hour is the most.
  const JobInfo charged = find(first);
  EXPECT_EQ(charged.state, JobState::kScheduled);
  EXPECT_EQ(charged.counts.failed, 1u);
  EXPECT_GE(charged.due, before + 1h);
  EXPECT_LT(charged.due, before + 2h);
  const JobInfo spared = find(second);
  EXPECT_EQ(spared.state, JobState::kScheduled);
  EXPECT_EQ(spared.counts.total(), 0u);
  EXPECT_GE(spared.due, before + 59min);
  EXPECT_NE(spared.note.find("are paused for"), std::string::npos) << spared.note;
  EXPECT_EQ(receiver.received().size(), 1u);
}

TEST_F(DeliveryTest, AJobWithoutACallbackIsHeldAndNotFailed) {
  start();
  Job job;
  job.kind = "lost";
  job.queue = "callbacks";
  const JobId id = enqueue(job);
  witness->wait_for_settled(1);
  const JobInfo info = find(id);
  EXPECT_EQ(info.state, JobState::kScheduled);
  EXPECT_EQ(info.counts.total(), 0u);
  EXPECT_NE(info.note.find("this one has none"), std::string::npos) << info.note;
}

TEST_F(DeliveryTest, AUrlThatThePolicyForbidsIsDeadWithTheRule) {
  start();
  for (const std::string url :
       {"http://10.0.0.1/", "http://169.254.169.254/", "ftp://127.0.0.1/", "http://example.org/"}) {
    const JobInfo info = deliver(job_to(url));
    EXPECT_EQ(info.state, JobState::kDead) << url;
    EXPECT_NE(info.history.back().text.find("callback address blocked (rule: "), std::string::npos) << url;
  }
}

TEST_F(DeliveryTest, ANameThatLeadsToAPrivateAddressIsAFailedAttempt) {
  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) { peer.answer("200 OK"); });
  CallbackOptions chosen = options();  // Names below localhost are allowed, as names; where they lead to is not.
  chosen.policy = AddressPolicy::make("allow-list", {"*.localhost:*"}).value();
  start(chosen);
  Job job = job_to("http://sneaky.localhost:" + std::to_string(receiver.port()) + "/");
  job.retry = RetryPolicy::none();
  const JobInfo info = deliver(job);
  EXPECT_EQ(info.state, JobState::kDead);
  EXPECT_NE(info.history.back().text.find("rule: loopback"), std::string::npos) << info.history.back().text;
  EXPECT_TRUE(receiver.received().empty());
}

TEST_F(DeliveryTest, WithThePolicyOffNothingIsTaken) {
  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) { peer.answer("200 OK"); });
  CallbackOptions chosen = options();
  chosen.policy = {};
  start(chosen);
  const JobId id = enqueue(job_to(receiver.url()));
  EXPECT_EQ(find(id).state, JobState::kReady);
  const auto explained = wait<Explanation>([&](auto done) { inspector->explain(id, std::move(done)); });
  EXPECT_EQ(explained.value().code, "no_worker");
}

TEST_F(DeliveryTest, AcceptedMeansThatTheReceiverSettlesLater) {
  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) { peer.answer("202 Accepted"); });
  CallbackOptions chosen = options();
  chosen.lease = 3s;
  start(chosen);
  const JobId id = enqueue(job_to(receiver.url()));
  const HttpReceived request = receiver.wait_for(1).at(0);
  witness->wait_for_extensions(4);  // Longer than a lease.
  EXPECT_EQ(find(id).state, JobState::kRunning);

  const LeaseRef lease{id, std::stoull(request.fields.at("bide-lease-token"))};
  ASSERT_TRUE(settle({.lease = lease, .outcome = Done{.result = "made", .content_type = "text/plain"}}));
  EXPECT_EQ(end_of(id).result, "made");
  EXPECT_EQ(receiver.received().size(), 1u);
}

TEST_F(DeliveryTest, AcceptedAndNeverSettledIsTimedOut) {
  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) { peer.answer("202 Accepted"); });
  start();
  Job job = job_to(receiver.url());
  job.time_limit = 1s;
  job.retry = RetryPolicy::fixed(10ms, 2);
  const JobInfo info = deliver(job);
  EXPECT_EQ(info.state, JobState::kDead);
  EXPECT_EQ(info.counts.timed_out, 2u);
  EXPECT_EQ(receiver.received().size(), 2u);
}

TEST_F(DeliveryTest, SettledAcceptedJobsMakeNoRoomForMoreThanCanBeSent) {
  constexpr std::size_t kAccepted = 10;
  std::atomic<std::size_t> requests = 0;
  HttpReceiver receiver([&](const HttpReceived&, HttpPeer& peer) {
    if (++requests <= kAccepted) return peer.answer("202 Accepted");
    peer.wait_until_gone(-1);
  });
  CallbackOptions chosen = options();
  chosen.concurrency = chosen.per_host = 2;
  start(chosen);
  for (std::size_t i = 0; i < kAccepted; ++i) enqueue(job_to(receiver.url()));
  receiver.wait_for(kAccepted);
  for (std::size_t i = 0; i < 3 * kAccepted; ++i) enqueue(job_to(receiver.url()));
  const auto all = receiver.wait_for(kAccepted + 2);

  std::vector<Settlement> settlements;
  for (std::size_t i = 0; i < kAccepted; ++i) {
    settlements.push_back({.lease = {JobId::parse(all.at(i).fields.at("bide-job-id")).value(),
                                     std::stoull(all.at(i).fields.at("bide-lease-token"))}});
  }
  // Each alone: the last may be noticed as accepted only now.
  for (const Settlement& each : settlements) ASSERT_TRUE(settle(each));
  const auto queues = wait<std::vector<QueueInfo>>([&](auto done) { inspector->queues(std::move(done)); });
  EXPECT_EQ(queues.value().at(0).running, 2u);
  EXPECT_EQ(witness->returned(), 0u);
}

TEST_F(DeliveryTest, AStoppedServerKeepsChargedAndLeasedWhatWasSentAndNotAnswered) {
  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) { peer.wait_until_gone(-1); });
  CallbackOptions chosen = options();
  chosen.per_host = 1;
  start(chosen);
  const JobId sent = enqueue(job_to(receiver.url()));
  receiver.wait_for(1);
  const JobId waiting = enqueue(job_to(receiver.url()));
  service->stop(0ms);
  EXPECT_EQ(find(sent).state, JobState::kRunning);
  EXPECT_EQ(find(sent).attempts, 1u);
  EXPECT_EQ(find(waiting).state, JobState::kReady);
  EXPECT_EQ(find(waiting).attempts, 0u);
  EXPECT_EQ(receiver.received().size(), 1u);
}

TEST_F(DeliveryTest, NothingIsSentOnceTheServerIsStopping) {
  std::mutex mutex;
  std::unique_lock held(mutex);
  HttpReceiver receiver([&](const HttpReceived&, HttpPeer& peer) {
    std::lock_guard wait(mutex);
    peer.answer("200 OK");
  });
  CallbackOptions chosen = options();
  chosen.per_host = 1;
  start(chosen);
  const JobId first = enqueue(job_to(receiver.url()));
  receiver.wait_for(1);
  const JobId second = enqueue(job_to(receiver.url()));
  service->begin_stop();
  const JobId third = enqueue(job_to(receiver.url()));
  held.unlock();
  EXPECT_EQ(end_of(first).state, JobState::kDone);
  service->stop(60s);
  for (const JobId& id : {second, third}) {
    EXPECT_EQ(find(id).state, JobState::kReady);
    EXPECT_EQ(find(id).attempts, 0u);
  }
  EXPECT_EQ(receiver.received().size(), 1u);
}

TEST_F(DeliveryTest, AStoppingServerFinishesWhatIsUnderWay) {
  std::mutex mutex;
  std::unique_lock held(mutex);
  HttpReceiver receiver([&](const HttpReceived&, HttpPeer& peer) {
    std::lock_guard wait(mutex);
    peer.answer("200 OK");
  });
  start();
  const JobId id = enqueue(job_to(receiver.url()));
  receiver.wait_for(1);
  std::thread stopping([&] { service->stop(60s); });
  held.unlock();
  stopping.join();
  EXPECT_EQ(find(id).state, JobState::kDone);
}

TEST_F(DeliveryTest, NoSecretIsRepeatedAnywhere) {
  CallbackOptions chosen = options();
  chosen.secrets = {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};
  HttpReceiver receiver(
      [](const HttpReceived&, HttpPeer& peer) { peer.answer("302 Found", "", "Location: /x?s3cr3t\r\n"); });
  start(chosen);
  Job job = job_to(receiver.url("/hook?token=s3cr3t"));
  job.retry = RetryPolicy::none();
  const JobInfo info = deliver(job);
  EXPECT_EQ(info.history.back().text, "the receiver answered 302: redirects are not followed");
  const Response log = ask(Method::kGet, "/v1/callbacks", {});
  EXPECT_NE(log.body.find("/hook?***"), std::string::npos) << log.body;
  EXPECT_EQ(log.body.find("s3cr3t"), std::string::npos) << log.body;
  EXPECT_EQ(log.body.find("MfKQ9r8"), std::string::npos) << log.body;
}

}  // namespace
}  // namespace bide::server
