// A queue of Sneakers, served by bide and by Sneakers' own client library.

#include <chrono>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/connection.h"
#include "interop/interop_fixture.h"
#include "support/seeded_random.h"
#include "support/tcp_proxy.h"

namespace bide::interop_test {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

class SneakersInterop : public InteropTest {
 protected:
  void SetUp() override {
    if (std::system("ruby -e 'require \"bunny\"' 2>/dev/null") != 0) GTEST_SKIP() << "ruby-bunny is not installed";
    InteropTest::SetUp();
  }

  // What the other side prints, an object for each line.
  std::vector<Json> ruby(const std::string& arguments) const {
    const std::string command =
        "ruby " BIDE_SNEAKERS_SIDE " " + std::to_string(server().port()) + " " + arguments + " 2>&1";
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    EXPECT_NE(pipe, nullptr);
    std::string text;
    char buffer[4096];
    while (const std::size_t size = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, size);
    EXPECT_EQ(::pclose(pipe), 0) << command << "\n" << text;
    std::vector<Json> lines;
    for (std::size_t start = 0; start < text.size();) {
      const std::size_t end = text.find('\n', start);
      const Json line = Json::parse(text.substr(start, end - start), nullptr, false);
      EXPECT_FALSE(line.is_discarded()) << text;
      lines.push_back(line);
      start = end == std::string::npos ? text.size() : end + 1;
    }
    return lines;
  }

  std::string sneakers_url(const std::string& options = "") const { return mode_url("compat=sneakers" + options); }

  const std::string queue_ = prefix_;
};

TEST_F(SneakersInterop, BideWorkerTakesWhatSneakersPublished) {
  ruby("declare " + queue_ + " 60000");
  ruby("publish " + queue_ + " '{\"to\":\"ann\"}' trace t1");
  auto opened = brokers::open_broker(sneakers_url());
  ASSERT_TRUE(opened) << opened.error().message;
  Taker taker(*opened->broker, queue_);
  const Lease lease = taker.next();
  EXPECT_EQ(lease.job.kind, queue_);
  EXPECT_EQ(lease.job.body, "{\"to\":\"ann\"}");
  EXPECT_EQ(lease.job.content_type, "application/json");
  EXPECT_EQ(lease.job.headers, (Headers{{"trace", "t1"}}));
  EXPECT_EQ(lease.attempt, 1u);
  EXPECT_TRUE(settle(*opened->broker, lease, Done{}));
  EXPECT_TRUE(settle(*opened->broker, lease, Done{})) << "once more with the same token";
  EXPECT_TRUE(eventually([&] { return messages_in(queue_) == 0; }));
}

TEST_F(SneakersInterop, AttemptsAreCountedThroughTtlRoundsAndEndInTheErrorQueue) {
  ruby("declare " + queue_ + " 200");
  ruby("publish " + queue_ + " 'bytes' trace t1");
  {
    Client client = Client::open(sneakers_url("&retry_max_times=2&retry_timeout=200")).value();
    Worker worker(client, {.queues = {{queue_, 1}}, .concurrency = 1});
    std::mutex mutex;
    std::vector<std::uint32_t> attempts;
    worker.handle(queue_, [&](Context& context) -> Outcome {
      const std::lock_guard lock(mutex);
      attempts.push_back(context.attempt());
      throw std::runtime_error("no luck with \"it\"");
    });
    ASSERT_TRUE(worker.start());
    ASSERT_TRUE(eventually([&] { return messages_in(queue_ + "-error") == 1; }));
    worker.stop();
    EXPECT_EQ(attempts, (std::vector<std::uint32_t>{1, 2, 3})) << "as in Sneakers: one more than retry_max_times";
  }
  const std::vector<Json> errors = ruby("errors " + queue_);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0]["body"], "bytes");
  EXPECT_EQ(errors[0]["key"], queue_) << "the original routing key";
  EXPECT_EQ(errors[0]["delivery_mode"], 2);
  const Json info = Json::parse(errors[0]["headers"]["retry_info"].get<std::string>());
  ASSERT_TRUE(info.is_object()) << info;
  EXPECT_EQ(info["num_attempts"], 3);
  EXPECT_EQ(info["error"], "no luck with \"it\"");
  EXPECT_EQ(info["error_message"], "no luck with \"it\"");
  EXPECT_TRUE(info.contains("failed_at") && info.contains("error_class") && info["backtrace"].is_array());
  EXPECT_EQ(info["properties"]["content_type"], "application/json");
  EXPECT_EQ(info["properties"]["headers"]["trace"], "t1");
  EXPECT_EQ(info["properties"]["headers"]["x-death"].size(), 2u);
  EXPECT_EQ(messages_in(queue_), 0u);
}

