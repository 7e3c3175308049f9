#include "brokers/remote/poller.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "http_client/http_client_test_server.h"
#include "wire/lease_json.h"
#include "wire/problem.h"

namespace bide::brokers::remote {
namespace {

using http_client::TestServer;

std::string ok(const std::string& body) {
  return TestServer::answer(body, "200 OK", "Content-Type: application/json\r\n");
}
std::string refusal(std::string_view code) {
  const wire::Problem problem = wire::make_problem(code, "the token is not known");
  return TestServer::answer(wire::problem_json(problem), std::to_string(problem.status) + " No",
                            "Content-Type: application/problem+json\r\n");
}
std::string one_lease() {
  Lease lease;
  lease.job.kind = "work";
  lease.job.id = *JobId::parse("01890000-0000-7000-8000-000000000001");
  lease.token = 7;
  return ok(wire::leases_json({lease}));
}
bool is_poll(const std::string& request) { return request.starts_with("POST /v1/leases "); }

std::shared_ptr<ApiCaller> caller_of(const TestServer& server) {
  RemoteSettings settings;
  settings.base = server.url("");
  return std::make_shared<ApiCaller>(std::move(settings));
}

// The caller is closed before its last owner lets go of it, which may be one of its own threads.
class OpenCaller {
 public:
  explicit OpenCaller(const TestServer& server) : caller_(caller_of(server)) {}
  ~OpenCaller() { caller_->close(); }
  Poller::Owner owner() const;

