// What is published, and what the server is told or not told meanwhile.

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bide/wait.h"
#include "brokers/open_broker.h"
#include "brokers/rabbitmq/connection.h"
#include "rabbitmq/rabbitmq_fixture.h"
#include "support/tcp_proxy.h"

namespace bide::rabbitmq_test {
namespace {

using brokers::rabbitmq::Confirm;
using brokers::rabbitmq::Connection;
using brokers::rabbitmq::ConsumerCancelled;
using brokers::rabbitmq::Event;
using support::TcpProxy;

class RabbitmqPublishing : public RabbitmqTest<1> {
 protected:
  static brokers::OpenedBroker open(const std::string& url) {
    auto opened = brokers::open_broker(url);
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  static Status enqueue(const brokers::OpenedBroker& opened, Job job) {
    auto results = wait<std::vector<Result<Enqueued>>>([&](auto done) { opened.broker->enqueue({job}, std::move(done)); });
    if (!results) return results.error();
    if (!results->front()) return results->front().error();
    return {};
  }
  static Job job(std::string queue = "default", std::string body = "") {
    Job made;
    made.kind = "work";
    made.queue = std::move(queue);
    made.body = std::move(body);
    return made;
  }
  std::uint64_t messages_in(const std::string& name) {
    for (const support::RabbitmqQueue& queue : server().queues()) {
      if (queue.name == name) return queue.messages;
    }
    return 0;
  }
};

TEST_F(RabbitmqPublishing, AConsumerThatTheServerCancelsIsAnsweredAndItsChannelGoesOn) {
  TcpProxy proxy(server().port());
  auto settings = brokers::rabbitmq::parse_amqp_url(url(proxy.port()).substr(5) + "&heartbeat=10m", false);
  ASSERT_TRUE(settings);
  auto connection = Connection::open(*settings, "test");
  ASSERT_TRUE(connection) << connection.error().message;
  ASSERT_TRUE((*connection)->open_channel(1));
  const std::string name = prefix_ + ".gone";
  const std::string tag = "tag";
  ASSERT_TRUE((*connection)->declare_queue(1, {name, {{"x-queue-type", "quorum"}}}));
  ASSERT_TRUE((*connection)->consume(1, {.queue = name, .tag = tag}));
  const std::uint64_t before = proxy.bytes(TcpProxy::Direction::kToServer);

  server().delete_queue(name);
  std::string cancelled;
  ASSERT_TRUE(eventually([&] {
    const Result<std::optional<Event>> event = (*connection)->next_event();
    if (event && event->has_value()) {
      if (const auto* told = std::get_if<ConsumerCancelled>(&**event)) cancelled = told->consumer;
    }
    return !cancelled.empty();
  }));
  EXPECT_EQ(cancelled, tag);
  // A frame (8 bytes) with basic.cancel: class and method, the tag, one byte of flags.
  const std::uint64_t answer = 8 + 4 + 1 + tag.size() + 1;
  EXPECT_TRUE(eventually([&] { return proxy.bytes(TcpProxy::Direction::kToServer) == before + answer; }))
      << proxy.bytes(TcpProxy::Direction::kToServer) - before;
  EXPECT_TRUE((*connection)->declare_private_queue(1)) << "the channel goes on";
}

TEST_F(RabbitmqPublishing, AMessageThatIsTooLongForTheServerIsRefusedBeforeItIsSent) {
  const brokers::OpenedBroker opened = open(url() + "&max_message_size=1000");
  const Status refused = enqueue(opened, job("default", std::string(1001, 'x')));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("1001 bytes is too long"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(enqueue(opened, job("default", std::string(1000, 'x'))));
  EXPECT_TRUE(eventually([&] { return messages_in(queue_name()) == 1; }));
}

// They share the delay queue, which used to pass on nothing more behind 32 messages that were refused.
TEST_F(RabbitmqPublishing, AFullQueueDoesNotHoldUpTheDelayedJobsOfOthers) {
  constexpr int kDelayed = 40;
  const brokers::OpenedBroker opened = open(url() + "&max_length=5");
  const auto delayed = [](const std::string& queue) {
    Job made = job(queue);
    made.delay = Milliseconds(0x2000);
    return made;
  };
  for (int i = 0; i < kDelayed; ++i) ASSERT_TRUE(enqueue(opened, delayed("full")));
  ASSERT_TRUE(enqueue(opened, delayed("other")));
  Status refused;
  ASSERT_TRUE(eventually([&] { return !(refused = enqueue(opened, job("full"))); })) << "it does not get full";
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
  EXPECT_NE(refused.error().message.find("max_length"), std::string::npos) << refused.error().message;
  EXPECT_FALSE(enqueue(opened, delayed("full"))) << "bounded before it enters a delay path";

  EXPECT_TRUE(eventually([&] { return messages_in(queue_name("other")) == 1; }));
  EXPECT_TRUE(eventually([&] { return messages_in(queue_name("full")) >= 5 + kDelayed; })) << "nothing is dropped";
}

TEST_F(RabbitmqPublishing, AQueueThatIsThereWithAnotherLimitIsUsedAsItIs) {
  const auto settings = brokers::rabbitmq::parse_amqp_url(url().substr(5), false);
  ASSERT_TRUE(settings);
  auto connection = Connection::open(*settings, "test");
  ASSERT_TRUE(connection && (*connection)->open_channel(1));
  ASSERT_TRUE((*connection)->declare_queue(1, {queue_name(),
                                               {{"x-queue-type", "quorum"},
                                                {"x-max-length", 100},
                                                {"x-overflow", "reject-publish"},
                                                {"x-dead-letter-exchange", prefix_ + ".lost"},
                                                {"x-delivery-limit", 100},
                                                {"x-dead-letter-strategy", "at-least-once"}}}));
  ASSERT_TRUE((*connection)->declare_queue(1, {prefix_ + ".lost",
                                               {{"x-queue-type", "quorum"}, {"x-delivery-limit", 1'000'000'000}}}));
  ASSERT_TRUE((*connection)->declare_queue(1, {queue_name("drops"), {{"x-queue-type", "quorum"}}}));

  const brokers::OpenedBroker opened = open(url());
  const Status taken = enqueue(opened, job());
  EXPECT_TRUE(taken) << taken.error().message;
  const Status refused = enqueue(opened, job("drops"));
  ASSERT_FALSE(refused) << "it would drop its oldest jobs when it gets full";
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(RabbitmqPublishing, OfTwoJobsWithOneIdTheOneThatIsReturnedFails) {
  const brokers::OpenedBroker first = open(url());
  ASSERT_TRUE(enqueue(first, job("there")));
  const brokers::OpenedBroker opened = open(url() + "&declare=no");
  Job good = job("there");
  good.id = *JobId::parse("01890a5d-ac96-774b-bcce-b302099a8057");
  Job lost = job("missing");
  lost.id = good.id;
  const auto results =
      wait<std::vector<Result<Enqueued>>>([&](auto done) { opened.broker->enqueue({good, lost}, std::move(done)); });
  ASSERT_TRUE(results);
  EXPECT_TRUE(results->at(0)) << results->at(0).error().message;
  EXPECT_FALSE(results->at(1)) << "no queue has it";
  EXPECT_EQ(messages_in(queue_name("there")), 2u) << "and it was not sent twice";
}

TEST_F(RabbitmqPublishing, ARefusalAndSlowConfirmsMakeNoDuplicates) {
  const auto settings = brokers::rabbitmq::parse_amqp_url(url().substr(5), false);
  auto connection = Connection::open(*settings, "test");
  ASSERT_TRUE(connection && (*connection)->open_channel(1));
  // A limit of its own: the server refuses.
  ASSERT_TRUE((*connection)->declare_queue(1, {queue_name("refuses"),
                                               {{"x-queue-type", "quorum"},
                                                {"x-max-length", 1},
                                                {"x-overflow", "reject-publish"},
                                                {"x-dead-letter-exchange", prefix_ + ".lost"},
                                                {"x-delivery-limit", 100},
                                                {"x-dead-letter-strategy", "at-least-once"}}}));
  TcpProxy proxy(server().port());
  const brokers::OpenedBroker opened = open(url(proxy.port()) + "&max_length=0&patience=1m&heartbeat=1m");
  // So that nothing has to be declared later.
  for (const char* queue : {"other", "refuses"}) ASSERT_TRUE(enqueue(opened, job(queue)));
  // It counts with a lag.
  ASSERT_TRUE((*connection)->confirm_select(1));
  ASSERT_TRUE(eventually([&] {
    if (!(*connection)->publish(1, "", queue_name("refuses"), {}, false)) return false;
    const Result<std::optional<Event>> event = (*connection)->next_event();
    const auto* confirm = event && event->has_value() ? std::get_if<Confirm>(&**event) : nullptr;
    return confirm != nullptr && !confirm->accepted;
  })) << "it does not get full";
  proxy.delay(std::chrono::milliseconds(1500));
  std::atomic<int> answered = 0;
  std::atomic<int> refused = 0;
  const auto send = [&](const std::string& queue) {
    opened.broker->enqueue({job(queue)}, [&](const Result<std::vector<Result<Enqueued>>>& results) {
      if (!results || !results->front()) ++refused;
      ++answered;
    });
  };
  send("refuses");
  constexpr int kJobs = 40;
  // Their confirms are on their way when the refusal comes.
  for (int i = 0; i < kJobs; ++i) {
    send("other");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  proxy.delay(std::chrono::milliseconds(0));
  ASSERT_TRUE(eventually([&] { return answered == kJobs + 1; }));
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(messages_in(queue_name("other")), kJobs + 1u);
}

}  // namespace
}  // namespace bide::rabbitmq_test
