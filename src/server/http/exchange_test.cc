#include "server/http/exchange.h"

#include <gtest/gtest.h>

#include <utility>

namespace bide::server {
namespace {

struct Bench {
  int woken = 0;
  std::shared_ptr<Exchange> exchange = std::make_shared<Exchange>([this] { ++woken; }, 10);
  Reply reply{exchange};
};

TEST(Exchange, WakesTheConnectionOnlyWhenItWaits) {
  Bench at_once;
  at_once.reply.send({.status = 201});
  EXPECT_EQ(at_once.woken, 0);
  EXPECT_EQ(at_once.exchange->take_answer()->response.status, 201);

  Bench later;
  EXPECT_FALSE(later.exchange->take_answer());
  later.reply.send({.status = 202});
  EXPECT_EQ(later.woken, 1);
  EXPECT_EQ(later.exchange->take_answer()->response.status, 202);
}

TEST(Exchange, AnswersForAReplyThatWasForgotten) {
  Bench bench;
  { const Reply forgotten = std::move(bench.reply); }
  EXPECT_EQ(bench.exchange->take_answer()->response.status, 500);
}

TEST(Exchange, TakesTheFirstAnswerOnly) {
  Bench bench;
  bench.exchange->send({.status = 200});
  bench.exchange->send({.status = 500});
  EXPECT_EQ(bench.exchange->take_answer()->response.status, 200);
  EXPECT_FALSE(bench.exchange->take_answer());
}

TEST(Exchange, TellsOnceThatTheClientIsGone) {
  Bench bench;
  int gone = 0;
  bench.reply.on_gone([&] { ++gone; });
  bench.exchange->client_is_gone();
  bench.exchange->client_is_gone();
  EXPECT_EQ(gone, 1);
  bench.reply.on_gone([&] { ++gone; });
  EXPECT_EQ(gone, 2) << "also those who ask later";
}

TEST(Exchange, DoesNotTellThoseWhoHaveAnswered) {
  Bench bench;
  int gone = 0;
  bench.reply.on_gone([&] { ++gone; });
  bench.reply.send({});
  bench.exchange->client_is_gone();
  EXPECT_EQ(gone, 0);
}

TEST(Exchange, CarriesAStreamInParts) {
  Bench bench;
  auto stream = bench.reply.stream({.content_type = "text/event-stream"});
  EXPECT_TRUE(bench.exchange->take_answer()->is_stream);
  EXPECT_TRUE(stream->write("one"));
  EXPECT_TRUE(stream->write("two"));
  EXPECT_EQ(bench.exchange->take_part().bytes, "onetwo");
  EXPECT_EQ(bench.exchange->take_part().bytes, "");
  EXPECT_EQ(bench.woken, 0);
  EXPECT_TRUE(stream->write("three"));
  EXPECT_EQ(bench.woken, 1);
  EXPECT_EQ(bench.exchange->take_part().bytes, "three");
  bench.exchange->take_part();
  stream.reset();
  EXPECT_EQ(bench.woken, 2);
  EXPECT_TRUE(bench.exchange->take_part().ended);
}

TEST(Exchange, GivesUpAStreamWhoseClientDoesNotRead) {
  Bench bench;
  auto stream = bench.reply.stream({});
  EXPECT_TRUE(stream->write("12345678"));
  EXPECT_FALSE(stream->write("too much"));
  EXPECT_TRUE(bench.exchange->take_part().overflowed);
  EXPECT_FALSE(stream->write("a"));

  Bench gone;
  auto other = gone.reply.stream({});
  gone.exchange->client_is_gone();
  EXPECT_FALSE(other->write("a"));
}

}  // namespace
}  // namespace bide::server
