#include "brokers/rabbitmq/compat/comq.h"

#include <gtest/gtest.h>

namespace bide::brokers::rabbitmq::compat {
namespace {

using namespace std::chrono_literals;

const Time kComqNow = Time(Milliseconds(1'700'000'000'123));

Comq comq(const std::vector<std::pair<std::string, std::string>>& options = {}) {
  return Comq(ComqOptions::parse(options).value(), Names("bide"));
}

AmqpMessage request(FieldTable headers = {}) {
  AmqpMessage result;
  result.content_type = "application/json";
  result.correlation_id = "0123456789abcdef";
  result.reply_to = "sums..0011223344556677";
  result.persistent = false;
  result.headers = std::move(headers);
  result.body = "{\"a\":1}";
  return result;
}

Job job_for(const std::string& queue) {
  Job job;
  job.kind = "k";
  job.queue = queue;
  job.body = "{}";
  job.content_type = "application/json";
  return job;
}

TEST(Comq, MessageBecomesAJobAsItIs) {
  const ReceivedJob job = comq().receive(request({{"trace", "t"}, {"x-attempt", 2}}), "sums", "sums").value();
  EXPECT_EQ(job.message.job.kind, "sums");
  EXPECT_EQ(job.message.job.queue, "sums");
  EXPECT_EQ(job.message.job.body, "{\"a\":1}");
  EXPECT_EQ(job.message.job.content_type, "application/json");
  EXPECT_EQ(job.message.job.headers, (Headers{{"trace", "t"}}));
  EXPECT_EQ(job.message.counts.failed, 2u);
  EXPECT_EQ(job.message.job.retry.max_attempts, 6u);
}

TEST(Comq, KindIsThatOfTheUrlOrOfBidesOwnMessageOrTheQueueOrTheExchange) {
  EXPECT_EQ(comq({{"kind", "add"}}).receive(request(), "sums", "sums").value().message.job.kind, "add");
  EXPECT_EQ(comq().receive(request(), "", "orders..billing").value().message.job.kind, "orders");
  AmqpMessage own = request();
  own.app_id = "bide";
  own.type = "add";
  EXPECT_EQ(comq().receive(own, "sums", "sums").value().message.job.kind, "add");
  own.type = "no name";
  EXPECT_EQ(comq().receive(own, "sums", "sums").value().message.job.kind, "sums");
}

TEST(Comq, AttemptsThatAreNoNumbersCountAsNone) {
  for (const Field& odd : {Field("three"), Field(true), Field(FieldList{}), Field(-4), Field()}) {
    EXPECT_EQ(comq().receive(request({{"x-attempt", odd}}), "q", "q").value().message.counts.failed, 0u);
  }
  EXPECT_EQ(comq().receive(request({{"x-attempt", std::int64_t{1} << 60}}), "q", "q").value().message.counts.failed,
            RetryPolicy::kMaxAttemptsLimit);
}

TEST(Comq, AnswerGoesToTheReplyQueueInTheEncodingOfTheRequest) {
  const Comq dialect = comq();
  const Send plain = dialect.reply(dialect.receive(request(), "q", "q").value(), Done{.result = "3"}).value();
  EXPECT_EQ(plain.exchange, "");
  EXPECT_EQ(plain.key, "sums..0011223344556677");
  EXPECT_FALSE(plain.mandatory);
  EXPECT_FALSE(plain.message.persistent);
  EXPECT_EQ(plain.message.correlation_id, "0123456789abcdef");
  EXPECT_EQ(plain.message.content_type, "application/json");
  EXPECT_EQ(plain.message.body, "3");
  const auto answer = [&](const std::string& asked, Done done) {
    AmqpMessage message = request();
    message.content_type = asked;
    return dialect.reply(dialect.receive(message, "q", "q").value(), done).value().message;
  };
  EXPECT_EQ(answer("application/json", {}).body, "null") << "what a parser can read";
  EXPECT_EQ(answer("application/msgpack", {}).body, "\xc0");
  EXPECT_EQ(answer("text/plain", {}).body, "");
  EXPECT_EQ(answer("", {.result = "b"}).content_type, "application/octet-stream");
  EXPECT_EQ(answer("application/json", {.result = "t", .content_type = "text/plain"}).content_type, "text/plain");
}

TEST(Comq, TaskIsNotAnswered) {
  AmqpMessage task = request();
  task.reply_to.clear();
  EXPECT_FALSE(comq().reply(comq().receive(task, "q", "q").value(), Done{.result = "3"}));
}

TEST(Comq, FailedAttemptIsPublishedAgainToItsOwnQueueWithTheNumberRaised) {
  const ReceivedJob job = comq().receive(request({{"x-attempt", 2}, {"trace", "t"}}), "", "orders..billing").value();
  const Send send = *comq().retry(job, RetryAt{}, kComqNow).value();
  EXPECT_EQ(send.exchange, "") << "the other groups have had it";
  EXPECT_EQ(send.key, "orders..billing");
  EXPECT_EQ(send.message.headers, (FieldTable{{"trace", "t"}, {"x-attempt", 3}}));
  EXPECT_EQ(send.message.reply_to, "sums..0011223344556677");
  EXPECT_EQ(send.message.correlation_id, "0123456789abcdef");
  EXPECT_EQ(send.message.body, "{\"a\":1}");
}

TEST(Comq, CopyThatWaitsDoesNotExpireOnItsWay) {
  AmqpMessage message = request();
  message.expiration = "500";
  const ReceivedJob job = comq().receive(message, "q", "q").value();
  EXPECT_EQ((*comq().retry(job, RetryAt{}, kComqNow))->message.expiration, "500");
  const Send waits = **comq({{"steps", "10s"}}).retry(job, RetryAt{.after = 10s}, kComqNow);
  EXPECT_EQ(waits.delay, 10s);
  EXPECT_EQ(waits.message.expiration, "");
}

TEST(Comq, TopologyIsThatOfComq) {
  const Topology queue = comq().topology("sums");
  ASSERT_EQ(queue.queues.size(), 1u);
  EXPECT_EQ(queue.queues[0].name, "sums");
  EXPECT_TRUE(queue.queues[0].durable);
  EXPECT_EQ(queue.queues[0].arguments, FieldTable{});
  EXPECT_TRUE(queue.exchanges.empty());
  const Topology group = comq().topology("orders..billing");
  ASSERT_EQ(group.exchanges.size(), 1u);
  EXPECT_EQ(group.exchanges[0].name, "orders");
  EXPECT_EQ(group.exchanges[0].type, "fanout");
  EXPECT_TRUE(group.exchanges[0].durable);
  ASSERT_EQ(group.queues.size(), 1u);
  EXPECT_EQ(group.queues[0].name, "orders..billing");
  ASSERT_EQ(group.bindings.size(), 1u);
  EXPECT_EQ(group.bindings[0].key, "");
  EXPECT_TRUE(comq().topology("orders..").queues.empty());
}

TEST(Comq, EventsGoToTheExchangeAndTasksToTheQueue) {
  const Send event = comq().enqueue(job_for("orders.."), kComqNow).value();
  EXPECT_EQ(event.exchange, "orders");
  EXPECT_EQ(event.key, "");
  EXPECT_FALSE(event.mandatory);
  EXPECT_TRUE(event.message.persistent);
  const Send task = comq().enqueue(job_for("sums"), kComqNow).value();
  EXPECT_EQ(task.exchange, "");
  EXPECT_EQ(task.key, "sums");
  EXPECT_TRUE(task.mandatory);
  EXPECT_TRUE(task.message.persistent);
  EXPECT_EQ(task.message.content_type, "application/json");
  Job late = job_for("orders..");
  late.delay = 1s;
  EXPECT_EQ(comq().enqueue(late, kComqNow).error().code, ErrorCode::kUnsupported);
}

TEST(Comq, RequestExpiresOnTheServerWithItsDeadline) {
  Job job = job_for("sums");
  job.expires = kComqNow + 1500ms;
  EXPECT_EQ(comq().enqueue(job, kComqNow).error().code, ErrorCode::kUnsupported) << "no request";
  job.headers = {{"bide-request", "transient"}, {"trace", "t"}};
  job.retry = RetryPolicy::none();
  const Send send = comq().enqueue(job, kComqNow).value();
  EXPECT_EQ(send.key, "sums");
  EXPECT_EQ(send.message.expiration, "1500");
  EXPECT_FALSE(send.message.persistent);
  EXPECT_EQ(send.message.headers, (FieldTable{{"trace", "t"}}));
  job.queue = "orders..";
  EXPECT_EQ(comq().enqueue(job, kComqNow).error().code, ErrorCode::kUnsupported) << "who would answer?";
}

TEST(Comq, NobodyTakesFromAllGroupsAtOnce) {
  EXPECT_TRUE(comq().check_queue("orders..billing"));
  EXPECT_TRUE(comq().check_queue("sums"));
  const Status all = comq().check_queue("orders..");
  ASSERT_FALSE(all);
  EXPECT_NE(all.error().message.find("EXCHANGE..GROUP"), std::string::npos) << all.error().message;
}

TEST(Comq, DeadJobsThatAreKeptCanBeLookedAtAndReplayed) {
  EXPECT_TRUE(comq().rejects_dead());
  const Comq dialect = comq({{"dead", "keep"}});
  EXPECT_FALSE(dialect.rejects_dead());
  const ReceivedJob job = dialect.receive(request({{"x-attempt", 5}}), "sums", "sums").value();
  const Send dead = dialect.bury(job, Dead{.error = "why"}, kComqNow);
  EXPECT_EQ(dead.key, "bide.dead.comq.sums");
  ASSERT_EQ(dead.needs.queues.size(), 1u);
  EXPECT_EQ(dead.needs.queues[0].name, "bide.dead.comq.sums");
  EXPECT_TRUE(dead.message.persistent);
  const JobInfo info = dialect.dead_info(dead.message, dead.key, "sums");
  EXPECT_EQ(info.attempts, 6u);
  EXPECT_EQ(info.finished, kComqNow);
  ASSERT_EQ(info.history.size(), 1u);
  EXPECT_EQ(info.history[0].text, "why");
  EXPECT_EQ(info.job.body, "{\"a\":1}");
  const Send again = dialect.replay(dead.message, dead.key, "sums", {}).value();
  EXPECT_EQ(again.key, "sums");
  EXPECT_TRUE(again.message.headers.empty());
  const Send last = dialect.replay(dead.message, dead.key, "sums", {.keep_attempts = true}).value();
  EXPECT_EQ(last.message.headers, (FieldTable{{"x-attempt", 5}}));
}

TEST(Comq, UnknownOptionsAreNamed) {
  const auto wrong = [](const std::string& name, const std::string& value) {
    const Result<ComqOptions> options = ComqOptions::parse({{name, value}});
    return options ? std::string() : options.error().message;
  };
  EXPECT_NE(wrong("exchange", "x").find("steps, dead, kind and queues"), std::string::npos);
  EXPECT_NE(wrong("dead", "maybe").find("reject or keep"), std::string::npos);
  EXPECT_NE(wrong("kind", "no name").find("the name of a kind"), std::string::npos);
  EXPECT_EQ(wrong("steps", "10s,100s"), "");
}

}  // namespace
}  // namespace bide::brokers::rabbitmq::compat
