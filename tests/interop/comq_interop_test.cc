// Queues and exchanges of ComQ, served by bide and by ComQ's own package from npm, in both of its published lines: up to
// 0.10 a failed message is requeued once and msgpack is the default, from 0.11 on it is published again with x-attempt and
// JSON is. Tasks came with 0.11.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "interop/interop_fixture.h"

namespace bide::interop_test {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

constexpr const char* kNewer = "0.12.0";
constexpr const char* kOlder = "0.10.1";

class ComqInterop : public InteropTest {
 protected:
  static void SetUpTestSuite() {
    if (!has_npm()) return;
    for (const std::string version : {kNewer, kOlder}) {
      const std::string folder = folder_of(version);
      const std::string command = "test -d " + folder + "/node_modules/comq || { mkdir -p " + folder + " && npm install --prefix " +
                                  folder + " --ignore-scripts --no-audit --no-fund --silent comq@" + version + "; }";
      ASSERT_EQ(std::system(command.c_str()), 0) << command;
    }
  }
  void SetUp() override {
    if (!has_npm()) GTEST_SKIP() << "npm is not installed";
    InteropTest::SetUp();
  }
  void TearDown() override {
    if (support::RabbitmqServer::is_installed() && has_npm()) server().set_memory_alarm(false);
    InteropTest::TearDown();
  }

  static bool has_npm() {
    static const bool has = std::system("npm --version > /dev/null 2>&1") == 0;
    return has;
  }
  static std::string folder_of(const std::string& version) { return BIDE_COMQ_FOLDER "/" + version; }

  // What the other side prints, a value for each line.
  std::vector<Json> node(const std::string& arguments, const std::string& version = kNewer) const {
    const std::string command = "NODE_PATH=" + folder_of(version) + "/node_modules timeout 120 node " BIDE_COMQ_SIDE " " +
                                std::to_string(server().port()) + " " + arguments + " 2>&1";
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    EXPECT_NE(pipe, nullptr);
    std::string text;
    std::array<char, 4096> buffer{};
    while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), size);
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
  std::future<std::vector<Json>> node_meanwhile(const std::string& arguments, const std::string& version = kNewer) const {
    return std::async(std::launch::async, [this, arguments, version] { return node(arguments, version); });
  }

  std::string comq_url(const std::string& options = "") const { return mode_url("compat=comq" + options); }

  bool is_consumed(const std::string& queue) const {
    for (const support::RabbitmqQueue& one : server().queues()) {
      if (one.name == queue) return one.consumers > 0;
    }
    return false;
  }

  const std::string queue_ = prefix_;
};

// The numbers in a row of messages, sorted.
std::multiset<int> numbers(const std::vector<Json>& messages) {
  std::multiset<int> all;
  for (const Json& message : messages) all.insert(message["n"].get<int>());
  return all;
}

std::multiset<int> up_to(int count) {
  std::multiset<int> all;
  for (int n = 0; n < count; ++n) all.insert(n);
  return all;
}

TEST_F(ComqInterop, NodeAsksAndBideAnswersWithThreeHundredInFlight) {
  constexpr int kRequests = 300;
  Worker worker(Client::open(comq_url()).value(), {.queues = {queue_}, .concurrency = 4, .credit = 300});
  worker.handle(queue_, [](const Job& job) -> Outcome {
    const Json request = Json::parse(job.body);
    return Done{.result = Json{{"twice", 2 * request["n"].get<int>()}, {"text", request["text"]}}.dump()};
  });
  ASSERT_TRUE(worker.start());
  for (const std::string version : {kNewer, kOlder}) {
    const std::vector<Json> replies = node("ask " + queue_ + " " + std::to_string(kRequests), version);
    ASSERT_EQ(replies.size(), static_cast<std::size_t>(kRequests)) << version;
    for (int n = 0; n < kRequests; ++n) {
      EXPECT_EQ(replies[static_cast<std::size_t>(n)]["reply"]["twice"], 2 * n) << version;
      EXPECT_EQ(replies[static_cast<std::size_t>(n)]["same"], true) << version << ", request " << n;
    }
  }
  worker.stop();
  EXPECT_EQ(worker.stats().done, 2u * kRequests);
  EXPECT_EQ(messages_in(queue_), 0u);
}

