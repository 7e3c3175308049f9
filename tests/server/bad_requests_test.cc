// Requests that nobody should send: each has its clear answer, the connection is closed where its framing is not
// certain any more, and the server goes on.

#include "server/http_fixture.h"

namespace bide::server_tests {
namespace {

struct Row {
  const char* name;
  std::string bytes;
  int status;
  const char* code;
  bool closes = true;
};

std::string chunked(const std::string& rest) {
  return "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + rest;
}
std::string with(const std::string& fields) { return "POST /echo HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n"; }

std::vector<Row> rows() {
  std::string many;
  for (int i = 0; i < 101; ++i) many += "X-" + std::to_string(i) + ": a\r\n";
  return {
      // Smuggling: what two programs could read in two ways.
      {"length and chunked", with("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n", 400, "ambiguous_framing"},
      {"chunked and length", with("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n") + "0\r\n\r\n", 400, "ambiguous_framing"},
      {"two equal lengths", with("Content-Length: 5\r\nContent-Length: 5\r\n") + "hello", 400, "ambiguous_framing"},
      {"two lengths", with("Content-Length: 5\r\nContent-Length: 6\r\n") + "hello", 400, "ambiguous_framing"},
      {"a list of lengths", with("Content-Length: 5, 5\r\n") + "hello", 400, "ambiguous_framing"},
      {"a signed length", with("Content-Length: +5\r\n") + "hello", 400, "ambiguous_framing"},
      {"identity", with("Transfer-Encoding: identity\r\n"), 400, "ambiguous_framing"},
      {"chunked is not last", with("Transfer-Encoding: chunked, identity\r\n"), 400, "ambiguous_framing"},
      {"chunked twice", with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400, "ambiguous_framing"},
      {"a space before the colon", with("Transfer-Encoding : chunked\r\n"), 400, "malformed_request"},
      {"chunked in HTTP/1.0", "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "ambiguous_framing"},
      {"two hosts", "GET /hello HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400, "ambiguous_framing"},
      {"no host", "GET /hello HTTP/1.1\r\n\r\n", 400, "malformed_request"},
      {"a folded field", with("X: a\r\n b\r\n"), 400, "malformed_request"},
      {"a bare line feed", "GET /hello HTTP/1.1\nHost: localhost\n\n", 400, "malformed_request"},
      {"a bare carriage return", with("X: a\rb\r\n"), 400, "malformed_request"},
      {"NUL in a field", with(std::string("X: a\0b\r\n", 8)), 400, "malformed_request"},
      {"trailers", chunked("0\r\nX: a\r\n\r\n"), 400, "trailers_refused"},
      {"trailers of 70 KB", chunked("0\r\nX: " + std::string(70'000, 'a') + "\r\n\r\n"), 400, "trailers_refused"},
      {"a chunk extension of 20 MB", chunked("5;a=" + std::string(20'000'000, 'a') + "\r\nhello\r\n0\r\n\r\n"), 400,
       "malformed_request"},
      {"a chunk size that is none", chunked("five\r\nhello\r\n0\r\n\r\n"), 400, "malformed_request"},
      {"a chunk that is longer than it says", chunked("5\r\nhello!\r\n0\r\n\r\n"), 400, "malformed_request"},
      {"a chunk size that overflows", chunked("ffffffffffffffffff\r\n"), 400, "malformed_request"},
      // Not HTTP at all.
      {"TLS", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), 400, "tls_on_plain_port"},
      {"garbage", std::string("\x00\xff\xfe\r\n\r\n", 7), 400, "malformed_request"},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "version_not_supported"},
      {"HTTP/0.9", "GET /hello\r\n\r\n", 400, "malformed_request"},
      {"no path", "GET hello HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "invalid_target"},
      {"an escape that is none", get("/hello%zz"), 400, "invalid_target"},
      {"NUL in the path", get("/hello%00"), 400, "invalid_target"},
      {"a parameter twice", get("/hello?bytes=1&bytes=2"), 400, "duplicate_parameter"},
      // Limits.
      {"a long target", get("/" + std::string(8'192, 'a')), 414, "uri_too_long"},
      {"a target without end", "GET /" + std::string(100'000, 'a'), 414, "uri_too_long"},
      {"a large head", get("/hello", "X: " + std::string(16'384, 'a') + "\r\n"), 431, "header_too_large"},
      {"101 fields and Host", get("/hello", many), 431, "header_too_large"},
      {"one byte too many", with("Content-Length: 100001\r\n"), 413, "body_too_large"},
      {"a huge length", with("Content-Length: 999999999999999999\r\n"), 413, "body_too_large"},
      {"a length beyond all numbers", with("Content-Length: 99999999999999999999999\r\n"), 413, "body_too_large"},
      {"a huge chunk", chunked("7fffffff\r\n"), 413, "body_too_large"},
      {"chunks that grow past it", chunked("186a0\r\n" + std::string(100'000, 'a') + "\r\n1\r\na\r\n0\r\n\r\n"), 413, "body_too_large"},
      // What is understood and refused; the connection goes on.
      {"a wrong path", get("/helo"), 404, "no_such_route", false},
      {"a wrong method", post("/hello", "x"), 405, "method_not_allowed", false},
      {"a method nobody knows", "BREW /hello HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "method_not_allowed", false},
      {"no token", get("/secret"), 401, "unauthorized", false},
      {"a bad token and a body", post("/secret", "hello", "Authorization: Bearer bad\r\n"), 401, "unauthorized", false},
      {"another site's page", post("/echo", "x", "Sec-Fetch-Site: cross-site\r\n"), 403, "cross_site", false},
      {"another site's older browser", post("/echo", "x", "Origin: http://evil.example.com\r\n"), 403, "cross_site", false},
      {"a name that is not ours", "GET /hello HTTP/1.1\r\nHost: evil.example.com\r\n\r\n", 403, "host_not_allowed", false},
      {"an unknown coding", post("/echo", "x", "Content-Encoding: br\r\n"), 415, "unsupported_media_type", false},
      {"an unknown expectation", post("/echo", "x", "Expect: a-pony\r\n"), 417, "expectation_failed", false},
      {"a foreign host in the target", "GET http://evil.example.com/hello HTTP/1.1\r\nHost: localhost\r\n\r\n", 403,
       "host_not_allowed", false},
      {"an empty host", "GET /hello HTTP/1.1\r\nHost:\r\n\r\n", 400, "malformed_request"},
      {"gzip that is none", post("/echo", "hello", "Content-Encoding: gzip\r\n"), 400, "invalid_gzip"},
  };
}

using BadRequests = HttpFixture;

TEST_F(BadRequests, HaveAClearAnswerAndTheServerGoesOn) {
  HttpOptions options;
  options.service.limits.body_bytes = 100'000;
  start(std::move(options));
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    RawClient client(port_);
    client.send(row.bytes);
    const RawAnswer answer = client.receive();
    EXPECT_EQ(answer.status, row.status) << answer.body;
    EXPECT_EQ(answer.fields.at("content-type"), "application/problem+json");
    EXPECT_NE(answer.body.find("\"code\":\"" + std::string(row.code) + "\""), std::string::npos) << answer.body;
    EXPECT_EQ(answer.body.find('\n'), std::string::npos) << "one line";
    EXPECT_EQ(answer.fields.contains("connection"), row.closes);
    if (row.closes) {
      client.end();
      EXPECT_EQ(client.receive_rest(), "") << "nothing after it is taken for a request";
    } else {
      EXPECT_EQ(client.ask(get("/hello")).status, 200) << "the connection goes on";
    }
    expect_alive();
  }
}

TEST_F(BadRequests, AreTheSameWhenTheyComeAByteAtATime) {
  HttpOptions options;
  options.service.limits.body_bytes = 100'000;
  start(std::move(options));
  for (const Row& row : rows()) {
    if (row.bytes.size() > 300) continue;
    SCOPED_TRACE(row.name);
    RawClient client(port_);
    for (const char byte : row.bytes) client.send({&byte, 1});
    EXPECT_EQ(client.receive().status, row.status);
  }
  expect_alive();
}

TEST_F(BadRequests, SayWhatWasMeant) {
  start();
  RawClient client(port_);
  EXPECT_NE(client.ask(get("/helo")).body.find("did you mean '/hello'?"), std::string::npos);
  EXPECT_EQ(client.ask(post("/hello", "")).fields.at("allow"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(client.ask(get("/secret")).fields.at("www-authenticate"), "Bearer realm=\"bide\"");
}

TEST_F(BadRequests, DoNotMakeTheServerReadABodyThatItRefused) {
  HttpOptions options;
  options.service.limits.body_bytes = 1'000'000'000;
  start(std::move(options));
  // Announced and never sent: the answer comes at once.
  RawClient client(port_);
  const RawAnswer answer = client.ask("POST /secret HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000000\r\n\r\n");
  EXPECT_EQ(answer.status, 401);
  EXPECT_EQ(answer.fields.at("connection"), "close");
  RawClient polite(port_);
  EXPECT_EQ(polite.ask(with("Content-Length: 5\r\nExpect: 100-continue\r\nContent-Encoding: br\r\n")).status, 415);
}

TEST_F(BadRequests, OfManyAtOnceLeaveNothingBehind) {
  start();
  const std::vector<Row> all = rows();
  for (int round = 0; round < 5; ++round) {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (const Row& row : all) {
      if (row.bytes.size() > 100'000) continue;
      clients.push_back(std::make_unique<RawClient>(port_));
      clients.back()->send(row.bytes);
    }
    for (auto& client : clients) client->slam();
  }
  expect_alive();
  server_->begin_drain();
  EXPECT_TRUE(server_->wait_drained(std::chrono::seconds(20)));
  EXPECT_EQ(server_->counts().connections, 0u);
  EXPECT_EQ(server_->counts().held_bytes, 0u);
}

}  // namespace
}  // namespace bide::server_tests
