#include "server/http/request_reader.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "server/http/content_coding.h"

namespace bide::server {
namespace {

using Step = RequestReader::Step;

constexpr std::uint64_t kMost = 1000;

struct Outcome {
  std::vector<Request> requests = {};
  wire::Problem problem = {};  // Status 400 and no code: none.
  bool is_busy = false;
};

// Fed in pieces of so many bytes.
Outcome read(std::string_view bytes, std::size_t piece, bool gzip = false) {
  const HttpLimits limits;
  RequestReader reader(limits);
  Outcome outcome;
  std::string copy;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    copy = std::string(bytes.substr(at, piece));
    for (Step step = reader.advance(copy); step != Step::kMore; step = reader.advance()) {
      // Between any two steps another connection may use the place where they came: whoever keeps a view is found out.
      copy.assign(copy.size(), '!');
      if (step == Step::kHead) reader.accept_body(kMost, gzip);
      if (step == Step::kWhole) outcome.requests.push_back(reader.take());
      if (step == Step::kRefused) {
        outcome.problem = reader.problem();
        return outcome;
      }
    }
  }
  outcome.is_busy = reader.is_busy();
  return outcome;
}

constexpr std::string_view kTwo =
    "POST /v1/jobs?dry=1 HTTP/1.1\r\nHost: a\r\nX-Trace: 1\r\nx-trace: 2\r\nContent-Length: 5\r\n\r\nhello"
    "\r\n"
    "PUT /v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    "GET /healthz HTTP/1.0\r\n\r\n";

TEST(RequestReader, ReadsRequestsOneAfterTheOtherInPiecesOfAnySize) {
  for (const std::size_t piece : {1u, 2u, 3u, 7u, 50u, 1000u}) {
    const Outcome outcome = read(kTwo, piece);
    ASSERT_EQ(outcome.requests.size(), 3u) << piece << outcome.problem.detail;
    EXPECT_FALSE(outcome.is_busy);
    const Request& first = outcome.requests[0];
    EXPECT_EQ(first.method, Method::kPost);
    EXPECT_EQ(first.path, "/v1/jobs");
    EXPECT_EQ(first.query.at("dry"), "1");
    EXPECT_EQ(first.field("x-trace"), "1, 2");
    EXPECT_EQ(first.body, "hello");
    EXPECT_EQ(outcome.requests[1].body, "hello world");
    EXPECT_EQ(outcome.requests[2].path, "/healthz");
  }
}

TEST(RequestReader, KnowsWhetherTheConnectionStaysOpen) {
  const HttpLimits limits;
  const auto keeps = [&](std::string_view head) {
    RequestReader reader(limits);
    EXPECT_EQ(reader.advance(head), Step::kHead);
    return reader.head().keep_alive;
  };
  EXPECT_TRUE(keeps("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

std::string chunked(std::string_view rest) {
  return "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(rest);
}

TEST(RequestReader, RefusesChunksThatAreNone) {
  for (const std::string& rest : {
           std::string("x\r\n"),
           std::string("-1\r\nhello\r\n"),
           std::string("5\r\nhelloX\r\n"),
           std::string("0\r\nX-Trailer: a\r\n\r\n"),
           "0\r\nX: " + std::string(70'000, 'a') + "\r\n\r\n",
           "5;" + std::string(300, 'a') + "\r\nhello\r\n0\r\n\r\n",
           "5;" + std::string(100'000, 'a'),
           std::string(100'000, '0'),
           std::string("fffffffffffffffff\r\n"),
       }) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{1000}, rest.size() + 100}) {
      if (piece == 1 && rest.size() > 1000) continue;
      const Outcome outcome = read(chunked(rest), piece);
      EXPECT_EQ(outcome.problem.status, 400) << rest.substr(0, 20);
      EXPECT_NE(outcome.problem.code, "") << rest.substr(0, 20);
      EXPECT_TRUE(outcome.requests.empty());
    }
  }
}

TEST(RequestReader, StopsABodyAtItsLimit) {
  const std::string exact(kMost, 'a');
  EXPECT_EQ(read("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + exact, 100).requests.size(), 1u);
  EXPECT_EQ(read("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n" + exact + "a", 100).problem.status, 413);
  EXPECT_EQ(read(chunked("3e8\r\n" + exact + "\r\n0\r\n\r\n"), 100).requests.size(), 1u);
  EXPECT_EQ(read(chunked("3e9\r\n"), 100).problem.status, 413) << "at once, before it comes";
  EXPECT_EQ(read(chunked("3e8\r\n" + exact + "\r\n1\r\na\r\n0\r\n\r\n"), 100).problem.status, 413);
}

TEST(RequestReader, CountsABodyAsItIsWithoutItsCoding) {
  const auto post = [](const std::string& body) {
    return "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  const Outcome good = read(post(gzip(std::string(kMost, 'a'))), 10, true);
  ASSERT_EQ(good.requests.size(), 1u);
  EXPECT_EQ(good.requests[0].body, std::string(kMost, 'a'));
  EXPECT_EQ(read(post(gzip(std::string(kMost + 1, 'a'))), 10, true).problem.status, 413);
  EXPECT_EQ(read(post("not gzip"), 10, true).problem.code, "invalid_gzip");
  const std::string whole = gzip("hello");
  EXPECT_EQ(read(post(whole.substr(0, whole.size() - 1)), 10, true).problem.code, "invalid_gzip");
}

TEST(RequestReader, ChargesABodyBeforeItGrows) {
  const HttpLimits limits;
  const auto budget = std::make_shared<MemoryBudget>(1'600'000);  // Anonymous callers have 100 000 of it.
  const std::string zipped = gzip(std::string(1'000'000, 'a'));
  RequestReader reader(limits);
  ASSERT_EQ(reader.advance("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(zipped.size()) + "\r\n\r\n"),
            Step::kHead);
  reader.accept_body(10'000'000, true, MemoryCharge(budget, Share::kAnonymous));
  Step step = reader.advance(zipped);
  while (step == Step::kYield) step = reader.advance();
  ASSERT_EQ(step, Step::kRefused);
  EXPECT_EQ(reader.problem().status, 503);
  EXPECT_LE(reader.request().body.capacity(), 100'000u);
}

TEST(RequestReader, ALargeBodyIsNotCopiedAsItGrows) {
  const HttpLimits limits;
  const auto budget = std::make_shared<MemoryBudget>(1'000'000'000);
  const std::string zipped = gzip(std::string(40'000'000, 'a'));
  RequestReader reader(limits);
  ASSERT_EQ(reader.advance("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(zipped.size()) + "\r\n\r\n"),
            Step::kHead);
  reader.accept_body(64'000'000, true, MemoryCharge(budget, Share::kRequests));
  const char* place = nullptr;
  Step step = Step::kYield;
  for (step = reader.advance(zipped); step == Step::kYield; step = reader.advance()) {
    const std::string& body = reader.request().body;
    if (body.size() < 4'000'000) continue;
    if (place == nullptr) place = body.data();
    ASSERT_EQ(body.data(), place) << body.size();
    ASSERT_GE(budget->held(), body.size());
    ASSERT_LE(budget->held(), 2 * body.size() + 100'000);
  }
  EXPECT_EQ(step, Step::kWhole);
  EXPECT_EQ(reader.request().body.size(), 40'000'000u);
}

TEST(RequestReader, GivesTheChargeAwayWithTheBody) {
  const HttpLimits limits;
  const auto budget = std::make_shared<MemoryBudget>(1'600'000);
  RequestReader reader(limits);
  ASSERT_EQ(reader.advance("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n" + std::string(20'000, 'a')), Step::kHead);
  reader.accept_body(100'000, false, MemoryCharge(budget, Share::kRequests));
  ASSERT_EQ(reader.advance(), Step::kMore);
  EXPECT_EQ(budget->held(), reader.request().body.capacity());
  ASSERT_EQ(reader.advance(std::string(30'000, 'a')), Step::kWhole);
  {
    const MemoryCharge charge = reader.charge().split();
    EXPECT_EQ(charge.bytes(), reader.request().body.capacity());
    EXPECT_EQ(reader.take().body.size(), 50'000u);
    EXPECT_EQ(budget->held(), charge.bytes());
  }
  EXPECT_EQ(budget->held(), 0u);
}

TEST(RequestReader, DropsABodyThatNobodyWants) {
  const HttpLimits limits;
  RequestReader reader(limits);
  ASSERT_EQ(reader.advance("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET"), Step::kHead);
  reader.drop_body(5);
  ASSERT_EQ(reader.advance(), Step::kWhole);
  EXPECT_EQ(reader.take().body, "");
  EXPECT_EQ(reader.waiting_bytes(), 3u);
}

TEST(RequestReader, KnowsWhoWaitsForLeaveToSendABody) {
  const HttpLimits limits;
  RequestReader reader(limits);
  ASSERT_EQ(reader.advance("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"), Step::kHead);
  EXPECT_TRUE(reader.wants_continue());
}

TEST(RequestReader, TakesTheHostOfAnAbsoluteTargetForTheOneThatCounts) {
  const Outcome outcome = read("GET http://evil.example.com/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000);
  ASSERT_EQ(outcome.requests.size(), 1u);
  EXPECT_EQ(outcome.requests[0].path, "/jobs");
  EXPECT_EQ(outcome.requests[0].field("host"), "evil.example.com");
}

TEST(RequestReader, DoesNotMindTheCaseOfACoding) {
  const Outcome outcome = read("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 7);
  ASSERT_EQ(outcome.requests.size(), 1u) << outcome.problem.detail;
  EXPECT_EQ(outcome.requests[0].body, "hello");
}

TEST(RequestReader, HoldsNothingOnceTheRequestIsTaken) {
  const HttpLimits limits;
  RequestReader reader(limits);
  ASSERT_EQ(reader.advance("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Step::kHead);
  EXPECT_TRUE(reader.is_busy());
  reader.accept_body(0, false);
  ASSERT_EQ(reader.advance(), Step::kWhole);
  reader.take();
  EXPECT_FALSE(reader.is_busy());
}

TEST(RequestReader, ACompressedBodyIsInflatedALittleAtATimeSoThatOthersHaveTheirTurn) {
  const std::string body(8 << 20, 'z');
  const std::string zipped = gzip(body);
  ASSERT_LT(zipped.size(), 64u << 10);
  char chunk[24];
  std::snprintf(chunk, sizeof chunk, "%zx\r\n", zipped.size());
  const std::vector<std::string> requests = {
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(zipped.size()) + "\r\n\r\n" + zipped,
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + (chunk + zipped) + "\r\n0\r\n\r\n"};
  const HttpLimits limits;
  RequestReader reader(limits);
  for (const std::string& request : requests) {
    ASSERT_EQ(reader.advance(request), Step::kHead);
    reader.accept_body(body.size(), true);
    std::size_t before = 0;
    int turns = 0;
    Step step = reader.advance();
    for (; step == Step::kYield; step = reader.advance()) {
      const std::size_t size = reader.request().body.size();
      EXPECT_LE(size - before, turns < 4 ? 256u << 10 : 40u << 10) << turns;  // How much comes of it is not known at first.
      before = size;
      ++turns;
    }
    ASSERT_EQ(step, Step::kWhole);
    EXPECT_GE(turns, 200);
    EXPECT_TRUE(reader.take().body == body);
  }
  EXPECT_FALSE(reader.is_busy());
}

}  // namespace
}  // namespace bide::server
