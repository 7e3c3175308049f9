// In compat modes a job that waits in bide's delay queues must not get lost when its queue is not there at the end.

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "interop/interop_fixture.h"

namespace bide::interop_test {
namespace {

using namespace std::chrono_literals;

class LostInterop : public InteropTest {};

TEST_F(LostInterop, AJobThatBecameDueWithoutItsQueueComesWhenTheQueueIsThereAgain) {
  auto opened = brokers::open_broker(mode_url("compat=sneakers&steps=1s"));
  ASSERT_TRUE(opened) << opened.error().message;
  {
    Taker worker(*opened->broker, prefix_, 1);
    Job job;
    job.kind = "work";
    job.queue = prefix_;
    job.body = "bytes";
    ASSERT_TRUE(enqueue(*opened->broker, job));
    ASSERT_TRUE(settle(*opened->broker, worker.next(), RetryAt{.after = 1s, .error = "again"}));
  }
  server().delete_queue(prefix_);
  ASSERT_TRUE(eventually([&] { return messages_in(prefix_ + ".lost") == 1; }));

  Taker worker(*opened->broker, prefix_, 1);
  const Lease lease = worker.next();
  EXPECT_EQ(lease.job.body, "bytes");
  EXPECT_EQ(lease.attempt, 2u);
  EXPECT_TRUE(settle(*opened->broker, lease, Done{}));
  EXPECT_TRUE(eventually([&] { return messages_in(prefix_ + ".lost") == 0 && messages_in(prefix_) == 0; }));
}

}  // namespace
}  // namespace bide::interop_test
