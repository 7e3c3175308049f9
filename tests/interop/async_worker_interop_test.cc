// async-worker's side is played byte for byte: its queues, its messages.

#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/compat/async_worker_message.h"
#include "brokers/rabbitmq/compat/compat_test_bytes.h"
#include "brokers/rabbitmq/connection.h"
#include "interop/interop_fixture.h"
#include "platform/local_socket.h"
#include "support/seeded_random.h"
#include "support/tcp_proxy.h"

namespace bide::interop_test {
namespace {

using namespace std::chrono_literals;
using brokers::rabbitmq::AmqpMessage;
using brokers::rabbitmq::Connection;
using brokers::rabbitmq::Delivery;
using brokers::rabbitmq::Event;
using brokers::rabbitmq::GetEmpty;
using brokers::rabbitmq::compat::from_hex;
using brokers::rabbitmq::compat::to_hex;

// {:job-name :job-1 :args {:hello :world} :current-iteration ITERATION :retry-max 2 :retry-timeout-ms 100}
std::string message_at(const std::string& iteration) {
  return from_hex(
      "4e50590070056a086a6f622d6e616d656a056a6f622d316a046172677370016a0568656c6c6f6a05776f726c646a1163757272"
      "656e742d697465726174696f6e" +
      iteration + "6a0972657472792d6d617864026a1072657472792d74696d656f75742d6d736464");
}

class AsyncWorkerInterop : public InteropTest {
 protected:
  void SetUp() override {
    InteropTest::SetUp();
    if (IsSkipped()) return;
    auto settings = brokers::rabbitmq::parse_amqp_url(url().substr(5), false);
    ASSERT_TRUE(settings) << settings.error().message;
    auto opened = Connection::open(*settings, "other side");
    ASSERT_TRUE(opened) << opened.error().message;
    connection_ = std::move(*opened);
    ASSERT_TRUE(connection_->open_channel(1));
  }
  void TearDown() override {
    connection_.reset();
    if (support::RabbitmqServer::is_installed()) server().forget(space_);
    InteropTest::TearDown();
  }

  // As async-worker does when it starts, for jobs with two retries of 100 ms.
  void declare() {
    ASSERT_TRUE(connection_->declare_exchange(1, {space_ + "_exchange", "direct", {}}));
    for (const std::string name : {"_instant_queue", "_dead_letter_queue"}) declare_queue(space_ + name, {});
    for (const int ttl : {100, 200}) {
      declare_queue(space_ + "_delay_queue_" + std::to_string(ttl) + "_ms",
                    {{"x-message-ttl", ttl},
                     {"x-dead-letter-exchange", space_ + "_exchange"},
                     {"x-dead-letter-routing-key", space_ + "_instant_queue"}});
    }
  }
  void declare_queue(const std::string& name, const brokers::rabbitmq::FieldTable& arguments) {
    const auto declared = connection_->declare_queue(1, {name, arguments});
    ASSERT_TRUE(declared) << declared.error().message;
    ASSERT_TRUE(connection_->bind(1, {space_ + "_exchange", name, name, false}));
  }
  void publish(const std::string& body) {
    AmqpMessage message;
    message.content_type = "application/octet-stream";
    message.body = body;
    ASSERT_TRUE(connection_->publish(1, space_ + "_exchange", space_ + "_instant_queue", message, true));
  }
  // Takes one message out; fails the test when none comes in a minute.
  Delivery take(const std::string& queue) {
    const auto deadline = std::chrono::steady_clock::now() + 1min;
    EXPECT_TRUE(connection_->get(1, queue, true));
    while (std::chrono::steady_clock::now() < deadline) {
      auto event = connection_->next_event();
      if (!event) break;
      if (!event->has_value()) {
        std::array<platform::Readiness, 1> ready = {platform::Readiness{connection_->descriptor(), true, false}};
        platform::wait_ready(ready, 20ms);
        continue;
      }
      if (Delivery* delivery = std::get_if<Delivery>(&**event)) return std::move(*delivery);
      if (std::holds_alternative<GetEmpty>(**event)) {
        EXPECT_TRUE(connection_->get(1, queue, true));
      }
    }
    ADD_FAILURE() << "nothing came in " << queue;
    return {};
  }

  std::string async_url() const { return mode_url("compat=async-worker&namespace=" + space_); }