TEST_F(SneakersInterop, WorkersOfBothKindsCountTogether) {
  ruby("declare " + queue_ + " 200");
  ruby("publish " + queue_ + " fail");
  {
    auto opened = brokers::open_broker(sneakers_url());
    ASSERT_TRUE(opened);
    Taker taker(*opened->broker, queue_);
    ASSERT_TRUE(settle(*opened->broker, taker.next(), RetryAt{.error = "one"}));
    const Lease second = taker.next();
    EXPECT_EQ(second.attempt, 2u);
    ASSERT_TRUE(settle(*opened->broker, second, RetryAt{.error = "two"}));
  }
  const std::vector<Json> seen = ruby("work " + queue_ + " 3 2");
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0]["attempt"], 3);
  EXPECT_EQ(seen[1]["attempt"], 4) << "and Sneakers gives up";
  EXPECT_TRUE(eventually([&] { return messages_in(queue_ + "-error") == 1; }));
}

TEST_F(SneakersInterop, SneakersWorkerTakesWhatBideEnqueued) {
  ruby("declare " + queue_ + " 60000");
  auto opened = brokers::open_broker(sneakers_url());
  ASSERT_TRUE(opened);
  Job job;
  job.kind = queue_;
  job.queue = queue_;
  job.body = "{\"from\":\"bide\"}";
  job.content_type = "application/json";
  job.headers = {{"trace", "t2"}};
  ASSERT_TRUE(enqueue(*opened->broker, job));
  const std::vector<Json> seen = ruby("work " + queue_ + " 5 1");
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0]["body"], "{\"from\":\"bide\"}");
  EXPECT_EQ(seen[0]["key"], queue_);
  EXPECT_EQ(seen[0]["exchange"], "sneakers");
  EXPECT_EQ(seen[0]["content_type"], "application/json");
  EXPECT_EQ(seen[0]["delivery_mode"], 2);
  EXPECT_EQ(seen[0]["headers"]["trace"], "t2");
  EXPECT_EQ(seen[0]["attempt"], 1);
}

TEST_F(SneakersInterop, DelayedJobReachesASneakersWorkerWhenItIsDue) {
  ruby("declare " + queue_ + " 60000");
  auto opened = brokers::open_broker(sneakers_url());
  ASSERT_TRUE(opened);
  Job job;
  job.kind = queue_;
  job.queue = queue_;
  job.body = "later";
  job.delay = 300ms;
  const auto start = std::chrono::steady_clock::now();
  const Result<Enqueued> enqueued = enqueue(*opened->broker, job);
  ASSERT_TRUE(enqueued) << enqueued.error().message;
  const std::vector<Json> seen = ruby("work " + queue_ + " 5 1");
  EXPECT_GE(std::chrono::steady_clock::now() - start, 300ms);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0]["body"], "later");
  EXPECT_EQ(seen[0]["attempt"], 1);
}

TEST_F(SneakersInterop, JobForAQueueThatIsNotThereIsRefused) {
  ruby("declare " + queue_ + " 60000");
  auto opened = brokers::open_broker(sneakers_url());
  ASSERT_TRUE(opened);
  Job job;
  job.kind = "k";
  job.queue = queue_ + "-missing";
  const Result<Enqueued> enqueued = enqueue(*opened->broker, job);
  ASSERT_FALSE(enqueued);
  EXPECT_EQ(enqueued.error().code, ErrorCode::kNotFound);
  EXPECT_NE(enqueued.error().message.find("no queue took"), std::string::npos) << enqueued.error().message;
}

