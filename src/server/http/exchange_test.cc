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

struct CountedBench {
  std::shared_ptr<MemoryBudget> budget = std::make_shared<MemoryBudget>(1'600'000);  // Answers have 800 000 of it, large ones 700 000.
  MemoryCharge body{budget, Share::kRequests};
  std::shared_ptr<Exchange> exchange;

  CountedBench() {
    body.set(100'000);
    exchange = std::make_shared<Exchange>([] {}, 500'000, body.split(), MemoryCharge(budget, Share::kAnswers));
  }
};

TEST(Exchange, HoldsTheMemoryOfTheRequestUntilItIsAnsweredAlsoWhenTheClientIsGone) {
  CountedBench bench;
  bench.exchange->detach();
  EXPECT_EQ(bench.budget->held(), 100'000u);
  bench.exchange->send({.status = 200});
  EXPECT_EQ(bench.budget->held(), 0u);
}

TEST(Exchange, CountsAnAnswerForWhoeverHasIt) {
  CountedBench bench;
  bench.exchange->send({.body = std::string(50'000, 'a')});
  EXPECT_EQ(bench.budget->held(), 50'000u);
  {
    const auto answer = bench.exchange->take_answer();
    bench.exchange.reset();
    EXPECT_EQ(answer->charge.bytes(), 50'000u);
    EXPECT_EQ(bench.budget->held(), 50'000u);
  }
  EXPECT_EQ(bench.budget->held(), 0u);
}

TEST(Exchange, ReservesAnAnswerBeforeItIsMade) {
  CountedBench bench;
  Reply reply(bench.exchange);
  EXPECT_FALSE(reply.reserve(700'001));
  EXPECT_TRUE(reply.reserve(700'000));
  MemoryCharge other(bench.budget, Share::kAnswers);
  EXPECT_FALSE(other.set(300'000));
  reply.send({.body = std::string(300'000, 'a')});
  EXPECT_TRUE(other.set(400'000)) << "what was not needed is free again";
  EXPECT_EQ(bench.exchange->take_answer()->response.status, 200);
}

TEST(Exchange, SaysSoWhenThereIsNoRoomForTheAnswer) {
  CountedBench bench;
  MemoryCharge others(bench.budget, Share::kAnswers);
  ASSERT_TRUE(others.set(700'000));
  bench.exchange->send({.body = std::string(110'000, 'a')});
  EXPECT_EQ(bench.exchange->take_answer()->response.status, 504) << "it may have been carried out";
  EXPECT_EQ(bench.budget->held(), 700'000u);
  const auto reads = std::make_shared<Exchange>([] {}, 10, MemoryCharge(), MemoryCharge(bench.budget, Share::kAnswers), false);
  reads->send({.body = std::string(110'000, 'a')});
  EXPECT_EQ(reads->take_answer()->response.status, 503);
}

TEST(Exchange, CountsWhatIsWaitingOfAStream) {
  CountedBench bench;
  const auto stream = bench.exchange->stream({});
  EXPECT_TRUE(stream->write(std::string(50'000, 'a')));
  EXPECT_EQ(bench.budget->held(), 50'000u);
  {
    const Exchange::Part part = bench.exchange->take_part();
    EXPECT_EQ(part.charge.bytes(), 50'000u);
    EXPECT_TRUE(stream->write(std::string(10'000, 'a')));
    EXPECT_EQ(bench.budget->held(), 60'000u);
  }
  EXPECT_EQ(bench.budget->held(), 10'000u);
  MemoryCharge others(bench.budget, Share::kAnswers);
  ASSERT_TRUE(others.set(690'000));
  EXPECT_FALSE(stream->write(std::string(110'000, 'a')));
  EXPECT_TRUE(bench.exchange->take_part().overflowed);
  EXPECT_EQ(bench.budget->held(), 690'000u);
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
