#include "platform/task_thread.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace bide::platform {
namespace {

TEST(TaskThread, RunsTasksInOrderOnAThreadOfItsOwn) {
  TaskThread tasks;
  std::vector<int> order;
  std::thread::id thread;
  tasks.run([&thread] { thread = std::this_thread::get_id(); });
  for (int i = 0; i < 10; ++i) tasks.run([&order, i] { order.push_back(i); });
  tasks.wait_until_idle();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(TaskThread, DoesWhatItWasGivenBeforeItStopsAndTheRestOnTheCallersThread) {
  TaskThread tasks;
  int done = 0;
  for (int i = 0; i < 10; ++i) tasks.run([&done] { ++done; });
  tasks.stop();
  EXPECT_EQ(done, 10);
  std::thread::id thread;
  tasks.run([&thread] { thread = std::this_thread::get_id(); });
  EXPECT_EQ(thread, std::this_thread::get_id());
}

}  // namespace
}  // namespace bide::platform