TEST_F(SneakersInterop, JobIsAcknowledgedOnlyAfterTheErrorQueueHasConfirmedIt) {
  ruby("declare " + queue_ + " 60000");
  ruby("publish " + queue_ + " precious");
  auto opened = brokers::open_broker(sneakers_url());
  ASSERT_TRUE(opened);
  {
    Taker taker(*opened->broker, queue_);
    const Lease lease = taker.next();
    server().delete_queue(queue_ + "-error");
    const Status refused = settle(*opened->broker, lease, Dead{.reason = DeadReason::kExhausted, .error = "e"});
    ASSERT_FALSE(refused) << "nobody has taken the error";
    EXPECT_EQ(messages_in(queue_), 1u) << "still there, not acknowledged";
    // Made again by whoever serves the queue; then the same lease can be settled.
    ruby("declare " + queue_ + " 60000");
    const Status settled = settle(*opened->broker, lease, Dead{.reason = DeadReason::kExhausted, .error = "e"});
    EXPECT_TRUE(settled) << settled.error().message;
  }
  EXPECT_TRUE(eventually([&] { return messages_in(queue_) == 0 && messages_in(queue_ + "-error") == 1; }));
}

TEST_F(SneakersInterop, StepsReplaceTheFixedWait) {
  ruby("declare " + queue_ + " 60000");
  ruby("publish " + queue_ + " bytes trace t1");
  std::vector<std::chrono::steady_clock::time_point> starts;
  {
    Client client = Client::open(sneakers_url("&steps=100ms,250ms,100ms")).value();
    Worker worker(client, {.queues = {{queue_, 1}}, .concurrency = 1});
    std::mutex mutex;
    worker.handle(queue_, [&](Context& context) -> Outcome {
      const std::lock_guard lock(mutex);
      starts.push_back(std::chrono::steady_clock::now());
      EXPECT_EQ(context.attempt(), starts.size());
      throw std::runtime_error("again");
    });
    ASSERT_TRUE(worker.start());
    ASSERT_TRUE(eventually([&] { return messages_in(queue_ + "-error") == 1; }));
    worker.stop();
  }
  ASSERT_EQ(starts.size(), 4u) << "the third wait goes through the same queues as the first, and is no circle";
  EXPECT_GE(starts[1] - starts[0], 100ms);
  EXPECT_GE(starts[2] - starts[1], 250ms);
  EXPECT_GE(starts[3] - starts[2], 100ms);
  EXPECT_EQ(messages_in(queue_ + "-retry"), 0u);
  const std::vector<Json> errors = ruby("errors " + queue_);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0]["key"], queue_) << "not the key of a delay queue";
  EXPECT_EQ(errors[0]["headers"]["trace"], "t1");
  EXPECT_EQ(Json::parse(errors[0]["headers"]["retry_info"].get<std::string>())["num_attempts"], 4);
}

TEST_F(SneakersInterop, SneakersGoesOnCountingAfterSteps) {
  ruby("declare " + queue_ + " 200");
  ruby("publish " + queue_ + " fail");
  {
    auto opened = brokers::open_broker(sneakers_url("&steps=50ms,50ms"));
    ASSERT_TRUE(opened);
    Taker taker(*opened->broker, queue_);
    ASSERT_TRUE(settle(*opened->broker, taker.next(), RetryAt{.after = 50ms, .error = "one"}));
    const Lease second = taker.next();
    EXPECT_EQ(second.attempt, 2u);
    ASSERT_TRUE(settle(*opened->broker, second, RetryAt{.after = 50ms, .error = "two"}));
  }
  const std::vector<Json> seen = ruby("work " + queue_ + " 3 2");
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0]["attempt"], 3);
  EXPECT_EQ(seen[1]["attempt"], 4) << "its own rejection is added to those of bide";
}

TEST_F(SneakersInterop, ReturnedJobIsNotCharged) {
  ruby("declare " + queue_ + " 200");
  ruby("publish " + queue_ + " bytes");
  auto opened = brokers::open_broker(sneakers_url());
  ASSERT_TRUE(opened);
  Taker taker(*opened->broker, queue_);
  ASSERT_TRUE(settle(*opened->broker, taker.next(), Returned{}));
  const Lease again = taker.next();
  EXPECT_EQ(again.attempt, 1u);
  ASSERT_TRUE(settle(*opened->broker, again, Returned{.after = 100ms}));
  const Lease later = taker.next();
  EXPECT_EQ(later.attempt, 1u);
  ASSERT_TRUE(settle(*opened->broker, later, Done{}));
}