TEST_F(ComqInterop, BideAsksAndNodeAnswersWithThreeHundredInFlight) {
  constexpr int kRequests = 300;
  Client client = Client::open(comq_url()).value();
  for (const std::string version : {kNewer, kOlder}) {
    auto there = node_meanwhile("reply " + queue_ + " " + std::to_string(kRequests), version);
    std::vector<std::future<Result<Reply>>> replies;
    for (int n = 0; n < kRequests; ++n) {
      replies.push_back(client.request<Reply>("double", Json{{"n", n}}.dump(),
                                              {.queue = queue_, .timeout = 60s, .content_type = "application/json"}));
    }
    for (int n = 0; n < kRequests; ++n) {
      const Result<Reply> reply = replies[static_cast<std::size_t>(n)].get();
      ASSERT_TRUE(reply) << version << ": " << reply.error().message;
      EXPECT_EQ(reply->content_type, "application/json") << version;
      EXPECT_EQ(Json::parse(reply->body), (Json{{"twice", 2 * n}})) << version;
    }
    there.get();
  }
  const Result<Reply> late = client.request<Reply>("double", "{}", {.queue = queue_, .timeout = 50ms}).get();
  EXPECT_FALSE(late) << "nobody is there";
  EXPECT_TRUE(eventually([&] { return messages_in(queue_) == 0; })) << "nor waits for an answer";
}

TEST_F(ComqInterop, EveryEncodingComesAndGoesAsItIs) {
  Worker worker(Client::open(comq_url()).value(), {.queues = {queue_}, .concurrency = 1});
  std::mutex mutex;
  std::vector<std::string> types, bodies;
  worker.handle(queue_, [&](const Job& job) -> Outcome {
    const std::lock_guard lock(mutex);
    types.push_back(job.content_type);
    bodies.push_back(job.body);
    return Done{.result = job.body};
  });
  ASSERT_TRUE(worker.start());
  for (const std::string version : {kNewer, kOlder}) {
    const std::vector<Json> replies = node("encodings " + queue_, version);
    const Json value = {{"a", {1, nullptr, "x"}}};
    EXPECT_EQ(replies, (std::vector<Json>{value, value, "plain words", {{"bytes", "00ff10"}}})) << version;
  }
  worker.stop();
  ASSERT_EQ(types.size(), 8u);
  EXPECT_EQ(std::vector<std::string>(types.begin(), types.begin() + 4),
            (std::vector<std::string>{"application/json", "application/msgpack", "text/plain", "application/octet-stream"}));
  EXPECT_EQ(bodies[0], "{\"a\":[1,null,\"x\"]}");
  EXPECT_EQ(bodies[3], std::string("\x00\xff\x10", 3));
}

TEST_F(ComqInterop, WhatIsWronglyFormedDoesNotStopTheAnswers) {
  Worker worker(Client::open(comq_url()).value(), {.queues = {queue_}, .concurrency = 2});
  worker.handle(queue_, [](const Job& job) -> Outcome {
    const Json request = Json::parse(job.body);  // Throws: tried again, as in ComQ.
    return Done{.result = Json{{"n", request["n"]}, {"text", request.value("text", "")}}.dump()};
  });
  ASSERT_TRUE(worker.start());
  node("odd " + queue_);
  const std::vector<Json> replies = node("ask " + queue_ + " 3");
  ASSERT_EQ(replies.size(), 3u);
  for (const Json& reply : replies) EXPECT_EQ(reply["reply"]["n"], reply["n"]);
  // Three that can be read, three that cannot.
  EXPECT_TRUE(eventually([&] { return worker.stats().done == 6 && worker.stats().dead == 3; }))
      << worker.stats().done << " done, " << worker.stats().dead << " dead";
  worker.stop();
  EXPECT_EQ(worker.stats().retried, 15u) << "five times each";
  EXPECT_TRUE(eventually([&] { return messages_in(queue_) == 0; }));
}

