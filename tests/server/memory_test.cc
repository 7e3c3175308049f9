// Whose memory it is: clients that do not read, do not go on sending or are not known keep nobody else from being served.

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/http/content_coding.h"
#include "server/http_fixture.h"

namespace bide::server_tests {
namespace {

using namespace std::chrono_literals;

class Memory : public HttpFixture {
 protected:
  // Strangers have 4 MB, requests 28, answers 32: more than the kernel takes for a connection. Who has not gone on for so
  // long may be given up.
  void start_small(std::chrono::milliseconds stalled_after) {
    HttpOptions options;
    options.service.limits.held_bytes = 64'000'000;
    options.service.limits.stalled_after = stalled_after;
    start(std::move(options));
  }

  // Callers that do what they should: all of them are served, with their own bytes.
  void expect_innocents_served() {
    RawClient client(port_);
    for (int i = 0; i < 20; ++i) {
      const std::string body(static_cast<std::size_t>(50'000 + i), static_cast<char>('a' + i));
      client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n");
      client.send(body);
      const RawAnswer answer = client.receive();
      EXPECT_EQ(answer.status, 200) << answer.body.substr(0, 200);
      EXPECT_TRUE(answer.body == body);
      EXPECT_EQ(client.ask(get("/hello")).body, "hello");
    }
  }

  // Asks for so much and does not read it.
  std::unique_ptr<RawClient> ask_and_wait(std::size_t bytes) {
    auto client = std::make_unique<RawClient>(port_);
    client->send(get("/hello?bytes=" + std::to_string(bytes)));
    return client;
  }

  void wait_until_held(std::uint64_t bytes) {
    while (server_->counts().held_bytes < bytes) expect_alive();
  }
};

// The first bytes of a body that stands for more than it seems to.
std::string stalling_gzip(std::string_view request_line, const std::string& zipped) {
  return std::string(request_line) + " HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: " +
         std::to_string(zipped.size()) + "\r\n\r\n" + zipped.substr(0, zipped.size() - 10);
}

TEST_F(Memory, IsNotTakenByABodyWhereNoneBelongs) {
  start_small(1h);
  const std::string zipped = gzip(std::string(34'000'000, 'a'));
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 8; ++i) {
    for (const char* line : {"GET /open", "GET /hello", "DELETE /v1/jobs/1"}) {
      clients.push_back(std::make_unique<RawClient>(port_));
      clients.back()->send(stalling_gzip(line, zipped));
    }
  }
  EXPECT_EQ(clients[0]->receive().status, 413);
  EXPECT_EQ(clients[1]->receive().status, 413);
  EXPECT_EQ(clients[2]->receive().status, 405);
  expect_innocents_served();
  EXPECT_EQ(RawClient(port_).ask(post("/small", std::string(1001, 'a'))).status, 413);
  EXPECT_EQ(RawClient(port_).ask(post("/small", std::string(1000, 'a'))).status, 200);
}

TEST_F(Memory, OfThoseWhoAreKnownIsNotTakenByStrangers) {
  start_small(1h);
  const std::string large = gzip(std::string(10'000'000, 'a'));
  const std::string small = gzip(std::string(1'000'000, 'a'));
  std::vector<std::unique_ptr<RawClient>> strangers;
  for (int i = 0; i < 40; ++i) {
    strangers.push_back(std::make_unique<RawClient>(port_));
    strangers.back()->send(stalling_gzip("POST /open", large));
  }
  // Each alone has more than all of them may have.
  for (auto& stranger : strangers) EXPECT_EQ(stranger->receive().status, 503);
  for (auto& stranger : strangers) {
    stranger = std::make_unique<RawClient>(port_);
    stranger->send(stalling_gzip("POST /open", small));
  }
  wait_until_held(1'000'000);
  EXPECT_LE(server_->counts().held_bytes, 4'000'000u);
  expect_innocents_served();
}

TEST_F(Memory, OfAnswersIsNotThatOfRequests) {
  start_small(1h);
  std::vector<std::unique_ptr<RawClient>> clients;
  clients.push_back(ask_and_wait(27'000'000));
  wait_until_held(27'000'000);
  // There is no room for a second one, and nobody to be given up.
  EXPECT_EQ(RawClient(port_).ask(get("/hello?bytes=27000000")).status, 503);
  // But for requests there is, whose answers are small.
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(RawClient(port_).ask(post("/echo", std::string(4'000, 'a'))).status, 200);
    EXPECT_EQ(RawClient(port_).ask(post("/small", std::string(1'000, 'a'))).status, 200);
  }
  EXPECT_EQ(clients[0]->receive().body.size(), 27'000'000u) << "whoever reads at last has it all";
}

TEST_F(Memory, OfClientsThatDoNotReadIsGivenToThoseWhoDo) {
  start_small(0ms);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(ask_and_wait(25'000'000));
    expect_innocents_served();
  }
  EXPECT_EQ(RawClient(port_).ask(get("/hello?bytes=25000000")).body.size(), 25'000'000u);
  EXPECT_LT(clients.front()->receive_rest().size(), 25'000'000u);
  EXPECT_LE(server_->counts().held_bytes, 64'000'000u);
}

TEST_F(Memory, OfARequestThatDoesNotGoOnIsGivenToOthers) {
  start_small(0ms);
  RawClient stalled(port_);
  stalled.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000000\r\n\r\n" + std::string(15'000'000, 'a'));
  wait_until_held(15'000'000);
  const std::string body(14'000'000, 'b');
  EXPECT_TRUE(RawClient(port_).ask(post("/echo", body)).body == body);
  EXPECT_EQ(stalled.receive().status, 503);
  expect_innocents_served();
}

TEST_F(Memory, OfLargeTransfersIsGivenToSmallRequestsAlsoOfTheSameCaller) {
  start_small(1h);
  const auto unfinished = [](std::size_t bytes) {
    return "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(bytes + 1) + "\r\n\r\n" +
           std::string(bytes, 'a');
  };
  RawClient large(port_);
  large.send(unfinished(20'000'000));
  std::vector<std::unique_ptr<RawClient>> small;
  for (int i = 0; i < 100; ++i) {
    small.push_back(std::make_unique<RawClient>(port_));
    small.back()->send(unfinished(200'000));
  }
  expect_innocents_served();
  EXPECT_EQ(large.receive().status, 503);
}

TEST_F(Memory, OfACallerWithinItsPartIsNotTakenByManySmallRequestsOfOneBeyond) {
  start_small(1h);
  RawClient within(port_);
  within.send("POST /secret HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\nContent-Length: 4000000\r\n\r\n" +
              std::string(3'999'999, 'a'));
  wait_until_held(3'999'999);
  std::vector<std::unique_ptr<RawClient>> beyond;
  for (int i = 0; i < 150; ++i) {
    beyond.push_back(std::make_unique<RawClient>(port_));
    beyond.back()->send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200001\r\n\r\n" + std::string(200'000, 'b'));
  }
  while (server_->counts().refused == 0) std::this_thread::yield();
  within.send("a");
  EXPECT_EQ(within.receive().status, 200);
}

TEST_F(Memory, OfEarlyRequestsIsCounted) {
  start_small(1h);
  RawClient client(port_);
  std::string many = post("/open", "first");
  for (int i = 0; i < 100; ++i) many += post("/open", std::string(200, 'a'));
  client.send(many);
  const Held first = wait_for_reply();
  wait_until_held(20'000);
  client.slam();
  EXPECT_EQ(wait_for_served(1), std::vector<int>{kClientGone});
  while (server_->counts().held_bytes > 0) expect_alive();
}

TEST_F(Memory, OfARequestIsHeldUntilItIsAnsweredAlsoWhenItsClientIsGone) {
  start_small(1h);
  RawClient client(port_);
  client.send(post("/open", std::string(400'000, 'a')));
  Held held = wait_for_reply();
  client.slam();
  EXPECT_EQ(wait_for_served(1), std::vector<int>{kClientGone});
  EXPECT_GE(server_->counts().held_bytes, 400'000u);
  held.reply.send({.status = 204});
  EXPECT_EQ(server_->counts().held_bytes, 0u);
}

}  // namespace
}  // namespace bide::server_tests
