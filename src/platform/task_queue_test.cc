#include "platform/task_queue.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

namespace bide::platform {
namespace {

using namespace std::chrono_literals;

bool is_readable(const PollableTaskQueue& queue) {
  Readiness ready{queue.descriptor(), true, false};
  wait_ready({&ready, 1}, 0ms);
  return ready.read;
}

TEST(TaskQueue, GivesTasksInOrderAndWaitsForTheFirst) {
  TaskQueue queue;
  int last = 0;
  std::thread poster([&] {
    for (int i = 1; i <= 100; ++i) EXPECT_TRUE(queue.post([&last, i] { EXPECT_EQ(std::exchange(last, i), i - 1); }));
  });
  while (last < 100) {
    for (const Task& task : queue.take_until(TaskQueue::Deadline::max())) task();
  }
  poster.join();
}

TEST(TaskQueue, DoesNotWaitBeyondTheDeadline) {
  TaskQueue queue;
  EXPECT_TRUE(queue.take_until(std::chrono::steady_clock::now() + 1ms).empty());
}

TEST(TaskQueue, AcceptsNothingOnceClosedAndHandsBackTheRest) {
  TaskQueue queue;
  EXPECT_TRUE(queue.post([] {}));
  EXPECT_EQ(queue.close().size(), 1u);
  EXPECT_FALSE(queue.post([] {}));
  EXPECT_TRUE(queue.take().empty());
}

TEST(PollableTaskQueue, IsReadableUntilTheWakeupIsCleared) {
  PollableTaskQueue queue;
  EXPECT_FALSE(is_readable(queue));
  EXPECT_TRUE(queue.post([] {}));
  EXPECT_TRUE(queue.post([] {}));
  EXPECT_TRUE(is_readable(queue));
  queue.clear_wakeup();
  EXPECT_EQ(queue.take().size(), 2u);
  EXPECT_FALSE(is_readable(queue));
  EXPECT_TRUE(queue.post([] {}));
  EXPECT_TRUE(is_readable(queue));
  EXPECT_EQ(queue.close().size(), 1u);
  EXPECT_FALSE(queue.post([] {}));
}

}  // namespace
}  // namespace bide::platform