  const std::string space_ = "interop_space";
  std::unique_ptr<Connection> connection_;
};

TEST_F(AsyncWorkerInterop, BideWorkerRunsTheOtherSidesJobsThroughItsQueues) {
  declare();
  publish(message_at("00"));
  {
    Client client = Client::open(async_url()).value();
    Worker worker(client, {.queues = {{"default", 1}}, .concurrency = 1});
    std::mutex mutex;
    std::vector<std::chrono::steady_clock::time_point> starts;
    worker.handle("job-1", [&](Context& context) -> Outcome {
      const std::lock_guard lock(mutex);
      starts.push_back(std::chrono::steady_clock::now());
      EXPECT_EQ(context.attempt(), starts.size());
      EXPECT_EQ(context.job().body, "{:hello :world}");
      throw std::runtime_error("no");
    });
    ASSERT_TRUE(worker.start());
    ASSERT_TRUE(eventually([&] { return messages_in(space_ + "_dead_letter_queue") == 1; }));
    worker.stop();
    ASSERT_EQ(starts.size(), 3u);
    EXPECT_GE(starts[1] - starts[0], 100ms);
    EXPECT_GE(starts[2] - starts[1], 200ms);
  }
  const Delivery dead = take(space_ + "_dead_letter_queue");
  EXPECT_EQ(to_hex(dead.message.body), to_hex(message_at("6402"))) << "unchanged, at its last iteration";
  EXPECT_EQ(dead.message.content_type, "application/octet-stream");
  EXPECT_TRUE(dead.message.persistent);
}

TEST_F(AsyncWorkerInterop, RetryIsTheSameMessageWithTheNumberRaised) {
  declare();
  publish(message_at("00"));
  auto opened = brokers::open_broker(async_url());
  ASSERT_TRUE(opened) << opened.error().message;
  {
    Taker taker(*opened->broker, "default");
    const Lease lease = taker.next();
    ASSERT_EQ(lease.attempt, 1u);
    ASSERT_TRUE(settle(*opened->broker, lease, RetryAt{.error = "no"}));
  }
  const Delivery retried = take(space_ + "_instant_queue");
  EXPECT_EQ(to_hex(retried.message.body), to_hex(message_at("6401")));
}

TEST_F(AsyncWorkerInterop, OtherSideTakesWhatBideEnqueuedByteForByte) {
  auto opened = brokers::open_broker(async_url() + "&retry_max=2&retry_timeout=100");
  ASSERT_TRUE(opened) << opened.error().message;
  Job job;
  job.kind = "job-1";
  job.body = "{:hello :world}";
  const Result<Enqueued> enqueued = enqueue(*opened->broker, job);
  ASSERT_TRUE(enqueued) << enqueued.error().message;
  const Delivery taken = take(space_ + "_instant_queue");
  EXPECT_EQ(to_hex(taken.message.body), to_hex(message_at("00")));
  EXPECT_EQ(taken.exchange, space_ + "_exchange");
  EXPECT_EQ(taken.message.content_type, "application/octet-stream");
  EXPECT_TRUE(taken.message.persistent);
  declare();  // What bide has declared is what the other side would.
}

TEST_F(AsyncWorkerInterop, DeadJobsAreReplayedAsTheOriginalDoesOrAnew) {
  declare();
  auto opened = brokers::open_broker(async_url());
  ASSERT_TRUE(opened) << opened.error().message;
  const auto die = [&] {
    AmqpMessage message;
    message.content_type = "application/octet-stream";
    message.body = message_at("6402");
    ASSERT_TRUE(connection_->publish(1, space_ + "_exchange", space_ + "_dead_letter_queue", message, true));
  };
  const auto replay = [&](bool keep) {
    Result<JobPage> page = wait<JobPage>(
        [&](auto done) { opened->inspector->list({.states = {JobState::kDead}}, "", 10, std::move(done)); });
    ASSERT_TRUE(page) << page.error().message;
    ASSERT_EQ(page->jobs.size(), 1u);
    EXPECT_EQ(page->jobs[0].job.kind, "job-1");
    EXPECT_EQ(page->jobs[0].attempts, 3u);
    const auto replayed = wait<std::vector<Status>>([&](auto done) {
      opened->inspector->replay({page->jobs[0].job.id}, {.keep_attempts = keep}, std::move(done));
    });
    ASSERT_TRUE(replayed && replayed->front());
  };
  die();
  ASSERT_TRUE(eventually([&] { return messages_in(space_ + "_dead_letter_queue") == 1; }));
  replay(true);
  EXPECT_EQ(to_hex(take(space_ + "_instant_queue").message.body), to_hex(message_at("6402"))) << "as async-worker does";
  EXPECT_EQ(messages_in(space_ + "_dead_letter_queue"), 0u);
  die();
  ASSERT_TRUE(eventually([&] { return messages_in(space_ + "_dead_letter_queue") == 1; }));
  replay(false);
  EXPECT_EQ(to_hex(take(space_ + "_instant_queue").message.body), to_hex(message_at("00"))) << "with fresh retries";
}

TEST_F(AsyncWorkerInterop, UnreadableMessageGoesToTheDeadAndBlocksNobody) {
  declare();
  publish("not Nippy at all");
  publish(message_at("00"));
  auto opened = brokers::open_broker(async_url());
  ASSERT_TRUE(opened) << opened.error().message;
  Taker taker(*opened->broker, space_);
  const Lease lease = taker.next();
  EXPECT_EQ(lease.job.kind, "job-1");
  ASSERT_TRUE(settle(*opened->broker, lease, Done{}));
  EXPECT_EQ(take(space_ + "_dead_letter_queue").message.body, "not Nippy at all");
  EXPECT_TRUE(eventually([&] { return messages_in(space_ + "_instant_queue") == 0; }));
}

// A retry is a copy and an acknowledgement. Wherever the connection ends between them, the job is there at least once.
TEST_F(AsyncWorkerInterop, ConnectionsCutDuringRetriesLoseNothing) {
  constexpr std::size_t kCuts = 12, kJobs = 10;
  declare();
  support::TcpProxy proxy(server().port());
  std::mutex mutex;
  std::set<std::string> done;
  auto opened = brokers::open_broker(url(proxy.port()) + "&heartbeat=5s&compat=async-worker&namespace=" + space_);
  ASSERT_TRUE(opened) << opened.error().message;
  auto subscription = opened->broker->subscribe({.credit = 5}, [&](std::vector<Lease> leases) {
    for (const Lease& lease : leases) {
      const bool first = lease.attempt == 1;
      if (!first) {
        const std::lock_guard lock(mutex);
        done.insert(lease.job.body);
      }
      opened->broker->settle({{.lease = {lease.job.id, lease.token},
                               .outcome = first ? Outcome(RetryAt{.error = "once more"}) : Outcome(Done{})}},
                             [](const auto&) {});
    }
  });
  ASSERT_TRUE(subscription) << subscription.error().message;
  support::SeededRandom random(11);
  for (std::size_t cut = 0; cut < kCuts; ++cut) {
    const std::uint64_t before = proxy.cuts();
    proxy.cut_after(cut % 2 == 0 ? support::TcpProxy::Direction::kToServer : support::TcpProxy::Direction::kToClient,
                    random.next_below(3000));
    for (std::size_t i = 0; i < kJobs; ++i) {
      std::array<char, 8> word{};
      std::snprintf(word.data(), word.size(), "w%04zu", cut * kJobs + i);
      std::string body = message_at("00");
      body.replace(body.find("world"), 5, word.data());
      ASSERT_NO_FATAL_FAILURE(publish(body));
    }
    ASSERT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex);
      return proxy.cuts() > before || done.size() == (cut + 1) * kJobs;
    })) << done.size();
    // They needed fewer bytes than that.
    if (proxy.cuts() == before) proxy.cut();
  }
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return done.size() == kCuts * kJobs;
  })) << done.size()
      << " of " << kCuts * kJobs;
  EXPECT_EQ(messages_in(space_ + "_dead_letter_queue"), 0u);
  subscription->reset();
}

// Quorum queues count deliveries; where the other system uses them, a job that kills its workers has an end.
TEST_F(AsyncWorkerInterop, JobThatIsDeliveredAgainAndAgainEndsDead) {
  ASSERT_TRUE(connection_->declare_exchange(1, {space_ + "_exchange", "direct", {}}));
  declare_queue(space_ + "_instant_queue", {{"x-queue-type", "quorum"}});
  declare_queue(space_ + "_dead_letter_queue", {});
  publish(message_at("00"));
  auto opened = brokers::open_broker(async_url());
  ASSERT_TRUE(opened) << opened.error().message;
  std::atomic<int> runs = 0;
  auto subscription = opened->broker->subscribe({.credit = 1}, [&](std::vector<Lease> leases) {
    runs += 1;
    opened->broker->settle({{.lease = {leases[0].job.id, leases[0].token}, .outcome = Returned{}}}, [](const auto&) {});
  });
  ASSERT_TRUE(subscription) << subscription.error().message;
  const Delivery dead = take(space_ + "_dead_letter_queue");
  EXPECT_EQ(to_hex(dead.message.body), to_hex(message_at("00")));
  EXPECT_EQ(runs, 20);
  subscription->reset();
}

}  // namespace
}  // namespace bide::interop_test
