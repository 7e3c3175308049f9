#include "bide/coroutine.h"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <string>
#include <thread>

#include "bide/client.h"
#include "support/temporary_directory.h"

namespace bide {
namespace {

using namespace std::chrono_literals;

Task<int> one() { co_return 1; }
Task<int> sum(int depth) {
  if (depth == 0) co_return 0;
  co_return co_await one() + co_await sum(depth - 1);
}
Task<> fail() {
  co_await one();
  throw std::runtime_error("it fails");
}

Task<int> count_to(int end) {
  int count = 0;
  while (count < end) count += co_await one();
  co_return count;
}
Task<int> count_with_sleeps(int end) {
  int count = 0;
  while (count < end) {
    (void)co_await sleep(Milliseconds(count % 2));
    count += co_await one();
  }
  co_return count;
}

TEST(Task, ComesToWhatItReturns) {
  EXPECT_EQ(run(sum(1'000)), 1'000);
  EXPECT_EQ(run(count_with_sleeps(50)), 50);
}

TEST(Task, TakesNoStackForEachThatItAwaits) { EXPECT_EQ(run(count_to(1'000'000)), 1'000'000); }

TEST(Task, ThrowsWhereItIsAwaited) {
  const auto caught = [&]() -> Task<std::string> {
    try {
      co_await fail();
    } catch (const std::exception& error) {
      co_return error.what();
    }
    co_return "nothing";
  };
  EXPECT_EQ(run(caught()), "it fails");
  EXPECT_THROW(run(fail()), std::runtime_error);
}

TEST(Task, ThatIsNeverAwaitedDoesNotRun) {
  bool ran = false;
  const auto never = [&]() -> Task<> {
    ran = true;
    co_return;
  };
  { const Task<> task = never(); }
  EXPECT_FALSE(ran);
}

Task<std::pair<bool, bool>> same_thread_after_sleep() {
  const auto before = std::this_thread::get_id();
  const bool in_time = co_await sleep(2ms);
  co_return std::pair(in_time, before == std::this_thread::get_id());
}

TEST(Sleep, EndsInTimeAndGoesOnOnTheThreadThatRunsTheTask) {
  EXPECT_EQ(run(same_thread_after_sleep()), std::pair(true, true));
}

Task<bool> sleeps(Milliseconds time, std::stop_token stop) { co_return co_await sleep(time, stop); }

TEST(Sleep, EndsEarlyWhenItIsToldToStop) {
  std::stop_source stop;
  auto slept = std::async(std::launch::async, [&] { return run(sleeps(1h, stop.get_token())); });
  stop.request_stop();
  EXPECT_FALSE(slept.get());
  EXPECT_FALSE(run(sleeps(1h, stop.get_token())));
  EXPECT_FALSE(run(sleeps(0ms, stop.get_token())));
  EXPECT_TRUE(run(sleeps(-1ms, {})));
}

// The time and the stop at once: whichever is first, once.
TEST(Sleep, IsEndedOnce) {
  for (int i = 0; i < 500; ++i) {
    std::stop_source stop;
    std::thread stopper([&] { stop.request_stop(); });
    (void)run(sleeps(1ms, stop.get_token()));
    stopper.join();
  }
}

class CoroutinesOfAClient : public ::testing::Test {
 protected:
  support::TemporaryDirectory directory_;
  Client client_ = Client::open("bide:" + directory_.path() + "/data?durability=none").value();
};

Task<int> enqueue_many(Client client, int count) {
  int accepted = 0;
  const EnqueueOptions later{.delay = 1h};
  for (int i = 0; i < count; ++i) {
    if (const auto id = co_await client.enqueue_awaitable("work", "body", later); id) ++accepted;
  }
  co_return accepted;
}

TEST_F(CoroutinesOfAClient, AwaitWhatTheyEnqueue) {
  EXPECT_EQ(run(enqueue_many(client_, 50)), 50);
  client_.close();
  EXPECT_EQ(run(enqueue_many(client_, 1)), 0);
}

Task<Result<std::string>> ask(Client client) {
  const RequestOptions soon{.timeout = 20ms};
  co_return co_await client.request_awaitable<std::string>("nobody", std::string(), soon);
}

TEST_F(CoroutinesOfAClient, AwaitRepliesAndAreToldWhenThereIsNone) {
  const Result<std::string> reply = run(ask(client_));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kTimedOut);
}

// A coroutine of no library in particular: it begins at once, and goes on where the result comes.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};
// It goes on on a thread of the broker, so it must not be the last to have the client.
Detached enqueue_detached(Client& client, std::promise<bool>& accepted) {
  const auto id = co_await client.enqueue_awaitable("work", "");
  accepted.set_value(id.has_value());
}

TEST_F(CoroutinesOfAClient, MayBeOfAnotherLibrary) {
  std::promise<bool> accepted;
  enqueue_detached(client_, accepted);
  EXPECT_TRUE(accepted.get_future().get());
}

}  // namespace
}  // namespace bide