TEST_F(SneakersInterop, BideDeclaresWhatSneakersWouldAndFindsWhatIsThere) {
  {
    // Nothing is there: bide is first, and Sneakers finds what it would have declared.
    auto opened = brokers::open_broker(sneakers_url("&retry_timeout=5000"));
    ASSERT_TRUE(opened);
    Taker taker(*opened->broker, queue_);
  }
  ruby("declare " + queue_ + " 5000");
  // Another TTL and another type than this worker would choose: theirs count.
  const std::string other = queue_ + "2";
  ruby("declare " + other + " 300 quorum");
  ruby("publish " + other + " bytes");
  auto opened = brokers::open_broker(sneakers_url());
  ASSERT_TRUE(opened);
  Taker taker(*opened->broker, other);
  ASSERT_TRUE(settle(*opened->broker, taker.next(), RetryAt{.error = "e"}));
  const Lease second = taker.next();
  EXPECT_EQ(second.attempt, 2u);
  ASSERT_TRUE(settle(*opened->broker, second, Done{}));
}

TEST_F(SneakersInterop, QueueThatWouldDropRejectedMessagesIsRefused) {
  ruby("plain " + queue_);
  auto opened = brokers::open_broker(sneakers_url());
  ASSERT_TRUE(opened);
  const auto refused = opened->broker->subscribe({.queues = {{queue_, 1}}}, [](std::vector<Lease>) {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("x-dead-letter-exchange"), std::string::npos) << refused.error().message;
}

TEST_F(SneakersInterop, DeadJobsOfBothKindsAreListedAndReplayed) {
  ruby("declare " + queue_ + " 200");
  ruby("publish " + queue_ + " fail");
  ruby("work " + queue_ + " 0 1");
  auto opened = brokers::open_broker(sneakers_url("&queues=" + queue_));
  ASSERT_TRUE(opened);
  const auto list = [&] {
    return wait<JobPage>(
        [&](auto done) { opened->inspector->list({.states = {JobState::kDead}}, "", 10, std::move(done)); });
  };
  const Result<JobPage> page = list();
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->jobs.size(), 1u);
  const JobInfo& dead = page->jobs[0];
  EXPECT_EQ(dead.job.body, "fail");
  EXPECT_EQ(dead.attempts, 1u);
  EXPECT_EQ(dead.history.at(0).text, "failed in Ruby");
  EXPECT_EQ(list()->jobs.at(0).job.id, dead.job.id) << "looking changes nothing";
  const auto replayed =
      wait<std::vector<Status>>([&](auto done) { opened->inspector->replay({dead.job.id}, {}, std::move(done)); });
  ASSERT_TRUE(replayed && replayed->front());
  Taker taker(*opened->broker, queue_);
  const Lease lease = taker.next();
  EXPECT_EQ(lease.job.body, "fail");
  EXPECT_EQ(lease.attempt, 1u) << "a fresh budget";
  ASSERT_TRUE(settle(*opened->broker, lease, Dead{.error = "again"}));
  const Result<JobPage> both = list();
  ASSERT_EQ(both->jobs.size(), 1u);
  const std::vector<Json> errors = ruby("errors " + queue_);
  ASSERT_EQ(errors.size(), 1u);
  const Json info = Json::parse(errors[0]["headers"]["retry_info"].get<std::string>());
  ASSERT_TRUE(info.is_array()) << info;
  EXPECT_EQ(info[0]["error"], "again") << "newest first";
  EXPECT_EQ(info[1]["error"], "failed in Ruby");
}

