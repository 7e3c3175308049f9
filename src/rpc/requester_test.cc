#include "rpc/requester.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <string>
#include <thread>

#include "bide/client.h"
#include "bide/json.h"
#include "bide/worker.h"
#include "core/request_rules.h"
#include "support/temporary_directory.h"

namespace bide {

struct Numbers {
  int a = 0;
  int b = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Numbers, a, b)

namespace {

using namespace std::chrono_literals;

class RequestsOnEngine : public ::testing::Test {
 protected:
  support::TemporaryDirectory directory_;
  Client client_ = Client::open("bide:" + directory_.path() + "/data?durability=none").value();
};

TEST_F(RequestsOnEngine, TypesGoBothWays) {
  Worker worker(client_);
  worker.reply<Numbers>("add", [](const Numbers& numbers) { return numbers.a + numbers.b; });
  ASSERT_TRUE(worker.start());
  EXPECT_EQ(client_.request<int>("add", Numbers{20, 22}).get().value(), 42);
  const auto raw = client_.request("add", Numbers{1, 2}).get().value();
  EXPECT_EQ(raw.body, "3");
  EXPECT_EQ(raw.content_type, "application/json");
}

TEST_F(RequestsOnEngine, AReplyOfAnotherTypeIsAnError) {
  Worker worker(client_);
  worker.reply("add", [] { return "not a number"; });
  ASSERT_TRUE(worker.start());
  const auto reply = client_.request<int>("add", "").get();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(RequestsOnEngine, ACompletionRunsOnce) {
  Worker worker(client_);
  worker.reply("echo", [](const std::string& body) { return body; });
  ASSERT_TRUE(worker.start());
  std::promise<std::string> reply;
  client_.request_async<std::string>("echo", "hello", {},
                                     [&](Result<std::string> result) { reply.set_value(result.value()); });
  EXPECT_EQ(reply.get_future().get(), "hello");
}

TEST_F(RequestsOnEngine, TheTimeoutAndTheJobAreChecked) {
  for (const Milliseconds timeout : {Milliseconds(0), Milliseconds(-5), Milliseconds(25h)}) {
    const auto reply = client_.request("echo", "", {.timeout = timeout}).get();
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, ErrorCode::kInvalidArgument);
  }
  const auto reply = client_.request("no kind", "").get();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(RequestsOnEngine, ClosingAnswersWhatIsUnderWay) {
  auto reply = client_.request("nobody", "", {.timeout = 1h});
  client_.close();
  EXPECT_EQ(reply.get().error().code, ErrorCode::kUnconfirmed);
  EXPECT_EQ(client_.request("nobody", "").get().error().code, ErrorCode::kInvalidArgument);
}

// It was leased in time, and its turn came too late.
TEST_F(RequestsOnEngine, ARequestThatWaitsForAThreadPastItsDeadlineIsNotRun) {
  std::latch begun(1);
  std::latch release(1);
  std::atomic<int> ran = 0;
  Worker worker(client_, {.concurrency = 1, .credit = 8});
  worker.handle("block", [&] {
    begun.count_down();
    release.wait();
  });
  worker.reply("short", [&] { ++ran; });
  worker.reply("ping", [] { return "pong"; });
  ASSERT_TRUE(worker.start());
  ASSERT_TRUE(client_.enqueue("block", ""));
  begun.wait();
  EXPECT_EQ(client_.request("short", "", {.timeout = 50ms}).get().error().code, ErrorCode::kTimedOut);
  auto ping = client_.request<std::string>("ping", "", {.timeout = 1min});
  release.count_down();
  EXPECT_EQ(ping.get().value(), "pong");
  EXPECT_EQ(ran, 0);
}

TEST_F(RequestsOnEngine, AHandlerIsToldToStopAtTheDeadline) {
  std::promise<bool> stopped;
  Worker worker(client_);
  worker.reply("long", [&](const Job&, Context& context) {
    std::promise<void> asked;
    const std::stop_callback told(context.stop_token(), [&] { asked.set_value(); });
    stopped.set_value(asked.get_future().wait_for(1min) == std::future_status::ready);
  });
  ASSERT_TRUE(worker.start());
  EXPECT_EQ(client_.request("long", "", {.timeout = 100ms}).get().error().code, ErrorCode::kTimedOut);
  EXPECT_TRUE(stopped.get_future().get());
}

TEST_F(RequestsOnEngine, ARequestSaysWhetherItIsToBeDurable) {
  EXPECT_EQ(core::header_of(make_request("a", "", {}), core::kRequestHeader), "transient");
  EXPECT_EQ(core::header_of(make_request("a", "", {.durable = true}), core::kRequestHeader), "durable");
}

}  // namespace
}  // namespace bide
