// Confirms that arrive when their channel is gone, from a server that sends them so: a real one cannot be told to.

#include <atomic>
#include <future>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brokers/open_broker.h"
#include "support/fake_amqp_server.h"

namespace bide::rabbitmq_test {
namespace {

using support::FakeAmqpServer;

// Closes the channel of the first publish. When that was sent again on the next channel, it confirms everything on the
// first one, and the message itself only after the client has read that.
class LateConfirms : public FakeAmqpServer::Script {
 public:
  void published(FakeAmqpServer::Client& client, const FakeAmqpServer::Published& message) override {
    if (first_.channel == 0) {
      first_ = message;
      client.close_channel(first_.channel);
    } else if (second_.channel == 0) {
      second_ = message;
      client.confirm(first_.channel, 5000, true);
      client.close_channel(kDeclaring);
    }
  }
  void channel_closed(FakeAmqpServer::Client& client, std::uint16_t channel) override {
    if (channel != kDeclaring || second_.channel == 0) return;
    was_durable_too_early = is_durable.load();
    client.confirm(second_.channel, second_.tag, false);
  }

  std::atomic<bool> is_durable{false};
  std::atomic<bool> was_durable_too_early{false};

 private:
  static constexpr std::uint16_t kDeclaring = 1;  // Of the publisher; any channel but those would do.

  FakeAmqpServer::Published first_;
  FakeAmqpServer::Published second_;
};

TEST(RabbitmqLateConfirms, OfAChannelThatWasClosedMakeNothingDurableThatWasSentOnTheNext) {
  LateConfirms script;
  FakeAmqpServer server(script);
  auto opened = brokers::open_broker("amqp://guest:guest@127.0.0.1:" + std::to_string(server.port()) + "?cancel=no");
  ASSERT_TRUE(opened) << opened.error().message;
  Job job;
  job.kind = "work";
  std::promise<Status> enqueued;
  opened->broker->enqueue({job}, [&](Result<std::vector<Result<Enqueued>>> answer) {
    script.is_durable = true;
    const bool good = answer && answer->front();
    enqueued.set_value(good ? Status() : Status(answer ? answer->front().error() : answer.error()));
  });
  const Status status = enqueued.get_future().get();
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_FALSE(script.was_durable_too_early);
}

}  // namespace
}  // namespace bide::rabbitmq_test
