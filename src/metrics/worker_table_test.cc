#include "metrics/worker_table.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace bide::metrics {
namespace {

using namespace std::chrono_literals;

constexpr Time kStart{1'800'000'000'000ms};

SubscribeOptions as(std::string name) { return {.queues = {{"mail", 1}, {"orders", 2}}, .worker = std::move(name)}; }

TEST(WorkerTable, CountsWhatAWorkerDoes) {
  WorkerTable table;
  const auto worker = table.subscribed(as("till"), kStart);
  worker->started(kStart + 1s);
  worker->started(kStart + 2s);
  worker->ended();
  worker->finished(false);
  const auto list = table.list();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].name, "till");
  EXPECT_EQ(list[0].queues, (std::vector<std::string>{"mail", "orders"}));
  EXPECT_EQ(list[0].subscriptions, 1);
  EXPECT_EQ(list[0].running, 1);
  EXPECT_EQ(list[0].started, 2u);
  EXPECT_EQ(list[0].failed, 1u);
  EXPECT_EQ(list[0].since, kStart);
  EXPECT_EQ(list[0].last_start, kStart + 2s);
  worker->unsubscribed();
  EXPECT_EQ(table.list()[0].subscriptions, 0);
}

TEST(WorkerTable, ForgetsThoseThatHaveGoneWhenItIsFull) {
  WorkerTable table;
  const auto here = table.subscribed(as("here"), kStart);
  for (std::size_t i = 0; i < 2 * WorkerTable::kMost; ++i) {
    table.subscribed(as("gone-" + std::to_string(i)), kStart + 1s * static_cast<int>(i))->unsubscribed();
  }
  const auto list = table.list();
  EXPECT_EQ(list.size(), WorkerTable::kMost);
  EXPECT_EQ(list.back().name, "here");
}

TEST(WorkerTable, ThoseThatDoNotFitShareARow) {
  WorkerTable table;
  for (std::size_t i = 0; i < WorkerTable::kMost + 5; ++i) table.subscribed(as("worker-" + std::to_string(i)), kStart);
  const auto list = table.list();
  EXPECT_EQ(list.size(), WorkerTable::kMost + 1);
  EXPECT_EQ(list.front().name, "(other)");
  EXPECT_EQ(list.front().subscriptions, 5);
}

}  // namespace
}  // namespace bide::metrics
