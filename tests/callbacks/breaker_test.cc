// Many deliveries, and hosts that are slow or down.

#include <atomic>

#include "callbacks/callback_bench.h"
#include "support/child_process.h"

namespace bide::server {
namespace {

using Breaker = CallbackTest;

TEST_F(Breaker, NoMoreThanTheLimitIsSentToAHostAtOnce) {
  constexpr int kLimit = 3;
  std::atomic<int> requests = 0;
  HttpReceiver receiver([&](const HttpReceived&, HttpPeer& peer) {
    // The first wait for each other, and all of them for one that should not come.
    ++requests;
    while (requests < kLimit && !peer.wait_until_gone(5)) continue;
    peer.wait_until_gone(5);
    peer.answer("200 OK");
  });
  CallbackOptions chosen = options();
  chosen.per_host = kLimit;
  start(chosen);
  std::vector<JobId> ids;
  for (int i = 0; i < 40; ++i) ids.push_back(enqueue(job_to(receiver.url())));
  for (const JobId& id : ids) EXPECT_EQ(end_of(id).attempts, 1u);
  EXPECT_EQ(receiver.most_at_once(), kLimit);
}

TEST_F(Breaker, ASlowHostDoesNotHoldUpAnother) {
  HttpReceiver slow([](const HttpReceived&, HttpPeer& peer) { peer.wait_until_gone(-1); });
  HttpReceiver quick([](const HttpReceived&, HttpPeer& peer) { peer.answer("200 OK"); });
  CallbackOptions chosen = options();
  chosen.concurrency = 8;
  chosen.per_host = 2;
  chosen.answer_within = 10min;  // None of them is given up.
  start(chosen);
  for (int i = 0; i < 50; ++i) enqueue(job_to(slow.url()));
  slow.wait_for(2);
  EXPECT_EQ(deliver(job_to(quick.url())).state, JobState::kDone);
  EXPECT_EQ(slow.received().size(), 2u);
}

TEST_F(Breaker, AHostThatIsDownIsLeftAloneAndNobodyIsChargedForIt) {
  const std::uint16_t port = support::free_port();
  const std::string url = "http://127.0.0.1:" + std::to_string(port) + "/";
  CallbackOptions chosen = options();
  chosen.failures_to_open = 3;
  chosen.per_host = 1;
  start(chosen);
  std::vector<JobId> ids;
  for (int i = 0; i < 20; ++i) {
    Job job = job_to(url);
    job.retry = RetryPolicy::fixed(10ms, 100);
    ids.push_back(enqueue(job));
  }
  // Three failures, then the breaker: from then on a probe at a time.
  while (witness->returned() < 40) witness->wait_for_settled(witness->wait_for_settled(0).size() + 1);
  const Response shown = ask(Method::kGet, "/v1/callbacks", {});
  EXPECT_NE(shown.body.find("\"failures\":"), std::string::npos);
  EXPECT_EQ(shown.body.find("\"breaker\":\"closed\""), std::string::npos) << shown.body;

  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) { peer.answer("200 OK"); }, port);
  for (const JobId& id : ids) EXPECT_EQ(end_of(id).state, JobState::kDone);
  EXPECT_GE(witness->retried(), 3u);
  EXPECT_LT(witness->retried(), witness->returned());
}

TEST_F(Breaker, MoreHostsThanMayBeRememberedAreServedAllTheSame) {
  HttpReceiver receiver([](const HttpReceived&, HttpPeer& peer) { peer.answer("200 OK"); });
  CallbackOptions chosen = options();
  chosen.policy = AddressPolicy::make("allow-list", {"127.0.0.0/8:*"}).value();
  chosen.hosts = 3;
  start(chosen);
  HttpReceiver second([](const HttpReceived&, HttpPeer& peer) { peer.answer("200 OK"); });
  HttpReceiver third([](const HttpReceived&, HttpPeer& peer) { peer.answer("200 OK"); });
  HttpReceiver fourth([](const HttpReceived&, HttpPeer& peer) { peer.answer("200 OK"); });
  for (int i = 0; i < 3; ++i) {
    for (const HttpReceiver* each : {&receiver, &second, &third, &fourth}) {
      EXPECT_EQ(deliver(job_to(each->url())).state, JobState::kDone);
    }
  }
}

}  // namespace
}  // namespace bide::server