TEST_F(ComqInterop, EachGroupHasEachEventOnce) {
  constexpr int kEvents = 40;
  const std::string exchange = prefix_;
  std::mutex mutex;
  std::map<std::string, std::vector<Json>> seen;
  const auto listen = [&](Worker& worker, const std::string& group) {
    worker.handle(exchange, [&, group](const Job& job) {
      const std::lock_guard lock(mutex);
      seen[group].push_back(Json::parse(job.body));
    });
    ASSERT_TRUE(worker.start());
  };
  // Two members of one group, and another group.
  Worker first(Client::open(comq_url()).value(), {.queues = {exchange + "..a"}, .concurrency = 1});
  Worker second(Client::open(comq_url()).value(), {.queues = {exchange + "..a"}, .concurrency = 1});
  Worker other(Client::open(comq_url()).value(), {.queues = {exchange + "..b"}, .concurrency = 1});
  listen(first, "a");
  listen(second, "a");
  listen(other, "b");
  auto there = node_meanwhile("consume " + exchange + " c " + std::to_string(kEvents));
  ASSERT_TRUE(eventually([&] { return is_consumed(exchange + "..c"); }));
  node("emit " + exchange + " " + std::to_string(kEvents));
  EXPECT_EQ(numbers(there.get()), up_to(kEvents)) << "of Node's own group";
  const auto have = [&](std::size_t count) {
    const std::lock_guard lock(mutex);
    return seen["a"].size() >= count && seen["b"].size() >= count;
  };
  EXPECT_TRUE(eventually([&] { return have(kEvents); }));
  node("emit " + exchange + " " + std::to_string(kEvents), kOlder);
  EXPECT_TRUE(eventually([&] { return have(2 * kEvents); }));
  for (Worker* worker : {&first, &second, &other}) worker->stop();
  std::multiset<int> twice = up_to(kEvents);
  twice.merge(up_to(kEvents));
  EXPECT_EQ(numbers(seen["a"]), twice);
  EXPECT_EQ(numbers(seen["b"]), twice);
}

TEST_F(ComqInterop, BideEmitsAndNodeConsumes) {
  constexpr int kEvents = 40;
  const std::string exchange = prefix_;
  Client client = Client::open(comq_url()).value();
  const auto emit = [&](int n) {
    return client.enqueue("numbers", Json{{"n", n}}.dump(), {.queue = exchange + "..", .content_type = "application/json"});
  };
  const Result<JobId> early = emit(-1);
  EXPECT_TRUE(early) << "an event for nobody is no mistake: " << early.error().message;
  for (const std::string version : {kNewer, kOlder}) {
    const std::string group = version == kNewer ? "newer" : "older";
    auto there = node_meanwhile("consume " + exchange + " " + group + " " + std::to_string(kEvents), version);
    ASSERT_TRUE(eventually([&] { return is_consumed(exchange + ".." + group); }));
    for (int n = 0; n < kEvents; ++n) ASSERT_TRUE(emit(n));
    EXPECT_EQ(numbers(there.get()), up_to(kEvents)) << version;
  }
}

