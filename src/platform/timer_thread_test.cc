#include "platform/timer_thread.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

namespace bide::platform {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(DelayedTasks, RunInTheOrderInWhichTheyAreDue) {
  std::string order;
  std::promise<void> last;
  DelayedTasks tasks;
  tasks.after(milliseconds(20), [&] {
    order += "b";
    last.set_value();
  });
  tasks.after(milliseconds(1), [&] { order += "a"; });
  last.get_future().wait();
  EXPECT_EQ(order, "ab");
}

TEST(DelayedTasks, ATaskMayAddAnother) {
  std::promise<void> second;
  DelayedTasks tasks;
  tasks.after(milliseconds(0), [&] { tasks.after(milliseconds(0), [&] { second.set_value(); }); });
  second.get_future().wait();
}

TEST(DelayedTasks, StoppingRunsWhatIsStillWaitingAndWhatComesAfterwards) {
  int ran = 0;
  DelayedTasks tasks;
  tasks.after(hours(1), [&] { tasks.after(hours(1), [&] { ++ran; }); });
  tasks.stop();
  EXPECT_EQ(ran, 1);
  tasks.after(hours(1), [&] { ++ran; });
  EXPECT_EQ(ran, 2);
}

}  // namespace
}  // namespace bide::platform
