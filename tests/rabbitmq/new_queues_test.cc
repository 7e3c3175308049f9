// RabbitMQ 3.10 can lose what is in a queue that it has just declared, when it is killed within a second. bide guards
// against that, so what was confirmed is there whenever the kill comes.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bide/wait.h"
#include "brokers/open_broker.h"
#include "rabbitmq/rabbitmq_fixture.h"

namespace bide::rabbitmq_test {
namespace {

class RabbitmqNewQueues : public RabbitmqTest<1> {
 protected:
  static void enqueue(Broker& broker, const std::string& queue, Milliseconds delay) {
    Job job;
    job.kind = "work";
    job.queue = queue;
    job.delay = delay;
    const auto enqueued =
        wait<std::vector<Result<Enqueued>>>([&](auto done) { broker.enqueue({job}, std::move(done)); });
    ASSERT_TRUE(enqueued && enqueued->front());
  }

  std::uint64_t messages_in(const std::string& name) {
    for (const support::RabbitmqQueue& queue : server().queues()) {
      if (queue.name == name) return queue.messages;
    }
    return 0;
  }
};

TEST_F(RabbitmqNewQueues, KeepWhatWasConfirmedWhenTheNodeIsKilledAtOnce) {
  {
    auto opened = brokers::open_broker(url());
    ASSERT_TRUE(opened) << opened.error().message;
    ASSERT_NO_FATAL_FAILURE(enqueue(*opened->broker, "new", Milliseconds(0)));
    server().kill();
  }
  server().start();
  EXPECT_TRUE(eventually([&] { return messages_in(queue_name("new")) == 1; }));
}

TEST_F(RabbitmqNewQueues, OfADelayKeepWhatWasConfirmedWhenTheNodeIsKilledAtOnce) {
  constexpr Milliseconds kDelay{5 * 4096 + 3 * 256 + 7};
  {
    auto opened = brokers::open_broker(url());
    ASSERT_TRUE(opened) << opened.error().message;
    ASSERT_NO_FATAL_FAILURE(enqueue(*opened->broker, "later", kDelay));
    server().kill();
  }
  server().start();
  EXPECT_TRUE(eventually([&] { return messages_in(queue_name("later")) == 1; }));
}

}  // namespace
}  // namespace bide::rabbitmq_test
