// What the remote broker does when the server or the network misbehaves: against a server of a few lines that loses
// answers, is away and comes back. What a good server makes of it is the business of the conformance suite.

#include "brokers/remote/remote_broker.h"

#include <gtest/gtest.h>

#include <future>
#include <set>

#include "bide/wait.h"
#include "http_client/http_client_test_server.h"
#include "wire/batch_json.h"
#include "wire/info_json.h"
#include "wire/lease_json.h"
#include "wire/settle_json.h"

namespace bide::brokers::remote {
namespace {

using http_client::TestServer;

std::string ok(const std::string& body) {
  return TestServer::answer(body, "200 OK", "Content-Type: application/json\r\n");
}
std::string body_of(const std::string& request) { return request.substr(request.find("\r\n\r\n") + 4); }

std::string accept_all(const std::string& request) {
  wire::Batch batch;
  const std::string body = body_of(request);
  if (wire::read_batch(body, Time(), batch)) return TestServer::answer("{}", "400 Bad Request");
  std::vector<wire::BatchResult> results;
  for (const wire::BatchItem& item : batch.items) results.push_back({Enqueued{item.job.id, false}, std::nullopt});
  return ok(wire::batch_results_json(batch, results));
}

// Answers what every client asks first, and leaves the rest to the test.
TestServer::Script with_capabilities(TestServer::Script script) {
  return [script = std::move(script)](const std::string& request) {
    if (request.starts_with("GET /v1/capabilities ")) return ok(wire::capabilities_json({}));
    return script(request);
  };
}

std::shared_ptr<RemoteBroker> open(const TestServer& server, Milliseconds patience = Milliseconds(5'000)) {
  RemoteSettings settings;
  settings.base = server.url("");
  settings.patience = patience;
  settings.token = "bide_secret";
  auto opened = RemoteBroker::open(settings);
  EXPECT_TRUE(opened) << opened.error().message;
  return *opened;
}

Job job(std::string kind = "work") {
  Job made;
  made.kind = std::move(kind);
  return made;
}

Result<Enqueued> enqueue_one(Broker& broker, Job one) {
  auto results =
      wait<std::vector<Result<Enqueued>>>([&](auto done) { broker.enqueue({std::move(one)}, std::move(done)); });
  if (!results) return results.error();
  return results->at(0);
}

TEST(RemoteBroker, ShowsItsToken) {
  TestServer server(with_capabilities(accept_all));
  const auto broker = open(server);
  EXPECT_TRUE(enqueue_one(*broker, job()));
  for (std::size_t i = 0; i < server.requests(); ++i) {
    EXPECT_NE(server.request(i).find("\r\nAuthorization: Bearer bide_secret\r\n"), std::string::npos);
  }
}

TEST(RemoteBroker, SendsAJobWhoseAnswerWasLostAgainWithTheSameId) {
  std::atomic<int> posts = 0;
  TestServer server(with_capabilities(
      [&](const std::string& request) { return ++posts <= 3 ? std::string() : accept_all(request); }));
  const auto broker = open(server);
  const auto enqueued = enqueue_one(*broker, job());
  ASSERT_TRUE(enqueued) << enqueued.error().message;
  EXPECT_FALSE(enqueued->existed);
  std::set<std::string> bodies;
  for (std::size_t i = 1; i < server.requests(); ++i) bodies.insert(body_of(server.request(i)));
  EXPECT_EQ(bodies.size(), 1u);
  EXPECT_NE(bodies.begin()->find(enqueued->id.to_string()), std::string::npos);
}

TEST(RemoteBroker, DoesNotRepeatAJobWhereTheBrokerCannotTellThatItIsTheSame) {
  std::atomic<int> posts = 0;
  TestServer server([&](const std::string& request) {
    if (request.starts_with("GET /v1/capabilities ")) return ok(wire::capabilities_json({.idempotent_ids = false}));
    posts += 1;
    return std::string();
  });
  const auto broker = open(server);
  const auto enqueued = enqueue_one(*broker, job());
  ASSERT_FALSE(enqueued);
  EXPECT_EQ(enqueued.error().code, ErrorCode::kUnconfirmed);
  EXPECT_EQ(posts, 1);
}

std::string refusal(ErrorCode code) {
  const wire::Problem problem = wire::problem_of(Error{code, "no"});
  return TestServer::answer(wire::problem_json(problem), std::to_string(problem.status) + " No",
                            "Content-Type: application/problem+json\r\n");
}

// As in front of RabbitMQ: the same id enqueued twice is two jobs.
TestServer::Script without_idempotent_ids(TestServer::Script script) {
  return [script = std::move(script)](const std::string& request) {
    if (request.starts_with("GET /v1/capabilities ")) return ok(wire::capabilities_json({.idempotent_ids = false}));
    return script(request);
  };
}

TEST(RemoteBroker, OfABatchOnlyWhatWasNotConfirmedIsUnconfirmedAndNothingIsSentAgain) {
  std::atomic<int> posts = 0;
  TestServer server(without_idempotent_ids([&](const std::string& request) {
    posts += 1;
    wire::Batch batch;
    const std::string body = body_of(request);
    EXPECT_FALSE(wire::read_batch(body, Time(), batch));
    std::vector<wire::BatchResult> results;
    for (const wire::BatchItem& item : batch.items) results.push_back({Enqueued{item.job.id, false}, std::nullopt});
    results.at(1).problem = wire::problem_of(Error{ErrorCode::kUnconfirmed, "the confirm was lost"});
    return ok(wire::batch_results_json(batch, results));
  }));
  const auto broker = open(server);
  auto results = wait<std::vector<Result<Enqueued>>>([&](auto done) {
    broker->enqueue({job("a"), job("b"), job("c")}, std::move(done));
  });
  ASSERT_TRUE(results);
  EXPECT_TRUE(results->at(0));
  EXPECT_EQ(results->at(1).error().code, ErrorCode::kUnconfirmed);
  EXPECT_TRUE(results->at(2));
  EXPECT_EQ(posts, 1);
}

TEST(RemoteBroker, WhatWasCertainlyNotDoneIsSentAgainAlsoWhereTwiceWouldDoHarm) {
  std::atomic<int> posts = 0;
  TestServer server(without_idempotent_ids([&](const std::string& request) {
    if (++posts % 2 == 1) return refusal(ErrorCode::kUnavailable);
    return request.find("/purge ") != std::string::npos ? ok(R"({"removed":3})") : accept_all(request);
  }));
  const auto broker = open(server);
  EXPECT_TRUE(enqueue_one(*broker, job()));
  const auto removed = wait<std::uint64_t>([&](auto done) { broker->purge("default", std::move(done)); });
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(*removed, 3u);
  EXPECT_EQ(posts, 4);
}

TEST(RemoteBroker, WhatMayHaveBeenDoneIsNotSentAgainWhereTwiceWouldDoHarm) {
  std::atomic<int> posts = 0;
  TestServer server(with_capabilities([&](const std::string&) {
    posts += 1;
    return refusal(ErrorCode::kUnconfirmed);
  }));
  const auto broker = open(server);
  const auto cancelled = wait<std::vector<Status>>([&](auto done) { broker->cancel({JobId()}, {}, std::move(done)); });
  EXPECT_EQ(cancelled.error().code, ErrorCode::kUnconfirmed);
  const auto replayed = wait<std::vector<Status>>([&](auto done) { broker->replay({JobId()}, {}, std::move(done)); });
  EXPECT_EQ(replayed.error().code, ErrorCode::kUnconfirmed);
  const auto removed = wait<std::uint64_t>([&](auto done) { broker->purge("default", std::move(done)); });
  EXPECT_EQ(removed.error().code, ErrorCode::kUnconfirmed);
  EXPECT_EQ(posts, 3);
}

TEST(RemoteBroker, AnswersWithinItsPatienceWhenTheServerIsAway) {
  std::shared_ptr<RemoteBroker> broker;
  {
    TestServer server(with_capabilities(accept_all));
    broker = open(server, Milliseconds(100));
  }
  const auto enqueued = enqueue_one(*broker, job());
  ASSERT_FALSE(enqueued);
  EXPECT_EQ(enqueued.error().code, ErrorCode::kUnavailable);
  const auto found = wait<JobInfo>([&](auto done) { broker->find(JobId(), std::move(done)); });
  EXPECT_EQ(found.error().code, ErrorCode::kUnavailable);
}

TEST(RemoteBroker, CallsThatWaitGoTogether) {
  std::atomic<int> posts = 0;
  TestServer* held = nullptr;
  TestServer server(with_capabilities([&](const std::string& request) {
    if (++posts <= 4) held->hold();
    return accept_all(request);
  }));
  held = &server;
  const auto broker = open(server);
  std::promise<void> all;
  std::atomic<int> confirmed = 0;
  for (int i = 0; i < 504; ++i) {
    broker->enqueue({job()}, [&](Result<std::vector<Result<Enqueued>>> results) {
      if (results && results->at(0) && ++confirmed == 504) all.set_value();
    });
    if (i < 4) server.wait_for_requests(static_cast<std::size_t>(i) + 2);
  }
  server.release();
  all.get_future().wait();
  EXPECT_EQ(posts, 5);
}

TEST(RemoteBroker, AnInvalidJobIsRefusedHereAndTheOthersGo) {
  TestServer server(with_capabilities(accept_all));
  const auto broker = open(server);
  auto results = wait<std::vector<Result<Enqueued>>>([&](auto done) {
    broker->enqueue({job("good"), job(""), job("good")}, std::move(done));
  });
  ASSERT_TRUE(results);
  EXPECT_TRUE(results->at(0));
  EXPECT_EQ(results->at(1).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(results->at(2));
}

TEST(RemoteBroker, ProblemsOfTheServerBecomeErrorsOfTheSeam) {
  TestServer server(with_capabilities([](const std::string& request) {
    const bool post = request.starts_with("POST");
    const wire::Problem problem =
        wire::problem_of(post ? Error{ErrorCode::kDiskFull, "full"} : Error{ErrorCode::kNotFound, "no such job"});
    return TestServer::answer(wire::problem_json(problem), std::to_string(problem.status) + " No",
                              "Content-Type: application/problem+json\r\n");
  }));
  const auto broker = open(server);
  EXPECT_EQ(enqueue_one(*broker, job()).error().code, ErrorCode::kDiskFull);
  EXPECT_EQ(wait<JobInfo>([&](auto done) { broker->find(JobId(), std::move(done)); }).error().code,
            ErrorCode::kNotFound);
}

TEST(RemoteBroker, SomethingElseThatSpeaksHttpIsNoServer) {
  TestServer server([](const std::string&) { return TestServer::answer("<html>hello</html>"); });
  RemoteSettings settings;
  settings.base = server.url("");
  const auto opened = RemoteBroker::open(settings);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kUnavailable);
}

// Gives one lease to the first poll that asks, and holds the others until the end.
struct OneLease {
  std::atomic<int> polls = 0;
  std::atomic<int> left = 0;
  TestServer* server = nullptr;
  Milliseconds held{0};
  std::mutex mutex;
  std::vector<std::string> settled;

  std::string operator()(const std::string& request) {
    if (request.starts_with("POST /v1/leases/leave ")) return left += 1, ok("{}");
    if (request.starts_with("POST /v1/leases/settle ")) {
      wire::SettleRequest items;
      const std::string body = body_of(request);
      if (wire::read_settle_request(body, Time(), items)) return TestServer::answer("{}", "400 Bad Request");
      const std::lock_guard lock(mutex);
      settled.push_back(body);
      return ok(wire::settled_json(items));
    }
    if (!request.starts_with("POST /v1/leases ")) return TestServer::answer("{}", "404 Not Found");
    if (++polls > 1) server->hold();
    if (polls > 1) return ok(wire::leases_json({}));
    Lease lease;
    lease.job = job();
    lease.job.id = *JobId::parse("01890000-0000-7000-8000-000000000001");
    lease.token = 7;
    return ok(wire::leases_json({lease}, Milliseconds(0), held));
  }
};

TEST(RemoteBroker, GivesBackTheLeasesItHoldsWhenItIsClosed) {
  OneLease one;
  TestServer server(with_capabilities([&](const std::string& request) { return one(request); }));
  one.server = &server;
  auto broker = open(server);
  std::promise<Lease> arrived;
  auto subscription =
      broker->subscribe({.credit = 1}, [&](std::vector<Lease> leases) { arrived.set_value(leases.at(0)); });
  ASSERT_TRUE(subscription);
  EXPECT_EQ(arrived.get_future().get().token, 7u);
  subscription->reset();
  EXPECT_EQ(one.left, 1) << "the server knows before the end of the subscription returns";
  EXPECT_EQ(one.polls, 1) << "no credit, no poll";
  broker.reset();
  ASSERT_EQ(one.settled.size(), 1u);
  EXPECT_NE(one.settled[0].find("\"returned\""), std::string::npos) << one.settled[0];
}

TEST(RemoteBroker, ALeaseIsAsOldAsTheTimeThatNobodyCanAccountFor) {
  OneLease one;
  TestServer server(with_capabilities([&](const std::string& request) { return one(request); }));
  one.server = &server;
  // The answer says that the server held the request for no time at all: everything else was the way.
  class Slow : public platform::Clock {
   public:
    platform::Instant now() const override { return {.wall_us = 0, .elapsed_us = 1'000'000 * ++calls_}; }
    std::shared_ptr<void> watch(std::function<void()>) const override { return {}; }
    mutable std::atomic<std::int64_t> calls_ = 0;
  } clock;
  RemoteSettings settings;
  settings.base = server.url("");
  const auto broker = *RemoteBroker::open(settings, clock);
  std::promise<Lease> arrived;
  auto subscription =
      broker->subscribe({.credit = 1}, [&](std::vector<Lease> leases) { arrived.set_value(leases.at(0)); });
  EXPECT_GE(arrived.get_future().get().age, Milliseconds(1000));
}

TEST(RemoteBroker, ASettlementWhoseAnswerWasLostIsSentAgain) {
  OneLease one;
  std::atomic<int> settles = 0;
  TestServer server(with_capabilities([&](const std::string& request) {
    if (request.starts_with("POST /v1/leases/settle ") && ++settles <= 2) return std::string();
    return one(request);
  }));
  one.server = &server;
  const auto broker = open(server);
  const JobId id = *JobId::parse("01890000-0000-7000-8000-000000000001");
  Settlement settlement{{id, 7}, Done{}, {job("effect")}};
  auto statuses = wait<std::vector<Status>>([&](auto done) { broker->settle({settlement}, std::move(done)); });
  ASSERT_TRUE(statuses);
  EXPECT_TRUE(statuses->at(0));
  std::set<std::string> bodies;
  for (std::size_t i = 1; i < server.requests(); ++i) bodies.insert(body_of(server.request(i)));
  EXPECT_EQ(bodies.size(), 1u) << "the effect has its id from the beginning";
}

TEST(RemoteBroker, PollsAgainAfterTheServerWasAway) {
  std::atomic<int> polls = 0;
  TestServer server(with_capabilities([&](const std::string& request) {
    if (!request.starts_with("POST /v1/leases ")) return ok("{}");
    if (++polls < 3) return std::string();
    Lease lease;
    lease.job = job();
    lease.job.id = *JobId::parse("01890000-0000-7000-8000-000000000002");
    lease.token = 1;
    return ok(wire::leases_json({lease}));
  }));
  const auto broker = open(server);
  std::promise<void> arrived;
  auto subscription = broker->subscribe({.credit = 1}, [&](const std::vector<Lease>&) { arrived.set_value(); });
  arrived.get_future().wait();
  EXPECT_GE(polls, 3);
}

TEST(RemoteBroker, EverythingCompletesWhenItVanishes) {
  TestServer* held = nullptr;
  TestServer server(with_capabilities([&](const std::string&) {
    held->hold();
    return std::string();
  }));
  held = &server;
  const auto broker = open(server);
  std::promise<Result<JobInfo>> watched;
  broker->watch(JobId(), [&](Result<JobInfo> info) { watched.set_value(std::move(info)); });
  server.wait_for_requests(2);
  broker->vanish();
  EXPECT_EQ(watched.get_future().get().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(enqueue_one(*broker, job()).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace bide::brokers::remote
