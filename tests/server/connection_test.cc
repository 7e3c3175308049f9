// One connection's life: kept alive, pipelined, compressed, streamed, given up, drained.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <optional>
#include <thread>

#include "server/http/content_coding.h"
#include "server/http_fixture.h"

namespace bide::server_tests {
namespace {

using namespace std::chrono_literals;
using Connection = HttpFixture;

std::string gunzipped(const std::string& bytes) {
  std::string out;
  const auto append = [&out](std::string_view piece) {
    out += piece;
    return true;
  };
  EXPECT_EQ(Gunzip().push(bytes, append), Gunzip::Result::kOk);
  return out;
}

TEST_F(Connection, ServesOneRequestAfterTheOther) {
  start();
  RawClient client(port_);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(client.ask(get("/hello")).body, "hello");
    EXPECT_EQ(client.ask(post("/echo", "body " + std::to_string(i))).body, "body " + std::to_string(i));
  }
  EXPECT_EQ(server_->counts().accepted, 1u);
  EXPECT_EQ(server_->counts().requests, 20u);
}

TEST_F(Connection, AnswersPipelinedRequestsInOrder) {
  start();
  RawClient client(port_);
  std::string many;
  for (int i = 0; i < 1000; ++i) many += post("/echo", std::to_string(i));
  std::thread sender([&] { client.send(many); });
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(client.receive().body, std::to_string(i));
  sender.join();
}

TEST_F(Connection, KeepsARequestWaitingBehindOneThatIsNotAnswered) {
  start();
  RawClient client(port_);
  client.send(get("/later") + get("/hello"));
  Held held = wait_for_reply();
  held.reply.send({.content_type = "text/plain", .body = "first"});
  EXPECT_EQ(client.receive().body, "first");
  EXPECT_EQ(client.receive().body, "hello");
}

TEST_F(Connection, AnswersAClientThatHasStoppedWriting) {
  start();
  RawClient client(port_);
  client.send(get("/hello") + get("/hello"));
  client.end();
  EXPECT_EQ(client.receive().body, "hello");
  EXPECT_EQ(client.receive().body, "hello");
  EXPECT_TRUE(client.is_closed_by_server());
}

TEST_F(Connection, ClosesWhenAskedTo) {
  start();
  RawClient client(port_);
  EXPECT_EQ(client.ask(get("/hello", "Connection: close\r\n")).fields.at("connection"), "close");
  EXPECT_TRUE(client.is_closed_by_server());
  RawClient old(port_);
  EXPECT_EQ(old.ask("GET /hello HTTP/1.0\r\n\r\n").body, "hello");
  EXPECT_TRUE(old.is_closed_by_server());
  RawClient old_and_patient(port_);
  EXPECT_EQ(old_and_patient.ask("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").body, "hello");
  EXPECT_EQ(old_and_patient.ask(get("/hello")).body, "hello");
}

TEST_F(Connection, AnswersHeadAndOptions) {
  start();
  RawClient client(port_);
  client.send("HEAD /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const RawAnswer head = client.receive_head();
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.fields.at("content-length"), "5");
  const RawAnswer options = client.ask("OPTIONS /echo HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(options.fields.at("allow"), "POST, OPTIONS");
  EXPECT_FALSE(options.fields.contains("content-length"));
  EXPECT_EQ(client.ask("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 204);
  EXPECT_EQ(client.ask(get("/hello")).body, "hello");
}

TEST_F(Connection, TakesCompressedBodies) {
  start();
  RawClient client(port_);
  const std::string text(100'000, 'x');
  EXPECT_EQ(client.ask(post("/echo", gzip(text), "Content-Encoding: gzip\r\n")).body, text);
}

TEST_F(Connection, RefusesABodyThatInflatesPastTheLimit) {
  HttpOptions options;
  options.service.limits.body_bytes = 1'000'000;
  start(std::move(options));
  RawClient client(port_);
  EXPECT_EQ(client.ask(post("/echo", gzip(std::string(1'000'001, 'x')), "Content-Encoding: gzip\r\n")).status, 413);
  expect_alive();
}

TEST_F(Connection, CompressesForThoseWhoAcceptIt) {
  start();
  RawClient client(port_);
  const RawAnswer zipped = client.ask(get("/hello?bytes=50000", "Accept-Encoding: br, gzip\r\n"));
  EXPECT_EQ(zipped.fields.at("content-encoding"), "gzip");
  EXPECT_EQ(zipped.fields.at("vary"), "Accept-Encoding");
  EXPECT_LT(zipped.body.size(), 5'000u);
  EXPECT_EQ(gunzipped(zipped.body), std::string(50'000, 'a'));
  EXPECT_FALSE(client.ask(get("/hello?bytes=50000")).fields.contains("content-encoding"));
  EXPECT_FALSE(client.ask(get("/hello", "Accept-Encoding: gzip\r\n")).fields.contains("content-encoding"));
}

TEST_F(Connection, SaysGoOnToThoseWhoAsk) {
  start();
  RawClient client(port_);
  client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.receive_head().status, 100);
  EXPECT_EQ(client.ask("hello").body, "hello");
}

TEST_F(Connection, CarriesLargeBodiesBothWays) {
  start();
  RawClient client(port_);
  std::string body(20'000'000, 'a');
  for (std::size_t i = 0; i < body.size(); i += 1000) body[i] = static_cast<char>('a' + i / 1000 % 26);
  std::thread sender([&] { client.send(post("/echo", body)); });
  const RawAnswer answer = client.receive();
  sender.join();
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.body == body);
  EXPECT_EQ(client.ask(get("/hello")).body, "hello");
}

TEST_F(Connection, AnswersForARouteThatThrowsOrForgets) {
  start();
  RawClient client(port_);
  EXPECT_EQ(client.ask(get("/throws")).status, 500);
  EXPECT_EQ(client.ask(get("/forgets")).status, 500);
  EXPECT_EQ(client.ask(get("/hello")).status, 200);
  ASSERT_EQ(problems().size(), 1u);
  EXPECT_NE(problems()[0].find("GET /throws threw: ouch"), std::string::npos);
}

TEST_F(Connection, IsAnsweredFromAnyThreadAtAnyTime) {
  start();
  RawClient client(port_);
  for (int i = 0; i < 20; ++i) {
    client.send(get("/later"));
    Held held = wait_for_reply();
    std::thread([reply = std::move(held.reply)]() mutable { reply.send({.content_type = "text/plain", .body = "x"}); }).join();
    EXPECT_EQ(client.receive().body, "x");
  }
}

TEST_F(Connection, TellsARouteThatItsClientIsGone) {
  start();
  for (const bool slams : {false, true}) {
    abandoned(slams).reply.send({.status = 200});
  }
  expect_alive();
}

TEST_F(Connection, TellsARouteWhetherItsAnswerWasWritten) {
  start();
  const auto answered = [](Held& held, std::size_t bytes) {
    auto what = std::make_shared<std::promise<std::string>>();
    Response response{.content_type = "text/plain", .body = std::string(bytes, 'a')};
    response.receipt = std::make_shared<Receipt>([what] { what->set_value("written"); },
                                                 [what] { what->set_value("lost"); });
    held.reply.send(std::move(response));
    return what->get_future();
  };
  {
    RawClient client(port_);
    client.send(get("/later"));
    Held held = wait_for_reply();
    auto future = answered(held, 100);
    EXPECT_EQ(client.receive().body.size(), 100u);
    EXPECT_EQ(future.get(), "written");
  }
  {
    // More than any socket takes, for a client that goes away instead of reading it.
    auto client = std::make_unique<RawClient>(port_);
    client->send(get("/later"));
    Held held = wait_for_reply();
    auto future = answered(held, 64 << 20);
    client->slam();
    EXPECT_EQ(future.get(), "lost");
  }
  Held held = abandoned(true);
  EXPECT_EQ(answered(held, 100).get(), "lost");
}

TEST_F(Connection, OfAClientThatHungUpIsNoFaultOfTheServer) {
  start();
  for (const bool slams : {false, true}) {
    const Held held = abandoned(slams);
    // As a route does that has nobody to answer: the reply is destroyed.
  }
  EXPECT_EQ(wait_for_served(2), (std::vector<int>{kClientGone, kClientGone}));
}

TEST_F(Connection, StreamsUntilTheRouteEndsIt) {
  start();
  RawClient client(port_);
  client.send(get("/later"));
  Held held = wait_for_reply();
  auto stream = held.reply.stream({.content_type = "text/event-stream"});
  EXPECT_EQ(client.receive_head().fields.at("transfer-encoding"), "chunked");
  EXPECT_TRUE(stream->write("data: 1\n\n"));
  EXPECT_EQ(client.receive_until("\n\n\r\n"), "9\r\ndata: 1\n\n\r\n");
  EXPECT_TRUE(stream->write("data: 2\n\n"));
  client.receive_until("data: 2");
  stream.reset();
  client.receive_until("0\r\n\r\n");
  EXPECT_EQ(client.ask(get("/hello")).body, "hello");
}

TEST_F(Connection, EndsAStreamWhoseClientIsGone) {
  start();
  RawClient client(port_);
  client.send(get("/later"));
  Held held = wait_for_reply();
  std::promise<void> gone;
  held.reply.on_gone([&] { gone.set_value(); });
  auto stream = held.reply.stream({.content_type = "text/event-stream"});
  client.receive_head();
  client.close();
  EXPECT_EQ(gone.get_future().wait_for(20s), std::future_status::ready);
  EXPECT_FALSE(stream->write("data: 1\n\n"));
}

TEST_F(Connection, EndsWhenTheTokenOfItsCallerIsRevokedWhileItWaits) {
  std::atomic<std::uint64_t> version = 1;
  std::atomic<bool> is_still_valid = true;
  HttpOptions options;
  options.service.revalidation = {.version = [&] { return version.load(); }, .is_still_valid = [&](const Identity&) { return is_still_valid.load(); }};
  options.certificate_check_interval = 40ms;  // And at tokens as well.
  callers_have_tokens_ = true;
  start(std::move(options));
  RawClient waits(port_);
  waits.send(get("/later"));
  Held held = wait_for_reply();
  std::promise<void> gone;
  held.reply.on_gone([&] { gone.set_value(); });
  RawClient listens(port_);
  listens.send(get("/later"));
  Held events = wait_for_reply();
  const auto stream = events.reply.stream({.content_type = "text/event-stream"});
  EXPECT_EQ(listens.receive_head().status, 200);
  RawClient sends(port_);
  sends.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(sends.receive_head().status, 100);

  is_still_valid = false;
  ++version;
  const RawAnswer answer = waits.receive();
  EXPECT_EQ(answer.status, 401);
  EXPECT_EQ(answer.fields.at("connection"), "close");
  EXPECT_EQ(gone.get_future().wait_for(20s), std::future_status::ready);
  EXPECT_EQ(listens.receive_rest(), "");
  EXPECT_EQ(sends.receive().status, 401) << "its body is not here yet";
  EXPECT_FALSE(stream->write("data: 1\n\n"));
  expect_alive();
}

TEST_F(Connection, GivesUpAStreamThatIsNotRead) {
  HttpOptions options;
  options.service.limits.stream_bytes = 100'000;
  start(std::move(options));
  RawClient client(port_);
  client.shrink_receive_buffer();
  client.send(get("/later"));
  Held held = wait_for_reply();
  auto stream = held.reply.stream({.content_type = "text/event-stream"});
  // The kernel takes some megabytes; beyond that it is up to the limit.
  bool taken = true;
  for (int i = 0; i < 10'000 && taken; ++i) taken = stream->write(std::string(10'000, 'a'));
  EXPECT_FALSE(taken);
  expect_alive();
}

TEST_F(Connection, OfAClientThatSendsSlowlyIsGivenUp) {
  HttpOptions options;
  options.service.limits.head_timeout = 50ms;
  options.service.limits.idle_timeout = 50ms;
  options.service.limits.transfer_timeout = 50ms;
  start(std::move(options));
  EXPECT_EQ(ask("GET /hello HTTP/1.1\r\nHost: loc").status, 408);
  EXPECT_EQ(ask("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhel").status, 408);
  RawClient silent(port_);
  EXPECT_TRUE(silent.is_closed_by_server());
  expect_alive();
}

TEST_F(Connection, IsClosedWhenItIsIdleForTooLong) {
  HttpOptions options;
  options.service.limits.idle_timeout = 50ms;
  start(std::move(options));
  std::optional<RawClient> client;
  RawAnswer answer;
  while (answer.status == 0) {  // It may have been idle for too long before it asked.
    client.emplace(port_);
    answer = client->ask(get("/hello"));
  }
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(client->is_closed_by_server());
}

TEST_F(Connection, IsNotClosedWhileItsAnswerIsAwaited) {
  HttpOptions options;
  options.service.limits.idle_timeout = 10ms;
  options.service.limits.head_timeout = 10ms;
  start(std::move(options));
  std::optional<RawClient> client;
  std::optional<Held> held;
  while (!held) {  // It may have been idle for too long before it asked.
    client.emplace(port_);
    client->send(get("/later"));
    held = wait_for_reply(5s);
  }
  // Another one is given up meanwhile: the time is long over.
  EXPECT_TRUE(RawClient(port_).is_closed_by_server());
  EXPECT_TRUE(RawClient(port_).is_closed_by_server());
  held->reply.send({.content_type = "text/plain", .body = "patience"});
  EXPECT_EQ(client->receive().body, "patience");
}

TEST_F(Connection, OfAClientThatDoesNotReadIsGivenUp) {
  HttpOptions options;
  options.service.limits.transfer_timeout = 50ms;
  options.service.limits.slowest_rate = 1'000'000'000;
  start(std::move(options));
  RawClient client(port_);
  client.shrink_receive_buffer();
  client.send(get("/hello?bytes=50000000"));
  // When it is gone its bytes are, too.
  RawClient other(port_);
  while (server_->counts().held_bytes > 40'000'000 || server_->counts().requests == 0) {
    EXPECT_EQ(other.ask(get("/hello")).status, 200);
  }
  EXPECT_LT(client.receive_rest().size(), 50'000'000u);
}

TEST_F(Connection, BeyondTheLimitTakesThePlaceOfOneWhoseClientIsSlow) {
  HttpOptions options;
  options.service.limits.connections = 2;
  options.service.limits.stalled_after = 0ms;
  start(std::move(options));
  RawClient known(port_);
  EXPECT_EQ(known.ask(get("/hello")).status, 200);
  RawClient slow(port_);
  slow.send("GET /hello HTTP/1.1\r\nHost: local");
  while (server_->counts().accepted < 2) std::this_thread::yield();  // One more connection would take a place.
  RawClient next(port_);
  EXPECT_EQ(next.ask(get("/hello")).status, 200);
  EXPECT_EQ(known.ask(get("/hello")).status, 200) << "somebody who has asked something before goes after strangers";
}

TEST_F(Connection, BeyondTheLimitIsTurnedAway) {
  HttpOptions options;
  options.service.limits.connections = 2;
  options.service.limits.stalled_after = 1h;
  start(std::move(options));
  RawClient first(port_);
  RawClient second(port_);
  EXPECT_EQ(first.ask(get("/hello")).status, 200);
  EXPECT_EQ(second.ask(get("/hello")).status, 200);
  RawClient third(port_);
  const RawAnswer answer = third.receive();
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.fields.at("retry-after"), "1");
  EXPECT_EQ(first.ask(get("/hello")).status, 200);
}

TEST_F(Connection, BeyondTheLimitIsTurnedAwayAlsoAfterMoreThanOneWasEndedForAnother) {
  HttpOptions options;
  options.service.limits.connections = 128;
  options.service.limits.stalled_after = 0ms;
  start(std::move(options));
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<Held> held;
  const auto wait_for_an_answer = [&] {
    clients.push_back(std::make_unique<RawClient>(port_));
    clients.back()->send(get("/later"));
    held.push_back(wait_for_reply());
  };
  for (int i = 0; i < 126; ++i) wait_for_an_answer();
  RawClient slow(port_);
  RawClient slow_too(port_);
  while (server_->counts().connections < 128) std::this_thread::yield();
  wait_for_an_answer();
  // Both were ended for it.
  while (server_->counts().connections > 127) std::this_thread::yield();
  wait_for_an_answer();
  EXPECT_EQ(RawClient(port_).receive().status, 503) << "nobody is slow, and as many are open as may be";
}

TEST_F(Connection, IsToldToComeAgainWhenTooMuchIsHeld) {
  HttpOptions options;
  options.service.limits.held_bytes = 1'000'000;
  start(std::move(options));
  RawClient client(port_);
  std::thread sender([&] { client.send(post("/echo", std::string(5'000'000, 'a'))); });
  EXPECT_EQ(client.receive().status, 503);
  sender.join();
  expect_alive();
}

TEST_F(Connection, IsDrainedWhenTheServerStops) {
  start();
  RawClient idle(port_);
  EXPECT_EQ(idle.ask(get("/hello")).status, 200);
  RawClient busy(port_);
  busy.send(get("/later"));
  Held held = wait_for_reply();
  RawClient streaming(port_);
  streaming.send(get("/later"));
  Held streamed = wait_for_reply();
  auto stream = streamed.reply.stream({.content_type = "text/event-stream"});
  streaming.receive_head();

  server_->begin_drain();
  EXPECT_TRUE(idle.is_closed_by_server());
  streaming.receive_until("0\r\n\r\n");
  EXPECT_FALSE(server_->wait_drained(0ms));
  held.reply.send({.content_type = "text/plain", .body = "last"});
  const RawAnswer last = busy.receive();
  EXPECT_EQ(last.body, "last");
  EXPECT_EQ(last.fields.at("connection"), "close");
  busy.close();
  streaming.close();
  EXPECT_TRUE(server_->wait_drained(20s));
  EXPECT_THROW(RawClient{port_}, std::runtime_error);
}

TEST_F(Connection, MayEndBeforeItsReplyDoes) {
  start();
  auto client = std::make_unique<RawClient>(port_);
  client->send(get("/later"));
  Held held = wait_for_reply();
  server_.reset();
  held.reply.send({.status = 200});
  EXPECT_TRUE(client->is_closed_by_server());
}

TEST_F(Connection, ByAUnixSocketIsLikeAnyOther) {
  const std::string path = testing::TempDir() + "bide-http-" + std::to_string(::getpid()) + ".sock";
  HttpOptions options;
  options.listen = {{.path = path}};
  start(std::move(options));
  {
    RawClient client(path);
    EXPECT_EQ(client.ask("GET /hello HTTP/1.1\r\nHost: anything\r\n\r\n").body, "hello");
    EXPECT_EQ(HttpServer::start({.listen = {{.path = path}}}).error().code, ErrorCode::kPermissionDenied);
  }
  server_.reset();
  EXPECT_THROW(RawClient{path}, std::runtime_error);
}

TEST_F(Connection, IsAcceptedOnEveryAddressAfterTheDescriptorsRanOut) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "the sanitizer looks at memory through pipes, for which there are no descriptors either";
#endif
#endif
  HttpOptions options;
  options.listen = {{.host = "127.0.0.1"}, {.host = "127.0.0.1"}};
  start(std::move(options));
  expect_alive();
  rlimit before = {};
  ::getrlimit(RLIMIT_NOFILE, &before);
  std::vector<RawClient> clients;
  std::vector<int> sockets;
  std::vector<std::uint16_t> ports;
  for (const ListenAddress& address : server_->addresses()) {
    ports.push_back(address.port);
    sockets.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
  rlimit none = before;
  none.rlim_cur = 3;
  ::setrlimit(RLIMIT_NOFILE, &none);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const sockaddr_in address{.sin_family = AF_INET,
                              .sin_port = htons(ports[i]),
                              .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                              .sin_zero = {}};
    EXPECT_EQ(::connect(sockets[i], reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  for (const std::uint16_t port : ports) wait_for_problem("on 127.0.0.1:" + std::to_string(port));
  ::setrlimit(RLIMIT_NOFILE, &before);
  for (const int socket : sockets) {
    RawClient client{platform::Descriptor(socket)};
    EXPECT_EQ(client.ask(get("/hello")).body, "hello");
  }
}

TEST_F(Connection, MadeWhileTheServerStopsIsClosed) {
  for (int round = 0; round < 100; ++round) {
    start();
    std::thread clients([this] {
      std::vector<RawClient> open;
      try {
        for (int i = 0; i < 50; ++i) open.emplace_back(port_);
      } catch (const std::runtime_error&) {
        // Nobody listens any more.
      }
      for (RawClient& client : open) {
        // A connection that was made while the listener was being closed can be dropped by the kernel without a word: only
        // who sends something is told.
        client.send("G");
        EXPECT_TRUE(client.is_closed_by_server());
      }
    });
    if (round % 2 == 1) server_->begin_drain();
    server_.reset();
    clients.join();
  }
}

TEST_F(Connection, NeedsAnAddressThatIsFree) {
  start();
  const auto second = HttpServer::start({.listen = {{.host = "127.0.0.1", .port = port_}}});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kPermissionDenied);
  EXPECT_NE(second.error().message.find("--listen"), std::string::npos) << second.error().message;
}

}  // namespace
}  // namespace bide::server_tests
