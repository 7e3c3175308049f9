// Retries by steps of any length: what they need in the server, and that a job takes them.

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <set>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "bide/client.h"
#include "bide/wait.h"
#include "bide/worker.h"
#include "brokers/open_broker.h"
#include "rabbitmq/rabbitmq_fixture.h"

namespace bide::rabbitmq_test {
namespace {

using namespace std::chrono_literals;

const std::vector<Milliseconds> kSteps = {10s, 100s, 1h, 2h, 10h};

class RabbitmqSteps : public RabbitmqTest<1> {
 protected:
  // The queues in which jobs wait until they are due.
  std::set<std::string> delay_queues() const {
    std::set<std::string> names;
    for (const support::RabbitmqQueue& queue : server().queues()) {
      if (queue.name.starts_with(prefix_ + ".delay.")) names.insert(queue.name.substr(prefix_.size() + 1));
    }
    return names;
  }

  // A job of that queue for each of the steps, which fails and then waits for so long.
  static void fail_once_for_each_step(Broker& broker, const std::string& queue) {
    for (const Milliseconds step : kSteps) {
      Job job;
      job.kind = "fail";
      job.queue = queue;
      const auto enqueued =
          wait<std::vector<Result<Enqueued>>>([&](auto done) { broker.enqueue({job}, std::move(done)); });
      ASSERT_TRUE(enqueued && enqueued->front());
      std::mutex mutex;
      std::vector<Lease> leases;
      auto subscription = broker.subscribe({.queues = {{queue, 1}}, .credit = 1}, [&](std::vector<Lease> arrived) {
        const std::lock_guard lock(mutex);
        for (Lease& lease : arrived) leases.push_back(std::move(lease));
      });
      ASSERT_TRUE(subscription);
      ASSERT_TRUE(eventually([&] {
        const std::lock_guard lock(mutex);
        return !leases.empty();
      }));
      subscription->reset();
      const auto settled = wait<std::vector<Status>>([&](auto done) {
        broker.settle({{.lease = {leases[0].job.id, leases[0].token}, .outcome = RetryAt{.after = step}}},
                      std::move(done));
      });
      ASSERT_TRUE(settled && settled->front());
    }
  }
};

TEST_F(RabbitmqSteps, LongStepsOfSeveralQueuesShareAHandfulOfQueues) {
  auto opened = brokers::open_broker(url());
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_NO_FATAL_FAILURE(fail_once_for_each_step(*opened->broker, "mail"));
  const std::set<std::string> one = delay_queues();
  ASSERT_NO_FATAL_FAILURE(fail_once_for_each_step(*opened->broker, "images"));
  EXPECT_EQ(delay_queues(), one) << "another queue with the same steps needs no others";
  // One for each digit that is not zero, of 8 levels with 15 digits each.
  EXPECT_LE(one.size(), 21u);
  EXPECT_GE(one.size(), 5u);
  std::printf("10 s, 100 s, 1 h, 2 h and 10 h wait in %zu queues:", one.size());
  for (const std::string& name : one) std::printf(" %s", name.c_str());
  std::printf("\n");
  const auto waiting = [&] {
    std::uint64_t count = 0;
    for (const support::RabbitmqQueue& queue : server().queues()) {
      if (queue.name.starts_with(prefix_ + ".delay.")) count += queue.messages;
    }
    return count;
  };
  EXPECT_TRUE(eventually([&] { return waiting() == 2 * kSteps.size(); })) << waiting() << " are waiting";
}

TEST_F(RabbitmqSteps, JobTakesItsFirstSteps) {
  // A hundredth of 10 s, 100 s and so on: three attempts fit into a test.
  std::vector<std::chrono::milliseconds> steps;
  for (const Milliseconds step : kSteps) steps.push_back(step / 100);
  Client client = Client::open(url()).value();
  std::mutex mutex;
  std::vector<std::chrono::steady_clock::time_point> starts;
  Worker worker(client, {.concurrency = 1});
  worker.handle("flaky", [&](Context& context) -> Outcome {
    const std::lock_guard lock(mutex);
    starts.push_back(std::chrono::steady_clock::now());
    EXPECT_EQ(context.attempt(), starts.size());
    if (starts.size() < 3) throw std::runtime_error("not yet");
    return Done{};
  });
  ASSERT_TRUE(worker.start());
  ASSERT_TRUE(client.enqueue("flaky", "", {.retry = RetryPolicy::steps(steps)}));
  ASSERT_TRUE(eventually([&] { return worker.stats().done == 1; }));
  worker.stop();
  ASSERT_EQ(starts.size(), 3u);
  EXPECT_GE(starts[1] - starts[0], steps[0]);
  EXPECT_GE(starts[2] - starts[1], steps[1]);
}

}  // namespace
}  // namespace bide::rabbitmq_test
