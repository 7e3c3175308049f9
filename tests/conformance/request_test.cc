// Requests: a reply comes back to whoever asked, and to nobody else; a deadline that has passed stops everything.

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// Before worker.h, whose bide::testing hides the other one.
#include "conformance/broker_conformance.h"

#include "bide/client.h"
#include "bide/worker.h"

namespace bide::conformance {
namespace {

using namespace std::chrono_literals;

// So long that only a mistake reaches it.
constexpr Milliseconds kAmple{60'000};

// On a broker that is somebody else's.
Client client_of(Broker& broker, Inspector& inspector) {
  const std::shared_ptr<void> nobody;
  return Client(std::shared_ptr<Broker>(nobody, &broker), std::shared_ptr<Inspector>(nobody, &inspector));
}

std::string expiry_of(const Job& job) { return std::to_string(job.expires->time_since_epoch().count()); }

}  // namespace

TEST_P(BrokerConformance, AReplyArrivesWithItsContentAndItsType) {
  BIDE_NEEDS(requests);
  Client client = client_of(broker(), inspector());
  Worker worker(client, {.concurrency = 2});
  worker.reply("echo", [](const Job& job) { return Reply{job.kind + job.content_type + job.body, "text/x-echo"}; });
  worker.reply("nothing", [] {});
  ASSERT_TRUE(succeeded(worker.start()));
  const std::string body("\0 bytes \xff", 9);
  const auto reply = client.request("echo", body, {.timeout = kAmple, .content_type = "text/x-ask"}).get();
  ASSERT_TRUE(succeeded(reply));
  EXPECT_EQ(reply->body, "echotext/x-ask" + body);
  EXPECT_EQ(reply->content_type, "text/x-echo");
  const auto empty = client.request("nothing", "", {.timeout = kAmple}).get();
  ASSERT_TRUE(succeeded(empty));
  EXPECT_EQ(empty->body, "");
  EXPECT_EQ(client.request_stats().replied, 2u);
  client.close();
}

TEST_P(BrokerConformance, OfManyRequestsAtOnceEachGetsItsOwnReply) {
  BIDE_NEEDS(requests);
  constexpr int kThreads = 4;
  constexpr int kEach = 50;
  Client client = client_of(broker(), inspector());
  Worker worker(client, {.concurrency = 4});
  worker.reply("reverse", [](const std::string& body) { return std::string(body.rbegin(), body.rend()); });
  ASSERT_TRUE(succeeded(worker.start()));
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::vector<std::pair<std::string, std::future<Result<std::string>>>> asked;
      for (int i = 0; i < kEach; ++i) {
        std::string body = std::to_string(thread) + "-" + std::to_string(i) + "!";
        auto reply = client.request<std::string>("reverse", body, {.timeout = kAmple});
        asked.emplace_back(std::string(body.rbegin(), body.rend()), std::move(reply));
      }
      for (auto& [expected, future] : asked) {
        const auto reply = future.get();
        EXPECT_TRUE(succeeded(reply));
        if (reply && *reply == expected) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, kThreads * kEach);
  client.close();
}

TEST_P(BrokerConformance, TheErrorOfAHandlerArrivesAndItsRequestIsNoDeadJob) {
  BIDE_NEEDS(requests);
  Client client = client_of(broker(), inspector());
  Worker worker(client, {.concurrency = 2});
  worker.reply("throws", []() -> std::string { throw std::runtime_error("no such user: ann"); });
  worker.reply("refuses", [] { return dead("not for you"); });
  ASSERT_TRUE(succeeded(worker.start()));
  const auto thrown = client.request("throws", "", {.timeout = kAmple}).get();
  ASSERT_TRUE(refused(thrown, ErrorCode::kHandlerFailed));
  EXPECT_EQ(thrown.error().message, "no such user: ann");
  const auto refusal = client.request("refuses", "", {.timeout = kAmple}).get();
  ASSERT_TRUE(refused(refusal, ErrorCode::kHandlerFailed));
  EXPECT_EQ(refusal.error().message, "not for you");
  EXPECT_EQ(client.request_stats().failed, 2u);
  EXPECT_TRUE(eventually([&] { return list_ids({.states = {JobState::kDead}, .queue = "default"}).empty(); }));
  client.close();
}

TEST_P(BrokerConformance, ARetryIsMadeOnlyWithinTheDeadline) {
  BIDE_NEEDS(requests);
  Client client = client_of(broker(), inspector());
  Worker worker(client, {.concurrency = 2});
  worker.reply("second", [](const Job&, Context& context) -> std::string {
    if (context.attempt() == 1) throw std::runtime_error("not yet");
    return "attempt " + std::to_string(context.attempt());
  });
  ASSERT_TRUE(succeeded(worker.start()));
  const auto second =
      client.request<std::string>("second", "", {.timeout = kAmple, .retry = RetryPolicy::fixed(0ms, 3)}).get();
  ASSERT_TRUE(succeeded(second));
  EXPECT_EQ(*second, "attempt 2");
  const auto never = client.request("second", "", {.timeout = kAmple, .retry = RetryPolicy::fixed(1h, 3)}).get();
  ASSERT_TRUE(refused(never, ErrorCode::kHandlerFailed));
  EXPECT_EQ(never.error().message, "not yet");
  client.close();
}

TEST_P(BrokerConformance, ARequestThatNobodyTookInTimeIsNotRunLater) {
  BIDE_NEEDS(requests);
  Client client = client_of(broker(), inspector());
  const auto reply = client.request("late", "", {.timeout = 300ms}).get();
  ASSERT_TRUE(refused(reply, ErrorCode::kTimedOut));
  EXPECT_EQ(client.request_stats().timed_out, 1u);

  std::atomic<int> ran = 0;
  Worker worker(client, {.concurrency = 1});
  worker.reply("late", [&] { ++ran; });
  worker.reply("ping", [] { return "pong"; });
  ASSERT_TRUE(succeeded(worker.start()));
  // Taken after it.
  EXPECT_EQ(client.request<std::string>("ping", "", {.timeout = kAmple}).get().value(), "pong");
  EXPECT_EQ(ran, 0);
  client.close();
}

TEST_P(BrokerConformance, ALateReplyIsDroppedAndCounted) {
  BIDE_NEEDS(requests);
  Client client = client_of(broker(), inspector());
  auto reply = client.request("slow", "", {.timeout = 1200ms});
  const Lease lease = lease_one();
  ASSERT_TRUE(refused(reply.get(), ErrorCode::kTimedOut));
  ASSERT_TRUE(succeeded(settle_one(lease, Done{.result = "too late"})));
  EXPECT_TRUE(eventually([&] { return client.request_stats().late == 1; }));
  EXPECT_EQ(client.request_stats().replied, 0u);
  client.close();
}

TEST_P(BrokerConformance, ANestedRequestHasNoMoreTimeThanTheOneItIsPartOf) {
  BIDE_NEEDS(requests);
  Client client = client_of(broker(), inspector());
  Worker worker(client, {.concurrency = 2});
  worker.reply("outer", [](const Job& job, Context& context) {
    return expiry_of(job) + " " + context.request<std::string>("inner", "", {.timeout = 24h}).get().value();
  });
  worker.reply("inner", [](const Job& job) { return expiry_of(job); });
  ASSERT_TRUE(succeeded(worker.start()));
  const auto both = client.request<std::string>("outer", "", {.timeout = kAmple}).get();
  ASSERT_TRUE(succeeded(both));
  const std::size_t space = both->find(' ');
  ASSERT_NE(space, std::string::npos);
  EXPECT_LE(std::stoll(both->substr(space + 1)), std::stoll(both->substr(0, space)));
  client.close();
}

}  // namespace bide::conformance