TEST_F(SneakersInterop, HeadersThatFillAFrameBlockNobody) {
  auto opened = brokers::open_broker(sneakers_url("&queues=" + queue_));
  ASSERT_TRUE(opened) << opened.error().message;
  { Taker declares(*opened->broker, queue_); }
  const auto settings = brokers::rabbitmq::parse_amqp_url(url().substr(5), false);
  auto stranger = brokers::rabbitmq::Connection::open(*settings, "stranger");
  ASSERT_TRUE(stranger && (*stranger)->open_channel(1));
  ASSERT_TRUE((*stranger)->publish(
      1, "", queue_, {.headers = {{"long", std::string(131'072 - 500, 'h')}}, .body = "large"}, true));
  ASSERT_TRUE((*stranger)->publish(1, "", queue_, {.body = "behind it"}, true));
  Taker taker(*opened->broker, queue_, 1);
  ASSERT_TRUE(settle(*opened->broker, taker.next(), Dead{.error = "no"}));
  const Lease behind = taker.next();
  EXPECT_EQ(behind.job.body, "behind it");
  ASSERT_TRUE(settle(*opened->broker, behind, Done{}));
  const auto page = wait<JobPage>(
      [&](auto done) { opened->inspector->list({.states = {JobState::kDead}}, "", 10, std::move(done)); });
  ASSERT_TRUE(page && page->jobs.size() == 1);
  EXPECT_EQ(page->jobs[0].job.body, "large");
}

// As Sneakers' options of these names.
TEST_F(SneakersInterop, RetryExchangesMayHaveOtherNamesAndBeShared) {
  const std::string other = queue_ + "-other";
  const std::string shared = "&retry_timeout=100&retry_exchange=" + queue_ + "-again&retry_error_exchange=" + queue_ +
                             "-failed&retry_requeue_exchange=" + queue_ + "-back&retry_routing_key=";
  auto opened = brokers::open_broker(sneakers_url(shared + queue_ + "&queues=" + queue_));
  auto beside = brokers::open_broker(sneakers_url(shared + other));
  ASSERT_TRUE(opened && beside);
  Taker taker(*opened->broker, queue_), other_taker(*beside->broker, other);
  for (const std::string& queue : {queue_, other}) {
    Job job;
    job.kind = "work";
    job.queue = job.body = queue;
    ASSERT_TRUE(enqueue(*opened->broker, job));
  }
  ASSERT_TRUE(settle(*opened->broker, taker.next(), RetryAt{.error = "again"}));
  ASSERT_TRUE(settle(*beside->broker, other_taker.next(), RetryAt{.error = "again"}));
  const Lease again = taker.next();
  EXPECT_EQ(again.job.body, queue_);
  EXPECT_EQ(again.attempt, 2u);
  EXPECT_EQ(other_taker.next().job.body, other) << "each comes back to its own queue";
  ASSERT_TRUE(settle(*opened->broker, again, Dead{.error = "enough"}));
  EXPECT_TRUE(eventually([&] { return messages_in(queue_ + "-failed") == 1; }));
  const auto page = wait<JobPage>(
      [&](auto done) { opened->inspector->list({.states = {JobState::kDead}}, "", 10, std::move(done)); });
  ASSERT_TRUE(page && page->jobs.size() == 1);
  EXPECT_EQ(page->jobs[0].history.at(0).text, "enough");
}

TEST_F(SneakersInterop, QueuesThatAreNotDurableAreUsedWhenTheUrlSaysSo) {
  auto opened = brokers::open_broker(sneakers_url("&durable=no"));
  ASSERT_TRUE(opened) << opened.error().message;
  Taker taker(*opened->broker, queue_);
  Job job;
  job.kind = job.queue = queue_;
  ASSERT_TRUE(enqueue(*opened->broker, job));
  EXPECT_TRUE(settle(*opened->broker, taker.next(), Done{}));
  auto durable = brokers::open_broker(sneakers_url());
  ASSERT_TRUE(durable);
  const auto refused = durable->broker->subscribe({.queues = {{queue_, 1}}}, [](const std::vector<Lease>&) {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("durable"), std::string::npos) << refused.error().message;
}

TEST_F(SneakersInterop, ThousandsOfDeadJobsAreListedAndReplayed) {
  constexpr int kDead = 3000;
  auto opened = brokers::open_broker(sneakers_url("&queues=" + queue_));
  ASSERT_TRUE(opened) << opened.error().message;
  { Taker declares(*opened->broker, queue_); }
  const auto settings = brokers::rabbitmq::parse_amqp_url(url().substr(5), false);
  auto stranger = brokers::rabbitmq::Connection::open(*settings, "stranger");
  ASSERT_TRUE(stranger && (*stranger)->open_channel(1));
  for (int i = 0; i < kDead; ++i) {
    ASSERT_TRUE((*stranger)->publish(1, "", queue_ + "-error", {.body = std::to_string(i % 1000)}, true));
  }
  ASSERT_TRUE(eventually([&] { return messages_in(queue_ + "-error") == kDead; }));
  std::vector<JobInfo> all;
  std::string cursor;
  do {
    auto page = wait<JobPage>(
        [&](auto done) { opened->inspector->list({.states = {JobState::kDead}}, cursor, 700, std::move(done)); });
    ASSERT_TRUE(page) << page.error().message;
    std::move(page->jobs.begin(), page->jobs.end(), std::back_inserter(all));
    cursor = page->next;
  } while (!cursor.empty());
  ASSERT_EQ(all.size(), static_cast<std::size_t>(kDead));
  EXPECT_EQ(all.front().job.body, "999") << "newest first";
  std::set<JobId> ids;
  for (const JobInfo& info : all) ids.insert(info.job.id);
  EXPECT_EQ(ids.size(), all.size()) << "equal messages have ids of their own";
  const auto replayed =
      wait<std::vector<Status>>([&](auto done) { opened->inspector->replay({ids.begin(), ids.end()}, {}, std::move(done)); });
  ASSERT_TRUE(replayed);
  for (const Status& status : *replayed) ASSERT_TRUE(status) << status.error().message;
  EXPECT_TRUE(eventually([&] { return messages_in(queue_) == kDead && messages_in(queue_ + "-error") == 0; }));
}

// What goes to the error queue is confirmed there before it leaves its own.
TEST_F(SneakersInterop, ConnectionsCutOnTheWayToTheErrorQueueLoseNothing) {
  constexpr std::size_t kCuts = 8, kJobs = 10;
  std::mutex mutex;
  std::map<std::string, int> seen;  // What happened, and how often.
  const auto note = [&](const std::string& what) {
    const std::lock_guard lock(mutex);
    seen[what] += 1;
  };
  support::TcpProxy proxy(server().port());
  const std::string options = "&heartbeat=5s&compat=sneakers&retry_max_times=1&retry_timeout=50";
  auto opened = brokers::open_broker(url(proxy.port()) + options);
  auto other = brokers::open_broker(url() + options + "&queues=" + queue_);
  ASSERT_TRUE(opened && other);
  auto subscription = opened->broker->subscribe({.queues = {{queue_, 1}}, .credit = 5}, [&](std::vector<Lease> leases) {
    for (const Lease& lease : leases) {
      const std::string attempt = "attempt " + std::to_string(lease.attempt);
      note(attempt + " started");
      const Outcome outcome = lease.attempt == 1 ? Outcome(RetryAt{.error = "no"}) : Outcome(Dead{.error = "no"});
      opened->broker->settle(
          {{.lease = {lease.job.id, lease.token}, .outcome = outcome}},
          [&note, attempt](const Result<std::vector<Status>>& answers) {
            const Status status = answers ? answers->front() : Status(answers.error());
            note(attempt + (status ? " settled" : ": " + std::string(to_string(status.error().code))));
          });
    }
  });
  ASSERT_TRUE(subscription) << subscription.error().message;
  const auto buried = [&] {
    std::set<std::string> bodies;
    const Result<JobPage> page = wait<JobPage>(
        [&](auto done) { other->inspector->list({.states = {JobState::kDead}}, "", 1000, std::move(done)); });
    if (!page) note("listing: " + page.error().message);
    for (std::size_t i = 0; page && i < page->jobs.size(); ++i) bodies.insert(page->jobs[i].job.body);
    return bodies.size();
  };
  const auto story = [&] {
    std::string text = std::to_string(buried()) + " of " + std::to_string(kCuts * kJobs) + " were found; " +
                       std::to_string(proxy.connections()) + " connections, " + std::to_string(proxy.cuts()) +
                       " cuts; pressure: " + opened->broker->pressure().reason + "\n";
    for (const support::RabbitmqQueue& one : server().queues()) {
      text += one.name + ": " + std::to_string(one.messages) + " messages, " + std::to_string(one.consumers) +
              " consumers\n";
    }
    const std::lock_guard lock(mutex);
    for (const auto& [what, times] : seen) text += what + ": " + std::to_string(times) + "\n";
    return text;
  };
  support::SeededRandom random(5);
  for (std::size_t cut = 0; cut < kCuts; ++cut) {
    const std::uint64_t before = proxy.cuts();
    proxy.cut_after(cut % 2 == 0 ? support::TcpProxy::Direction::kToServer : support::TcpProxy::Direction::kToClient,
                    random.next_below(3000));
    for (std::size_t i = 0; i < kJobs; ++i) {
      Job job;
      job.kind = job.queue = queue_;
      job.body = std::to_string(cut * kJobs + i);
      ASSERT_TRUE(enqueue(*other->broker, job));
    }
    ASSERT_TRUE(eventually([&] { return proxy.cuts() > before || buried() == (cut + 1) * kJobs; })) << story();
    // They needed fewer bytes than that.
    if (proxy.cuts() == before) proxy.cut();
  }
  EXPECT_TRUE(eventually([&] { return buried() == kCuts * kJobs; })) << story();
  subscription->reset();
}

}  // namespace
}  // namespace bide::interop_test
