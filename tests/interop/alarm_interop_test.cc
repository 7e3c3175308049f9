// A server that takes no messages, and a worker in a compat mode: what publishes nothing goes on, what publishes waits.

#include <map>
#include <mutex>
#include <string>

#include <gtest/gtest.h>

#include "interop/interop_fixture.h"

namespace bide::interop_test {
namespace {

class AlarmInterop : public InteropTest {
 protected:
  void TearDown() override {
    if (support::RabbitmqServer::is_installed()) server().set_memory_alarm(false);
    InteropTest::TearDown();
  }
};

TEST_F(AlarmInterop, JobsThatPublishNothingAreSettledWhileTheServerTakesNoMessages) {
  constexpr int kJobs = 200, kEvery = 10;
  const std::string url = mode_url("compat=sneakers&kind=work&patience=1s");
  auto opened = brokers::open_broker(url);
  ASSERT_TRUE(opened) << opened.error().message;
  { Taker declares(*opened->broker, prefix_); }
  for (int i = 0; i < kJobs; ++i) {
    Job job;
    job.kind = "work";
    job.queue = prefix_;
    job.body = std::to_string(i);
    const Result<Enqueued> enqueued = enqueue(*opened->broker, job);
    ASSERT_TRUE(enqueued) << enqueued.error().message;
  }
  server().set_memory_alarm(true);
  // Fewer than there are jobs that die.
  Worker worker(Client(opened->broker), {.queues = {prefix_}, .concurrency = 2, .credit = 4});
  std::mutex mutex;
  std::map<std::string, int> runs;
  worker.handle("work", [&](const Job& job) -> Outcome {
    const std::lock_guard lock(mutex);
    runs[job.body] += 1;
    if (std::stoi(job.body) % kEvery == 0) return Dead{.error = "never"};
    return Done{};
  });
  ASSERT_TRUE(worker.start());
  EXPECT_TRUE(eventually([&] { return worker.stats().done == kJobs - kJobs / kEvery; }))
      << "only " << worker.stats().done << " were settled while the server takes no messages";
  server().set_memory_alarm(false);
  EXPECT_TRUE(eventually([&] { return messages_in(prefix_ + "-error") == kJobs / kEvery; }))
      << messages_in(prefix_ + "-error") << " are dead";
  EXPECT_TRUE(eventually([&] { return messages_in(prefix_) == 0; }));
  worker.stop();
  for (int i = 0; i < kJobs; ++i) EXPECT_EQ(runs[std::to_string(i)], 1) << "job " << i;
}

}  // namespace
}  // namespace bide::interop_test
