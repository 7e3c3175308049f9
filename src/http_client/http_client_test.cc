#include "http_client/http_client.h"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <netdb.h>

#include <condition_variable>
#include <cstdlib>
#include <future>
#include <mutex>

#include "http_client/http_client_test_server.h"
#include "support/temporary_directory.h"

namespace bide::http_client {
namespace {

using namespace std::chrono_literals;

// Lookups of stalls.test wait here.
class StalledLookups {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return released_; });
  }
  void release() {
    std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  bool released() {
    std::lock_guard lock(mutex_);
    return released_;
  }

 private:
  std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  bool released_ = false;
};

// Never destroyed: a lookup may outlive the test.
StalledLookups& stalled_lookups() {
  static StalledLookups* const made = new StalledLookups();
  return *made;
}

}  // namespace
}  // namespace bide::http_client

// In place of the system's, for libcurl too: names below test are ours.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** found) {
  using Lookup = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto system_lookup = reinterpret_cast<Lookup>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const std::string_view asked = name == nullptr ? "" : name;
  if (asked == "stalls.test") {
    bide::http_client::stalled_lookups().wait();
    return EAI_NONAME;
  }
  return system_lookup(asked.ends_with(".here.test") ? "127.0.0.1" : name, service, hints, found);
}

namespace bide::http_client {
namespace {

// Blocks until the answer is there.
HttpAnswer ask(HttpClient& client, HttpRequest request) {
  std::promise<HttpAnswer> answer;
  client.send(std::move(request), [&](HttpAnswer got) { answer.set_value(std::move(got)); });
  return answer.get_future().get();
}

// With a deadline that must pass, but not before so much of the answer has come: the first may have been too short for
// a busy machine, then the next is longer.
HttpAnswer ask_in_vain(HttpClient& client, const HttpRequest& request, const std::string& body = {}) {
  HttpAnswer answer;
  for (Milliseconds within = 50ms; within < 60s && (!answer.sent || answer.body != body); within *= 2) {
    HttpRequest next = request;
    next.answer_within = within;
    answer = ask(client, std::move(next));
  }
  return answer;
}

TEST(HttpClient, SendsARequestAndGivesTheAnswer) {
  TestServer server([](const std::string&) {
    return TestServer::answer("hello", "201 Created", "X-Thing: One\r\nx-thing: two\r\n");
  });
  HttpClient client;
  const HttpAnswer answer = ask(client, {.method = "POST",
                                         .url = server.url("/v1/jobs?a=b"),
                                         .fields = {{"X-Name", "value"}, {"X-Empty", ""}},
                                         .body = "a body"});
  EXPECT_EQ(answer.failure, HttpFailure::kNone) << answer.error;
  EXPECT_EQ(answer.status, 201);
  EXPECT_TRUE(answer.ok());
  EXPECT_TRUE(answer.sent);
  EXPECT_EQ(answer.body, "hello");
  EXPECT_EQ(answer.field("x-thing"), "One");
  EXPECT_EQ(answer.address, "127.0.0.1");
  const std::string request = server.request(0);
  EXPECT_TRUE(request.starts_with("POST /v1/jobs?a=b HTTP/1.1\r\n")) << request;
  EXPECT_NE(request.find("\r\nX-Name: value\r\n"), std::string::npos) << request;
  EXPECT_NE(request.find("\r\nX-Empty:\r\n"), std::string::npos) << request;
  EXPECT_NE(request.find("\r\nUser-Agent: bide/"), std::string::npos) << request;
  EXPECT_EQ(request.find("Content-Type"), std::string::npos) << request;
  EXPECT_TRUE(request.ends_with("\r\n\r\na body")) << request;
}

TEST(HttpClient, AnAnswerOfAnyStatusIsAnAnswer) {
  TestServer server([](const std::string&) { return TestServer::answer("no", "503 Unavailable"); });
  HttpClient client;
  const HttpAnswer answer = ask(client, {.url = server.url()});
  EXPECT_EQ(answer.failure, HttpFailure::kNone);
  EXPECT_EQ(answer.status, 503);
  EXPECT_FALSE(answer.ok());
}

TEST(HttpClient, EveryMethodHasItsOwnBodyOrNone) {
  TestServer server([](const std::string& request) {
    return request.starts_with("HEAD") ? "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" : TestServer::answer("");
  });
  HttpClient client;
  for (const std::string method : {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}) {
    const HttpAnswer answer = ask(client, {.method = method, .url = server.url("/" + method)});
    EXPECT_EQ(answer.status, 200) << method << ": " << answer.error;
    EXPECT_TRUE(server.request(server.requests() - 1).starts_with(method + " /" + method + " "));
  }
  EXPECT_TRUE(ask(client, {.method = "DELETE", .url = server.url(), .body = "{}"}).ok());
  EXPECT_TRUE(server.request(server.requests() - 1).ends_with("\r\n\r\n{}"));
}

TEST(HttpClient, UsesAConnectionAgain) {
  TestServer server([](const std::string&) { return TestServer::answer("x"); });
  HttpClient client;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(ask(client, {.url = server.url()}).ok());
  EXPECT_EQ(server.connections(), 1u);
}

TEST(HttpClient, ARequestOnAConnectionThatDiedMeanwhileIsSentOnANewOne) {
  std::atomic<int> number = 0;
  TestServer server([&](const std::string&) { return number++ == 1 ? std::string() : TestServer::answer("x"); });
  HttpClient client;
  EXPECT_TRUE(ask(client, {.url = server.url()}).ok());
  EXPECT_TRUE(ask(client, {.url = server.url()}).ok());
  EXPECT_EQ(server.requests(), 3u);
}

TEST(HttpClient, ALongBodyGoesWholeAndWithoutAskingFirst) {
  TestServer server([](const std::string& request) {
    return TestServer::answer(std::to_string(request.size() - request.find("\r\n\r\n") - 4));
  });
  HttpClient client;
  const HttpAnswer answer = ask(client, {.method = "POST", .url = server.url(), .body = std::string(5'000'000, 'x')});
  EXPECT_EQ(answer.body, "5000000") << answer.error;
  EXPECT_EQ(server.request(0).find("Expect"), std::string::npos);
}

TEST(HttpClient, NeverFollowsARedirect) {
  TestServer server([](const std::string&) {
    return TestServer::answer("", "302 Found", "Location: http://127.0.0.1:1/secret\r\n");
  });
  HttpClient client;
  const HttpAnswer answer = ask(client, {.url = server.url()});
  EXPECT_EQ(answer.status, 302);
  EXPECT_EQ(answer.field("location"), "http://127.0.0.1:1/secret");
  EXPECT_EQ(server.requests(), 1u);
}

TEST(HttpClient, DoesNotLookForAProxyInTheEnvironment) {
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
  TestServer server([](const std::string&) { return TestServer::answer("direct"); });
  HttpClient client;
  EXPECT_EQ(ask(client, {.url = server.url()}).body, "direct");
  unsetenv("http_proxy");
  unsetenv("ALL_PROXY");
}

TEST(HttpClient, AnAnswerThatIsTooLongIsCut) {
  TestServer server([](const std::string&) { return TestServer::answer(std::string(100'000, 'x')); });
  HttpClient client;
  const HttpAnswer answer = ask(client, {.url = server.url(), .answer_limit = 1000});
  EXPECT_EQ(answer.failure, HttpFailure::kTooLarge);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body.size(), 1000u);
  EXPECT_TRUE(ask(client, {.url = server.url(), .answer_limit = 100'000}).ok());
}

TEST(HttpClient, AHeaderWithoutEndIsGivenUp) {
  TestServer server([](const std::string&) {
    std::string fields;
    for (int i = 0; i < 2000; ++i) fields += "X-" + std::to_string(i) + ": " + std::string(80, 'x') + "\r\n";
    return TestServer::answer("x", "200 OK", fields);
  });
  HttpClient client;
  EXPECT_EQ(ask(client, {.url = server.url()}).failure, HttpFailure::kBroken);
}

TEST(HttpClient, AServerThatSaysNothingTimesOut) {
  TestServer server([&server](const std::string&) {
    server.hold();
    return TestServer::answer("late");
  });
  HttpClient client;
  const HttpAnswer answer = ask_in_vain(client, {.url = server.url()});
  EXPECT_EQ(answer.failure, HttpFailure::kTimedOut) << answer.error;
  EXPECT_TRUE(answer.sent);
}

TEST(HttpClient, AServerThatDripsTimesOutAllTheSame) {
  TestServer server([](const std::string&) { return "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this"; });
  HttpClient client;
  const HttpAnswer answer = ask_in_vain(client, {.url = server.url()}, "only this");
  EXPECT_EQ(answer.failure, HttpFailure::kTimedOut);
  EXPECT_EQ(answer.body, "only this");
}

TEST(HttpClient, TellsWhatWentWrong) {
  TestServer server([](const std::string& request) {
    if (request.starts_with("GET /short"))
      return std::string("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nabc");
    if (request.starts_with("GET /noise")) return std::string("SSH-2.0-OpenSSH_9.2\r\n");
    return std::string();
  });
  std::uint16_t closed_port = 0;
  {
    closed_port = TestServer([](const std::string&) { return std::string(); }).port();
  }
  HttpClient client;
  const HttpAnswer refused = ask(client, {.url = "http://127.0.0.1:" + std::to_string(closed_port) + "/?token=secret"});
  EXPECT_EQ(refused.failure, HttpFailure::kNotConnected) << refused.error;
  EXPECT_FALSE(refused.sent);
  EXPECT_EQ(refused.error.find("secret"), std::string::npos) << refused.error;
  EXPECT_EQ(ask(client, {.url = "http://does-not-exist.invalid/"}).failure, HttpFailure::kNotResolved);
  EXPECT_EQ(ask(client, {.url = "ftp://127.0.0.1/"}).failure, HttpFailure::kInvalid);
  EXPECT_EQ(ask(client, {.url = server.url("/silent")}).failure, HttpFailure::kBroken);
  EXPECT_EQ(ask(client, {.url = server.url("/noise")}).failure, HttpFailure::kBroken);
  HttpRequest short_one{.url = server.url("/short"), .answer_within = 200ms};
  EXPECT_NE(ask(client, std::move(short_one)).failure, HttpFailure::kNone);
}

TEST(HttpClient, AnAnswerThatIsCutAnywhereIsNoAnswer) {
  const std::string whole = TestServer::answer("hello");
  TestServer server(
      [&](const std::string& request) { return whole.substr(0, std::stoul(request.substr(request.find('/') + 1))); },
      {}, true);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    HttpClient client;
    const HttpAnswer answer = ask(client, {.url = server.url("/" + std::to_string(size))});
    EXPECT_EQ(answer.failure, HttpFailure::kBroken)
        << size << " bytes: " << to_string(answer.failure) << ", status " << answer.status;
  }
}

TEST(HttpClient, EveryAddressIsCheckedBeforeItIsConnectedTo) {
  TestServer server([](const std::string&) { return TestServer::answer("x"); });
  std::vector<std::string> seen;
  HttpClient client({.address_check = [&](std::string_view host, const HttpAddress& address) -> Status {
    seen.push_back(std::string(host) + " " + address.to_string());
    return Error{ErrorCode::kPermissionDenied, "loopback is private"};
  }});
  const std::string port = std::to_string(server.port());
  for (const std::string host : {"127.0.0.1", "127.1", "2130706433", "0x7f.1", "localhost", "[::ffff:127.0.0.1]"}) {
    const HttpAnswer answer = ask(client, {.url = "http://" + host + ":" + port + "/"});
    EXPECT_EQ(answer.failure, HttpFailure::kAddressRefused) << host << ": " << answer.error;
    EXPECT_EQ(answer.error, "loopback is private") << host;
    EXPECT_FALSE(answer.sent);
  }
  const HttpAnswer pinned = ask(client, {.url = "http://example.org:" + port + "/", .pinned_address = "127.0.0.1"});
  EXPECT_EQ(pinned.failure, HttpFailure::kAddressRefused) << pinned.error;
  ASSERT_EQ(seen.size(), 7u);
  EXPECT_EQ(seen[1], "127.0.0.1 127.0.0.1:" + port);
  EXPECT_EQ(seen[5], "::ffff:127.0.0.1 [::ffff:127.0.0.1]:" + port);
  EXPECT_EQ(seen[6], "example.org 127.0.0.1:" + port);
  EXPECT_EQ(server.connections(), 0u);
}

TEST(HttpClient, APinnedAddressTakesThePlaceOfTheLookup) {
  TestServer server([](const std::string&) { return TestServer::answer("x"); });
  HttpClient client;
  const HttpAnswer answer = ask(client, {.url = "http://does-not-exist.invalid:" + std::to_string(server.port()) + "/",
                                         .pinned_address = "127.0.0.1"});
  EXPECT_TRUE(answer.ok()) << answer.error;
  EXPECT_NE(server.request(0).find("\r\nHost: does-not-exist.invalid:"), std::string::npos);
}

TEST(HttpClient, SpeaksOverASocketOfTheMachineWithoutAskingAboutAddresses) {
  const support::TemporaryDirectory directory;
  const std::string path = directory.path() + "/server.sock";
  TestServer server([](const std::string&) { return TestServer::answer("local"); }, path);
  HttpClient client({.address_check = [](std::string_view, const HttpAddress&) -> Status {
    return Error{ErrorCode::kPermissionDenied, "no"};
  }});
  EXPECT_EQ(ask(client, {.url = "http://bide/x", .unix_socket = path}).body, "local");
}

TEST(HttpClient, NoMoreThanAllowedAreUnderWayForOneHost) {
  std::atomic<int> under_way = 0;
  std::atomic<int> most = 0;
  TestServer server([&](const std::string&) {
    most = std::max<int>(most, ++under_way);
    std::this_thread::yield();
    --under_way;
    return TestServer::answer("x");
  });
  HttpClient client({.max_per_host = 3});
  std::atomic<int> good = 0;
  std::promise<void> all;
  for (int i = 0; i < 100; ++i) {
    client.send({.url = server.url()}, [&](HttpAnswer answer) {
      if (answer.ok() && ++good == 100) all.set_value();
    });
  }
  all.get_future().wait();
  EXPECT_LE(most, 3);
  EXPECT_LE(server.connections(), 3u);
}

TEST(HttpClient, ALookupThatTakesForEverHoldsUpNobody) {
  TestServer server([](const std::string&) { return TestServer::answer("x"); });
  HttpClient client;
  // Its deadline passes while the system is still asked for the name.
  const HttpAnswer stalled = ask(client, {.url = "http://stalls.test/", .connect_within = 20ms, .answer_within = 20ms});
  EXPECT_NE(stalled.failure, HttpFailure::kNone);
  EXPECT_FALSE(stalled.sent);
  EXPECT_EQ(ask(client, {.url = server.url()}).body, "x");
  EXPECT_FALSE(stalled_lookups().released());
  stalled_lookups().release();
}

TEST(HttpClient, ManyNamesOfOneAddressTakeNoMorePlacesThanAllowed) {
  TestServer server([&server](const std::string& request) {
    if (request.starts_with("GET /slow")) server.hold();
    return TestServer::answer("x");
  });
  HttpClient client({.max_per_address = 2});
  const auto named = [&](const std::string& name, const std::string& path) {
    return HttpRequest{.url = "http://" + name + ".here.test" + server.url(path).substr(server.url("").rfind(':'))};
  };
  EXPECT_EQ(ask(client, named("a", "/")).body, "x");  // Its connection is kept, and used again below.
  std::promise<HttpAnswer> first;
  std::promise<HttpAnswer> second;
  client.send(named("b", "/slow"), [&](HttpAnswer answer) { first.set_value(std::move(answer)); });
  client.send(named("c", "/slow"), [&](HttpAnswer answer) { second.set_value(std::move(answer)); });
  server.wait_for_requests(3);
  for (const char* name : {"a", "d"}) {
    const HttpAnswer refused = ask(client, named(name, "/"));
    EXPECT_EQ(refused.failure, HttpFailure::kAddressBusy) << name;
    EXPECT_FALSE(refused.sent) << name;
  }
  server.release();
  EXPECT_TRUE(first.get_future().get().ok());
  EXPECT_TRUE(second.get_future().get().ok());
  EXPECT_EQ(ask(client, named("d", "/")).body, "x");
}

TEST(HttpClient, WaitingForItsTurnCountsAgainstTheDeadline) {
  TestServer server([&server](const std::string&) {
    server.hold();
    return TestServer::answer("x");
  });
  HttpClient client({.max_per_host = 1});
  std::promise<HttpAnswer> first;
  client.send({.url = server.url()}, [&](HttpAnswer answer) { first.set_value(std::move(answer)); });
  const HttpAnswer second = ask(client, {.url = server.url(), .answer_within = 20ms});
  EXPECT_EQ(second.failure, HttpFailure::kTimedOut);
  EXPECT_FALSE(second.sent);
  server.release();
  EXPECT_TRUE(first.get_future().get().ok());
}

TEST(HttpClient, ACancelledRequestCompletesAndMakesRoom) {
  TestServer server([&server](const std::string& request) {
    if (request.starts_with("GET /slow")) server.hold();
    return TestServer::answer("x");
  });
  HttpClient client({.max_per_host = 1});
  std::promise<HttpAnswer> slow;
  const HttpClient::Ticket ticket =
      client.send({.url = server.url("/slow")}, [&](HttpAnswer answer) { slow.set_value(std::move(answer)); });
  std::promise<HttpAnswer> waiting;
  const HttpClient::Ticket second =
      client.send({.url = server.url("/waiting")}, [&](HttpAnswer answer) { waiting.set_value(std::move(answer)); });
  server.wait_for_requests(1);
  client.cancel(second);
  const HttpAnswer never_sent = waiting.get_future().get();
  EXPECT_EQ(never_sent.failure, HttpFailure::kCancelled);
  EXPECT_FALSE(never_sent.sent);
  client.cancel(ticket);
  const HttpAnswer cancelled = slow.get_future().get();
  EXPECT_EQ(cancelled.failure, HttpFailure::kCancelled);
  EXPECT_TRUE(cancelled.sent);
  EXPECT_TRUE(ask(client, {.url = server.url()}).ok());
  client.cancel(ticket);
  client.cancel(123456);
}

TEST(HttpClient, ACompletionMaySendAnother) {
  TestServer server([](const std::string&) { return TestServer::answer("x"); });
  HttpClient client;
  std::promise<void> all;
  std::function<void(int)> go = [&](int left) {
    client.send({.url = server.url()}, [&, left](HttpAnswer) { left == 0 ? all.set_value() : go(left - 1); });
  };
  go(50);
  all.get_future().wait();
  EXPECT_EQ(server.requests(), 51u);
}

TEST(HttpClient, TheEndOfTheClientCompletesEverything) {
  TestServer server([&server](const std::string&) {
    server.hold();
    return TestServer::answer("x");
  });
  std::atomic<int> cancelled = 0;
  {
    HttpClient client({.max_per_host = 2});
    for (int i = 0; i < 10; ++i) {
      client.send({.url = server.url()}, [&](HttpAnswer answer) {
        if (answer.failure != HttpFailure::kCancelled) return;
        ++cancelled;
        client.send({.url = server.url()},
                    [&](HttpAnswer again) { cancelled += again.failure == HttpFailure::kCancelled; });
      });
    }
    server.wait_for_requests(2);
  }
  EXPECT_EQ(cancelled, 20);
}

TEST(HttpClient, ManyThreadsShareOneClient) {
  TestServer server(
      [](const std::string& request) { return TestServer::answer(request.substr(5, request.find(' ', 5) - 5)); });
  HttpClient client({.max_per_host = 8});
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string name = std::to_string(t * 1000 + i);
        right += ask(client, {.url = server.url("/" + name)}).body == name;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
}

}  // namespace
}  // namespace bide::http_client
