#include "brokers/remote/coalescer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace bide::brokers::remote {
namespace {

// Answers every request at once, on the thread that calls.
struct PromptCaller {
  std::atomic<std::size_t> calls = 0;
  void call(const ApiCall& call, const Answered& answered) {
    calls += 1;
    answered(call.body);
  }
};

using Numbers = Coalescer<std::size_t, PromptCaller>;

// One item for each request, answered with the length of the request.
Numbers one_by_one(PromptCaller& caller) {
  return Numbers(
      caller, {.path = "/v1/numbers", .list = "n", .under_way = 64, .most_under_way = 64, .items = 1},
      [](std::string_view body) { return Result<std::vector<std::size_t>>(std::vector{body.size()}); },
      [](const Error&) { return std::size_t{0}; });
}

TEST(Coalescer, ACompletionRunsOnceWhicheverThreadBringsTheLastAnswer) {
  PromptCaller caller;
  Numbers numbers = one_by_one(caller);
  constexpr int kThreads = 4;
  constexpr int kCalls = 20'000;
  std::vector<std::vector<std::atomic<int>>> runs(kThreads);
  for (auto& of_thread : runs) of_thread = std::vector<std::atomic<int>>(kCalls);
  std::atomic<int> wrong_answers = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (std::size_t call = 0; call < kCalls; ++call) {
        numbers.add({"1", "22", "333"}, {}, [&, i, call](const std::vector<std::size_t>& answers) {
          runs[static_cast<std::size_t>(i)][call] += 1;
          if (answers != std::vector<std::size_t>{9, 10, 11}) wrong_answers += 1;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(numbers.wait_until_idle(Milliseconds(0)));
  for (const auto& of_thread : runs) {
    for (const std::atomic<int>& count : of_thread) ASSERT_EQ(count, 1);
  }
  EXPECT_EQ(wrong_answers, 0);
  EXPECT_EQ(numbers.waiting_bytes(), 0u);
}

TEST(Coalescer, ACallerThatAnswersAtOnceDoesNotUseUpTheStack) {
  PromptCaller caller;
  Numbers numbers = one_by_one(caller);
  constexpr std::size_t kItems = 200'000;
  std::size_t answered = 0;
  numbers.add(std::vector<std::string>(kItems, "1"), {},
              [&](const std::vector<std::size_t>& answers) { answered = answers.size(); });
  EXPECT_EQ(answered, kItems);
  EXPECT_EQ(caller.calls, kItems);
}

TEST(Coalescer, ACallWhoseAnswersAreAllKnownSendsNothing) {
  PromptCaller caller;
  Numbers numbers = one_by_one(caller);
  std::vector<std::size_t> seen;
  numbers.add({"", ""}, {5, 6}, [&](std::vector<std::size_t> answers) { seen = std::move(answers); });
  EXPECT_EQ(seen, (std::vector<std::size_t>{5, 6}));
  EXPECT_EQ(caller.calls, 0u);
}

}  // namespace
}  // namespace bide::brokers::remote