TEST_F(ComqInterop, TasksGoBothWays) {
  constexpr int kTasks = 20;
  Client client = Client::open(comq_url()).value();
  {
    Worker worker(client, {.queues = {queue_}, .concurrency = 2});
    std::mutex mutex;
    std::vector<Json> seen;
    worker.handle(queue_, [&](const Job& job) -> Outcome {
      const std::lock_guard lock(mutex);
      seen.push_back(Json::parse(job.body));
      return Done{.result = "nobody has asked for it"};
    });
    ASSERT_TRUE(worker.start());
    node("enqueue " + queue_ + " " + std::to_string(kTasks));
    EXPECT_TRUE(eventually([&] { return worker.stats().done == kTasks; }));
    worker.stop();
    EXPECT_EQ(numbers(seen), up_to(kTasks));
  }
  for (int n = 0; n < kTasks; ++n) {
    const Result<JobId> id = client.enqueue("tasks", Json{{"n", n}}.dump(),
                                            {.queue = queue_, .content_type = "application/json", .headers = {{"trace", "t"}}});
    ASSERT_TRUE(id) << id.error().message;
  }
  const std::vector<Json> there = node("process " + queue_ + " " + std::to_string(kTasks));
  std::vector<Json> tasks;
  for (const Json& one : there) {
    tasks.push_back(one["task"]);
    EXPECT_EQ(one["properties"]["deliveryMode"], 2);
    EXPECT_EQ(one["properties"]["contentType"], "application/json");
    EXPECT_EQ(one["properties"]["headers"]["trace"], "t");
  }
  EXPECT_EQ(numbers(tasks), up_to(kTasks));
}

TEST_F(ComqInterop, AttemptsAreCountedByBothSidesTogether) {
  node("enqueue " + queue_ + " 1");
  EXPECT_EQ(node("fail " + queue_), (std::vector<Json>{{{"task", {{"n", 0}}}, {"attempt", 0}}}));
  auto opened = brokers::open_broker(comq_url());
  ASSERT_TRUE(opened) << opened.error().message;
  {
    Taker taker(*opened->broker, queue_, 1);
    const Lease second = taker.next();
    EXPECT_EQ(second.attempt, 2u) << "Node has failed once";
    ASSERT_TRUE(settle(*opened->broker, second, RetryAt{.error = "two"}));
    const Lease third = taker.next();
    EXPECT_EQ(third.attempt, 3u);
    ASSERT_TRUE(settle(*opened->broker, third, RetryAt{.error = "three"}));
    const Lease back = taker.next();
    ASSERT_TRUE(settle(*opened->broker, back, Returned{.after = 1h})) << "and nobody has it until the broker is closed";
  }
  *opened = {};
  ASSERT_TRUE(eventually([&] { return messages_in(queue_) == 1; }));
  EXPECT_EQ(node("fail " + queue_), (std::vector<Json>{{{"task", {{"n", 0}}}, {"attempt", 3}}}));
  EXPECT_EQ(node("fail " + queue_), (std::vector<Json>{{{"task", {{"n", 0}}}, {"attempt", 4}}}));
  Worker worker(Client::open(comq_url()).value(), {.queues = {queue_}, .concurrency = 1});
  std::mutex mutex;
  std::vector<std::uint32_t> attempts;
  worker.handle(queue_, [&](Context& context) -> Outcome {
    const std::lock_guard lock(mutex);
    attempts.push_back(context.attempt());
    throw std::runtime_error("never");
  });
  ASSERT_TRUE(worker.start());
  EXPECT_TRUE(eventually([&] { return worker.stats().dead == 1; }));
  worker.stop();
  EXPECT_EQ(attempts, (std::vector<std::uint32_t>{6})) << "the last one, as in ComQ";
  EXPECT_TRUE(eventually([&] { return messages_in(queue_) == 0; }));
}

TEST_F(ComqInterop, FailedEventComesBackToItsOwnGroupOnlyAndIsKeptWhenItIsDead) {
  const std::string exchange = prefix_;
  Client client = Client::open(comq_url("&dead=keep&queues=" + exchange + "..fails")).value();
  Worker fails(client, {.queues = {exchange + "..fails"}, .concurrency = 1});
  Worker works(Client::open(comq_url()).value(), {.queues = {exchange + "..works"}, .concurrency = 1});
  fails.handle(exchange, [](const Job&) -> Outcome { throw std::runtime_error("no luck"); });
  works.handle(exchange, [] {});
  ASSERT_TRUE(fails.start());
  ASSERT_TRUE(works.start());
  node("emit " + exchange + " 1");
  EXPECT_TRUE(eventually([&] { return fails.stats().dead == 1; }));
  EXPECT_EQ(fails.stats().retried, 5u);
  EXPECT_TRUE(eventually([&] { return works.stats().done == 1; }));
  works.stop();
  EXPECT_EQ(works.stats().started, 1u);
  fails.stop();
  const Result<JobPage> dead = wait<JobPage>(
      [&](auto done) { client.inspector().list({.states = {JobState::kDead}}, "", 10, std::move(done)); });
  ASSERT_TRUE(dead) << dead.error().message;
  ASSERT_EQ(dead->jobs.size(), 1u);
  EXPECT_EQ(dead->jobs[0].attempts, 6u);
  EXPECT_EQ(dead->jobs[0].job.body, "{\"n\":0}");
  ASSERT_EQ(dead->jobs[0].history.size(), 1u);
  EXPECT_EQ(dead->jobs[0].history[0].text, "no luck");
}