 private:
  const std::shared_ptr<ApiCaller> caller_;
};

Poller::Owner OpenCaller::owner() const {
  Poller::Owner owner;
  owner.caller = caller_;
  owner.clock = &platform::real_clock();
  owner.arrived = [](const std::shared_ptr<Poller>&, const std::vector<Lease>&) {};
  owner.expired = [](const LeaseRef&) {};
  owner.give_back = [](const std::vector<LeaseRef>&, const std::function<void()>& done) { done(); };
  owner.farewell = Milliseconds(60'000);
  return owner;
}

TEST(Poller, LeasesThatArriveAfterItsEndAreGivenBackBeforeTheEndReturns) {
  TestServer* held = nullptr;
  TestServer server([&](const std::string& request) {
    if (is_poll(request)) {
      held->hold();
      return one_lease();
    }
    held->release();
    return ok("{}");
  });
  held = &server;
  const OpenCaller caller(server);
  Poller::Owner owner = caller.owner();
  std::mutex mutex;
  std::vector<LeaseRef> given_back;
  owner.give_back = [&](const std::vector<LeaseRef>& leases, const std::function<void()>& done) {
    {
      const std::lock_guard lock(mutex);
      given_back.insert(given_back.end(), leases.begin(), leases.end());
    }
    done();
  };
  const auto poller = std::make_shared<Poller>(
      "p", SubscribeOptions{.credit = 1}, [](const std::vector<Lease>&) { FAIL() << "it has ended"; },
      std::move(owner));
  poller->start();
  server.wait_for_requests(1);
  poller->end();
  {
    const std::lock_guard lock(mutex);
    ASSERT_EQ(given_back.size(), 1u);
    EXPECT_EQ(given_back[0].token, 7u);
  }
}

TEST(Poller, ATokenThatIsRefusedEndsItWithOneWord) {
  std::atomic<int> polls = 0;
  TestServer server([&](const std::string& request) {
    if (is_poll(request)) polls += 1;
    return refusal("unauthorized");
  });
  std::promise<Error> failed;  // Set twice, it would throw.
  const OpenCaller caller(server);
  const auto poller = std::make_shared<Poller>(
      "p", SubscribeOptions{.credit = 1, .on_failed = [&](const Error& error) { failed.set_value(error); }},
      [](const std::vector<Lease>&) {}, caller.owner());
  poller->start();
  const Error error = failed.get_future().get();
  EXPECT_EQ(error.code, ErrorCode::kPermissionDenied);
  EXPECT_NE(error.message.find("the token is not known"), std::string::npos) << error.message;
  poller->set_credit(5);
  poller->end();
  EXPECT_EQ(polls, 1);
}

TEST(Poller, ATokenThatIsRevokedLaterEndsItToo) {
  std::atomic<int> polls = 0;
  TestServer server([&](const std::string& request) {
    if (!is_poll(request)) return ok("{}");
    return ++polls == 1 ? one_lease() : refusal("forbidden");
  });
  std::promise<Error> failed;
  std::atomic<int> arrived = 0;
  const OpenCaller caller(server);
  const auto poller = std::make_shared<Poller>(
      "p", SubscribeOptions{.credit = 2, .on_failed = [&](const Error& error) { failed.set_value(error); }},
      [&](const std::vector<Lease>& leases) { arrived += static_cast<int>(leases.size()); }, caller.owner());
  poller->start();
  EXPECT_EQ(failed.get_future().get().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(arrived, 1);
  EXPECT_EQ(poller->held().size(), 1u) << "what it holds may still be settled by another";
  poller->end();
}

TEST(Poller, ARefusalThatNobodyIsToldIsTriedAgain) {
  std::atomic<int> polls = 0;
  TestServer server([&](const std::string& request) {
    if (!is_poll(request)) return ok("{}");
    return ++polls < 3 ? refusal("unauthorized") : one_lease();
  });
  std::promise<void> arrived;
  const OpenCaller caller(server);
  const auto poller = std::make_shared<Poller>(
      "p", SubscribeOptions{.credit = 1}, [&](const std::vector<Lease>&) { arrived.set_value(); }, caller.owner());
  poller->start();
  arrived.get_future().wait();
  poller->end();
}

TEST(Poller, AServerThatIsAwayIsNoRefusal) {
  std::atomic<int> polls = 0;
  TestServer server([&](const std::string& request) {
    if (!is_poll(request)) return ok("{}");
    const int poll = ++polls;
    if (poll == 1) return refusal("draining");
    if (poll == 2) return std::string();
    if (poll == 3) return TestServer::answer("<html>not here</html>", "404 Not Found");
    return one_lease();
  });
  std::promise<void> arrived;
  const OpenCaller caller(server);
  const auto poller = std::make_shared<Poller>(
      "p", SubscribeOptions{.credit = 1, .on_failed = [](const Error& error) { FAIL() << error.message; }},
      [&](const std::vector<Lease>&) { arrived.set_value(); }, caller.owner());
  poller->start();
  arrived.get_future().wait();
  poller->end();
}

TEST(Poller, AsksForFewerLeasesWhereJobsAreLarge) {
  std::mutex mutex;
  std::vector<int> asked;
  TestServer server([&](const std::string& request) {
    if (!is_poll(request)) return ok("{}");
    wire::LeaseRequest wanted;
    EXPECT_FALSE(wire::read_lease_request(request.substr(request.find("\r\n\r\n") + 4), wanted));
    int poll = 0;
    {
      const std::lock_guard lock(mutex);
      asked.push_back(wanted.max);
      poll = static_cast<int>(asked.size());
    }
    std::vector<Lease> leases;
    for (int i = 0; i < (poll == 1 ? 2 : 1); ++i) {
      Lease lease;
      lease.job.kind = "work";
      std::array<std::uint8_t, JobId::kSize> bytes{static_cast<std::uint8_t>(poll), static_cast<std::uint8_t>(i)};
      lease.job.id = JobId(bytes);
      lease.token = 1;
      if (poll == 2) lease.job.body.assign(12 << 20, 'x');
      leases.push_back(std::move(lease));
    }
    return ok(wire::leases_json(leases));
  });
  std::promise<void> third;
  std::atomic<int> answers = 0;
  const OpenCaller caller(server);
  const auto poller = std::make_shared<Poller>(
      "p", SubscribeOptions{.credit = 5'000},
      [&](const std::vector<Lease>&) {
        if (++answers == 3) third.set_value();
      },
      caller.owner());
  poller->start();
  third.get_future().wait();
  poller->end();
  const std::lock_guard lock(mutex);
  EXPECT_EQ(asked[0], 64);
  EXPECT_EQ(asked[1], 128) << "small jobs";
  EXPECT_EQ(asked[2], 2) << "12 MiB each";
}

TEST(ApiCaller, AnAnswerMayBeAsLargeAsTheCallAllows) {
  TestServer server([](const std::string&) { return ok(std::string(1000, 'x')); });
  const auto caller = caller_of(server);
  for (const std::size_t allowed : {999u, 1000u}) {
    std::promise<Result<std::string>> answered;
    caller->call({.path = "/", .answer_bytes = allowed},
                 [&](Result<std::string> answer) { answered.set_value(std::move(answer)); });
    const Result<std::string> answer = answered.get_future().get();
    EXPECT_EQ(answer.has_value(), allowed == 1000);
    EXPECT_TRUE(answer || answer.error().code == ErrorCode::kIoError);
  }
}

TEST(ApiCaller, ACallThatCrossesItsCloseIsAnsweredOnce) {
  TestServer server([](const std::string&) { return ok("{}"); });
  for (int round = 0; round < 20; ++round) {
    const auto caller = caller_of(server);
    std::atomic<int> calls = 0;
    std::atomic<int> answers = 0;
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 100 && !stop; ++n) {
          calls += 1;
          caller->call({.path = "/v1/queues"}, [&](const Result<std::string>&) { answers += 1; });
        }
      });
    }
    while (calls < 30) std::this_thread::yield();
    caller->close();
    stop = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(answers, calls);
  }
}

}  // namespace
}  // namespace bide::brokers::remote
