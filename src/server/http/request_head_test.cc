#include "server/http/request_head.h"

#include <gtest/gtest.h>

#include <string>

namespace bide::server {
namespace {

const HttpLimits kLimits;

int status_of(const std::string& head) {
  const auto parsed = parse_head(head, kLimits);
  const auto* problem = std::get_if<wire::Problem>(&parsed);
  return problem == nullptr ? 0 : problem->status;
}

std::string with_fields(const std::string& fields) { return "POST /v1/jobs HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n"; }

TEST(RequestHead, LetsOrdinaryRequestsThrough) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: localhost:7070\r\n\r\n"), 0);
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n"), 0);
  EXPECT_EQ(status_of("GET /a?b=c HTTP/1.1\r\nhost: [::1]:7070\r\nAccept: */*\r\nX: \t a b \r\n\r\n"), 0);
  EXPECT_EQ(status_of(with_fields("Content-Length: 12\r\n")), 0);
  EXPECT_EQ(status_of(with_fields("Transfer-Encoding: chunked\r\n")), 0);
  EXPECT_EQ(status_of(with_fields("Transfer-Encoding: CHUNKED\r\n")), 0);
  EXPECT_EQ(status_of(with_fields("Accept: a\r\nAccept: b\r\n")), 0);
}

RequestHead parsed(const std::string& head) { return std::get<RequestHead>(parse_head(head, kLimits)); }

TEST(RequestHead, HasWhatTheRequestSays) {
  const RequestHead head = parsed("PATCH /a%20b?c=d HTTP/1.1\r\nHOST: a:1\r\nX-One: \t1 \r\nx-one:2\r\nCookie: a\r\nCookie: b\r\n\r\n");
  EXPECT_EQ(head.request.method, Method::kPatch);
  EXPECT_EQ(head.request.path, "/a%20b");
  EXPECT_EQ(head.request.query.at("c"), "d");
  EXPECT_EQ(head.request.field("host"), "a:1");
  EXPECT_EQ(head.request.field("x-one"), "1, 2");
  EXPECT_EQ(head.request.field("cookie"), "a; b");
  EXPECT_FALSE(head.is_http_1_0);
  EXPECT_EQ(parsed("get / HTTP/1.0\r\n\r\n").request.method, Method::kOther) << "case counts";
  EXPECT_EQ(parsed("other / HTTP/1.0\r\n\r\n").request.method, Method::kOther);
}

TEST(RequestHead, SaysHowTheBodyEnds) {
  EXPECT_FALSE(parsed(with_fields("")).has_body());
  EXPECT_FALSE(parsed(with_fields("Content-Length: 000\r\n")).has_body());
  EXPECT_EQ(parsed(with_fields("Content-Length: 0012\r\n")).content_length, 12u);
  EXPECT_TRUE(parsed(with_fields("Content-Length: 12\r\n")).has_body());
  EXPECT_TRUE(parsed(with_fields("Transfer-Encoding: Chunked\r\n")).is_chunked);
  EXPECT_EQ(parsed(with_fields("Content-Length: 999999999999999999\r\n")).content_length, 999'999'999'999'999'999u);
}

TEST(RequestHead, SaysWhetherTheConnectionStaysOpen) {
  EXPECT_TRUE(parsed(with_fields("Connection: upgrade, ,keep-alive\r\n")).keep_alive);
  EXPECT_FALSE(parsed(with_fields("Connection: a\r\nConnection: ,\tCLOSE ,\r\n")).keep_alive);
  EXPECT_TRUE(parsed("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keep_alive);
  EXPECT_EQ(status_of(with_fields("Connection: a b\r\n")), 400);
  EXPECT_EQ(status_of(with_fields("Connection: \"close\"\r\n")), 400);
}

TEST(RequestHead, WantsTheNameOfAHost) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost:\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: \t \r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\nHost: \r\n\r\n"), 400);
}

TEST(RequestHead, RefusesFramingThatCanBeReadInTwoWays) {
  for (const char* fields : {
           "Content-Length: 1\r\nContent-Length: 1\r\n",
           "Content-Length: 1\r\nContent-Length: 2\r\n",
           "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: identity\r\n",
           "Transfer-Encoding: gzip, chunked\r\n",
           "Transfer-Encoding: chunked, identity\r\n",
           "Transfer-Encoding: xchunked\r\n",
           "Transfer-Encoding: chunkedd\r\n",
           "Host:\r\n",
           "Transfer-Encoding: \"chunked\"\r\n",
           "Transfer-Encoding:\r\n",
           "Transfer-Encoding : chunked\r\n",
           "Content-Length: +1\r\n",
           "Content-Length: -1\r\n",
           "Content-Length: 0x10\r\n",
           "Content-Length: 1 1\r\n",
           "Content-Length: 1,1\r\n",
           "Content-Length:\r\n",
           "Host: b\r\n",
           "X: a\r\n folded\r\n",
           "X: a\r\n\tfolded\r\n",
           " X: a\r\n",
           "X\r\n",
           ": a\r\n",
           "X Y: a\r\n",
           "X: a\nY: b\r\n",
           "X: a\rY: b\r\n",
           "X: a\x01\r\n",
           "X: a\x7f\r\n",
       }) {
    EXPECT_EQ(status_of(with_fields(fields)), 400) << fields;
  }
  EXPECT_EQ(status_of(with_fields(std::string("X: a\0b\r\n", 8))), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400) << "no Host";
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), 400);
}

TEST(RequestHead, RefusesWhatIsNoRequestLine) {
  for (const char* line : {"GET", "GET /", "GET  HTTP/1.1", "G\x01T / HTTP/1.1", "GET / HTTP/1.1 ", "GET /\t HTTP/1.1",
                           "GET /a b HTTP/1.1", "GET / http/1.1", "GET / HTTP/11", "(GET) / HTTP/1.1", "GET /\x80 HTTP/1.1"}) {
    EXPECT_EQ(status_of(std::string(line) + "\r\nHost: a\r\n\r\n"), 400) << line;
  }
  EXPECT_EQ(status_of("PRI * HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET / HTTP/1.2\r\nHost: a\r\n\r\n"), 505);
}

TEST(RequestHead, KeepsToItsLimits) {
  const auto target_of = [](std::size_t bytes) {
    return "GET /" + std::string(bytes - 1, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n";
  };
  EXPECT_EQ(status_of(target_of(kLimits.target_bytes)), 0);
  EXPECT_EQ(status_of(target_of(kLimits.target_bytes + 1)), 414);
  std::string fields;
  for (std::size_t i = 1; i < kLimits.fields; ++i) fields += "X: a\r\n";
  EXPECT_EQ(status_of(with_fields(fields)), 0);
  EXPECT_EQ(status_of(with_fields(fields + "X: a\r\n")), 431);
  EXPECT_EQ(status_of(with_fields("X: " + std::string(kLimits.head_bytes, 'a') + "\r\n")), 431);
  EXPECT_EQ(status_of(with_fields("Content-Length: 9999999999999999999999\r\n")), 413);
}

TEST(RequestHead, DoesNotWaitForTheEndOfWhatCannotBecomeARequest) {
  EXPECT_EQ(check_partial_head("\x16\x03\x01", 0, kLimits)->code, "tls_on_plain_port");
  EXPECT_EQ(check_partial_head("\x80", 0, kLimits)->status, 400);
  EXPECT_EQ(check_partial_head("GET / HTTP/1.1\n", 0, kLimits)->status, 400);
  EXPECT_EQ(check_partial_head("GET " + std::string(kLimits.target_bytes + 100, 'a'), 0, kLimits)->status, 414);
  EXPECT_EQ(check_partial_head("GET / HTTP/1.1\r\nX: " + std::string(kLimits.head_bytes, 'a'), 0, kLimits)->status, 431);
  EXPECT_FALSE(check_partial_head("GET / HTTP/1.1\r", 0, kLimits));
  EXPECT_FALSE(check_partial_head("", 0, kLimits));
  EXPECT_EQ(check_partial_head("GET / HTTP/1.1\rX", 15, kLimits)->status, 400) << "the CR was the last byte seen";
}

}  // namespace
}  // namespace bide::server