// No reply leaves while the server takes no messages; but nothing else waits for that. The service goes on with what
// needs no reply, knows of the pressure, is told at once that it cannot publish, and every reply leaves afterwards, once.
TEST_F(ComqInterop, ServiceThatAnswersAndPublishesGoesOnDuringAnAlarm) {
  constexpr int kRequests = 50, kTasks = 200, kCredit = 8;
  Client client = Client::open(comq_url()).value();
  Worker worker(client, {.queues = {queue_, queue_ + ".ask"}, .concurrency = 4, .credit = kCredit});
  std::mutex mutex;
  std::map<std::string, int> runs;
  const auto run = [&](const Job& job) {
    const std::lock_guard lock(mutex);
    return runs[job.queue + job.body] += 1;
  };
  std::atomic<int> asked = 0;
  worker.handle(queue_ + ".ask", [&](const Job& job, Context& context) -> Outcome {
    run(job);
    asked += 1;
    // Confirmed together with the reply.
    context.enqueue("effect", job.body, {.queue = queue_ + ".effects"}).value();
    const Json request = Json::parse(job.body);
    return Done{.result = Json{{"n", request["n"]}, {"text", request["text"]}}.dump()};
  });
  worker.handle(queue_, [&](const Job& job) { run(job); });
  // Requests and tasks are in their queues before the alarm.
  auto replies = node_meanwhile("ask " + queue_ + ".ask " + std::to_string(kRequests));
  node("enqueue " + queue_ + " " + std::to_string(kTasks));
  ASSERT_TRUE(eventually([&] { return messages_in(queue_ + ".ask") == kRequests; }));
  server().set_memory_alarm(true);
  ASSERT_TRUE(worker.start());
  EXPECT_TRUE(eventually([&] { return worker.stats().done == kTasks; }))
      << "only " << worker.stats().done << " were settled while the server takes no messages";
  EXPECT_TRUE(eventually([&] { return asked == kRequests; })) << "requests are read and run, more of them than the credit";
  EXPECT_TRUE(eventually([&] { return client.broker().pressure().level == Pressure::Level::kBlocked; }));
  const Result<JobId> refused = client.enqueue("effect", "x", {.queue = queue_ + ".effects"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded) << "at once, so that the entry point can say 429";
  EXPECT_EQ(worker.stats().done, static_cast<std::uint64_t>(kTasks)) << "invalid: the server took messages";
  server().set_memory_alarm(false);
  EXPECT_TRUE(eventually([&] { return worker.stats().done == kTasks + kRequests; }));
  const std::vector<Json> all = replies.get();
  ASSERT_EQ(all.size(), static_cast<std::size_t>(kRequests));
  for (const Json& reply : all) {
    EXPECT_EQ(reply["reply"]["n"], reply["n"]);
    EXPECT_EQ(reply["same"], true);
  }
  worker.stop();
  for (const auto& [what, times] : runs) EXPECT_EQ(times, 1) << what;
  EXPECT_EQ(runs.size(), static_cast<std::size_t>(kRequests + kTasks));
  EXPECT_TRUE(eventually([&] { return messages_in(queue_ + ".effects") == kRequests; }));
}

}  // namespace
}  // namespace bide::interop_test
