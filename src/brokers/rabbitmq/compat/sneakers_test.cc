#include "brokers/rabbitmq/compat/sneakers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "brokers/rabbitmq/compat/json_text.h"
#include "core/text.h"

namespace bide::brokers::rabbitmq::compat {
namespace {

using namespace std::chrono_literals;

const Time kNow = Time(Milliseconds(1'700'000'000'123));

Sneakers sneakers(const std::vector<std::pair<std::string, std::string>>& options = {}) {
  return Sneakers(SneakersOptions::parse(options).value());
}

Field death(const std::string& queue, int count) {
  return FieldTable{{"count", count}, {"reason", "rejected"}, {"queue", queue}, {"routing-keys", FieldList{"mail"}}};
}

AmqpMessage message(FieldTable headers = {}) {
  AmqpMessage result;
  result.content_type = "application/json";
  result.headers = std::move(headers);
  result.body = "{\"to\":\"a\"}";
  return result;
}

ReceivedJob received(const Sneakers& dialect, FieldTable headers = {}) {
  return dialect.receive(message(std::move(headers)), "mail", "mail").value();
}

TEST(Sneakers, FailuresAreTheSumOverTheQueuesOwnDeaths) {
  EXPECT_EQ(failures_of({}, "mail"), 0u);
  EXPECT_EQ(failures_of({{"x-death", FieldList{death("mail-retry", 3), death("mail", 3)}}}, "mail"), 3u);
  EXPECT_EQ(failures_of({{"x-death", FieldList{death("mail", 2), death("mail", 1)}}}, "mail"), 3u);
  EXPECT_EQ(failures_of({{"x-death", FieldList{FieldTable{{"queue", "mail"}}, FieldTable{{"queue", "mail"}}}}}, "mail"),
            2u)
      << "old servers do not count";
  EXPECT_EQ(failures_of({{"x-death", "nonsense"}}, "mail"), 0u);
  EXPECT_EQ(failures_of({{"x-death", FieldList{death("mail", -5)}}}, "mail"), 0u);
}

TEST(Sneakers, MessageBecomesAJobAsItIs) {
  const ReceivedJob job = received(sneakers(), {{"trace", "t"}, {"n", 3}, {"x-death", FieldList{death("mail", 2)}}});
  EXPECT_EQ(job.message.job.kind, "mail");
  EXPECT_EQ(job.message.job.queue, "mail");
  EXPECT_EQ(job.message.job.body, "{\"to\":\"a\"}");
  EXPECT_EQ(job.message.job.content_type, "application/json");
  EXPECT_EQ(job.message.job.headers, (Headers{{"trace", "t"}, {"n", "3"}}));
  EXPECT_EQ(job.message.counts.failed, 2u);
  EXPECT_EQ(job.message.job.retry, RetryPolicy::fixed(60s, 6));
  EXPECT_EQ(received(sneakers({{"kind", "send"}})).message.job.kind, "send");
}

TEST(Sneakers, TopologyIsTheOneOfTheMaxretryHandler) {
  const Topology topology = sneakers({{"retry_timeout", "5000"}, {"exchange", "jobs"}}).topology("mail");
  ASSERT_EQ(topology.exchanges.size(), 4u);
  EXPECT_EQ(topology.exchanges[0].name, "jobs");
  EXPECT_EQ(topology.exchanges[0].type, "direct");
  EXPECT_EQ(topology.exchanges[1].type, "topic");
  ASSERT_EQ(topology.queues.size(), 3u);
  EXPECT_EQ(topology.queues[0].arguments, (FieldTable{{"x-dead-letter-exchange", "mail-retry"}}));
  EXPECT_EQ(topology.queues[1].name, "mail-retry");
  EXPECT_EQ(topology.queues[1].arguments,
            (FieldTable{{"x-dead-letter-exchange", "mail-retry-requeue"}, {"x-message-ttl", 5000}}));
  EXPECT_EQ(topology.queues[2].name, "mail-error");
}

TEST(Sneakers, ExchangesMayHaveOtherNamesAndNeedNotBeDurable) {
  const Sneakers dialect = sneakers({{"retry_exchange", "again"},
                                     {"retry_error_exchange", "failed"},
                                     {"retry_requeue_exchange", "back"},
                                     {"retry_routing_key", "mail"},
                                     {"durable", "no"}});
  const Topology topology = dialect.topology("mail");
  EXPECT_EQ(topology.exchanges[1].name, "again");
  EXPECT_FALSE(topology.exchanges[1].durable);
  EXPECT_EQ(topology.queues[0].arguments,
            (FieldTable{{"x-dead-letter-exchange", "again"}, {"x-dead-letter-routing-key", "mail"}}));
  EXPECT_FALSE(topology.queues[0].durable);
  EXPECT_EQ(topology.queues[1].name, "again");
  EXPECT_EQ(topology.bindings.back().source, "back");
  EXPECT_EQ(topology.bindings.back().key, "mail");
  EXPECT_EQ(dialect.dead_queue("mail"), "failed");
  EXPECT_EQ(dialect.bury(received(dialect), Dead{}, kNow).exchange, "failed");
}

TEST(Sneakers, APolicyOfTheJobsOwnIsRefusedAndAPriorityIsCarried) {
  Job job;
  job.kind = job.queue = "mail";
  job.priority = 7;
  EXPECT_EQ(sneakers().enqueue(job, kNow)->message.priority, 7);
  job.priority = -1;
  EXPECT_EQ(sneakers().enqueue(job, kNow).error().code, ErrorCode::kUnsupported);
  job.priority = 0;
  EXPECT_EQ(sneakers().enqueue(job, kNow)->message.priority, std::nullopt);
  job.retry = RetryPolicy::steps({10s});
  EXPECT_EQ(sneakers().enqueue(job, kNow).error().code, ErrorCode::kUnsupported);
  EXPECT_TRUE(sneakers({{"steps", "10s"}}).enqueue(job, kNow)) << "it is that of the queue";
}

TEST(Sneakers, FailedAttemptIsARejectedMessage) {
  const Sneakers dialect = sneakers();
  const Result<std::optional<Send>> departure = dialect.retry(received(dialect), RetryAt{.after = 60s}, kNow);
  ASSERT_TRUE(departure);
  EXPECT_FALSE(*departure);
  EXPECT_FALSE(dialect.retry(received(dialect), RetryAt{.body = "new"}, kNow)) << "a rejected message keeps its body";
}

TEST(Sneakers, WithStepsACopyWaitsAndGoesOnCounting) {
  const Sneakers dialect = sneakers({{"steps", "10s,100s"}});
  const ReceivedJob job = received(
      dialect,
      {{"trace", "t"}, {"x-death", FieldList{death("bide.delay.1.2", 1), death("mail", 1)}}, {"CC", FieldList{"k"}}});
  EXPECT_EQ(job.message.job.retry, RetryPolicy::steps({10s, 100s}));
  const Result<std::optional<Send>> departure = dialect.retry(job, RetryAt{.after = 100s, .body = "new"}, kNow);
  ASSERT_TRUE(departure && *departure);
  const Send& send = **departure;
  EXPECT_EQ(send.key, "mail");
  EXPECT_EQ(send.delay, 100s);
  EXPECT_EQ(send.message.body, "new");
  EXPECT_EQ(failures_of(send.message.headers, "mail"), 2u);
  EXPECT_EQ(find_field(send.message.headers, "CC"), nullptr);
  ASSERT_EQ(find_field(send.message.headers, "x-death")->list()->size(), 1u) << "only the queue's own";
  EXPECT_EQ(find_field(send.message.headers, "trace")->text()[0], "t");
  // It comes back with the key of a delay queue, and must not keep that.
  EXPECT_EQ(dialect.receive(send.message, "3>2.1", "mail")->original->key, "mail");
}

TEST(Sneakers, ErrorRecordIsThatOfVersion212) {
  const Sneakers dialect = sneakers();
  const ReceivedJob job = received(dialect, {{"x-death", FieldList{death("mail", 5)}}, {"trace", "t"}});
  const Send send = dialect.bury(job, Dead{.reason = DeadReason::kExhausted, .error = "no \"route\""}, kNow);
  EXPECT_EQ(send.exchange, "mail-error");
  EXPECT_EQ(send.key, "mail");
  EXPECT_EQ(send.message.body, job.original->message.body);
  const std::string* info = find_field(send.message.headers, "retry_info")->text();
  ASSERT_NE(info, nullptr);
  EXPECT_TRUE(is_json(*info)) << *info;
  EXPECT_TRUE(info->starts_with(R"({"error":"no \"route\"","num_attempts":6,"failed_at":"2023-11-14T22:13:20Z",)"
                                R"("properties":{"content_type":"application/json","headers":{"x-death":[)"))
      << *info;
  EXPECT_TRUE(info->ends_with(R"("error_class":"Bide::Failed","error_message":"no \"route\"","backtrace":[]})"))
      << *info;
}

TEST(Sneakers, OldErrorRecordsFollowTheNewOne) {
  const Sneakers dialect = sneakers();
  const auto info = [&](const char* old) {
    const Send send = dialect.bury(received(dialect, {{"retry_info", old}}), Dead{.error = "e"}, kNow);
    EXPECT_EQ(std::count_if(send.message.headers.begin(), send.message.headers.end(),
                            [](const auto& entry) { return entry.first == "retry_info"; }),
              1);
    const std::string text = *find_field(send.message.headers, "retry_info")->text();
    EXPECT_TRUE(is_json(text)) << text;
    EXPECT_EQ(json_member(text, "error"), "e");
    EXPECT_EQ(text.find("retry_info"), std::string::npos) << "not nested";
    return text;
  };
  EXPECT_TRUE(info(R"({"error":"old"})").ends_with(R"(,{"error":"old"}])"));
  EXPECT_TRUE(info(R"( [{"error":"b"},{"error":"a"}])").ends_with(R"(,{"error":"b"},{"error":"a"}])"));
  EXPECT_TRUE(info("[ ]").ends_with("}]") || info("[ ]").ends_with("} ]"));
  EXPECT_TRUE(info("broken").ends_with(R"(,{"error":"Failed to parse retry info"}])"));
}

TEST(Sneakers, ErrorRecordOfVersion211IsTheBody) {
  const Sneakers dialect = sneakers({{"error_format", "2.11"}});
  const Send send = dialect.bury(received(dialect), Dead{.error = "e"}, kNow);
  EXPECT_EQ(json_member(send.message.body, "payload"), core::to_base64("{\"to\":\"a\"}"));
  const JobInfo info = dialect.dead_info(send.message, "mail", "mail");
  EXPECT_EQ(info.job.body, "{\"to\":\"a\"}");
  EXPECT_EQ(info.history.at(0).text, "e");
  EXPECT_EQ(dialect.replay(send.message, "mail", "mail", {})->message.body, "{\"to\":\"a\"}");
}

TEST(Sneakers, DeadJobIsShownAndReplayedToItsQueue) {
  const Sneakers dialect = sneakers();
  const Send send = dialect.bury(received(dialect, {{"x-death", FieldList{death("mail", 5)}}, {"trace", "t"}}),
                                 Dead{.error = "why"}, kNow);
  const JobInfo info = dialect.dead_info(send.message, "mail", "mail");
  EXPECT_EQ(info.attempts, 6u);
  EXPECT_EQ(info.history.at(0).text, "why");
  EXPECT_EQ(info.finished, std::chrono::floor<std::chrono::seconds>(kNow));
  const Result<Send> replayed = dialect.replay(send.message, "mail", "mail", {});
  ASSERT_TRUE(replayed);
  EXPECT_EQ(replayed->exchange, "");
  EXPECT_EQ(replayed->key, "mail");
  const ReceivedJob again = dialect.receive(replayed->message, "mail", "mail").value();
  EXPECT_EQ(again.message.counts.failed, 0u);
  EXPECT_EQ(again.message.job.body, "{\"to\":\"a\"}");
  EXPECT_FALSE(dialect.replay(send.message, "mail", "mail", {.keep_attempts = true}));
}

TEST(Sneakers, WhatRubyPutIntoTheErrorQueueIsReplayedAsItWas) {
  // As Kicks publishes it: the body as it was, everything else in the record.
  AmqpMessage message;
  message.content_type = "application/octet-stream";
  message.body = "{}";
  message.headers = {{"retry_info",
                      R"([{"error":"e","num_attempts":6,"properties":{"content_type":"application/json","headers":)"
                      R"({"trace":"t","tries":3,"x-death":[{"count":5}]},"delivery_mode":2,"message_id":"m-1"}}])"}};
  const AmqpMessage replayed = sneakers().replay(message, "mail", "mail", {})->message;
  EXPECT_EQ(replayed.content_type, "application/json");
  EXPECT_EQ(replayed.message_id, "m-1");
  EXPECT_EQ(replayed.body, "{}");
  ASSERT_NE(find_field(replayed.headers, "trace"), nullptr);
  EXPECT_EQ(*find_field(replayed.headers, "trace"), Field("t"));
  EXPECT_EQ(*find_field(replayed.headers, "tries"), Field(3));
  EXPECT_EQ(find_field(replayed.headers, "x-death"), nullptr);

  AmqpMessage old;
  old.body = R"({"error":"e","payload":")" + core::to_base64("body") + R"(","properties":")" +
             core::to_base64(R"({"content_type":"text/plain","message_id":"m-2"})") + R"("})";
  const AmqpMessage replayed_old = sneakers().replay(old, "mail", "mail", {})->message;
  EXPECT_EQ(replayed_old.content_type, "text/plain");
  EXPECT_EQ(replayed_old.message_id, "m-2");
  EXPECT_EQ(replayed_old.body, "body");
}

TEST(Sneakers, JobIsPublishedAsSneakersWould) {
  const Sneakers dialect = sneakers();
  Job job;
  job.id = JobId::parse("01020304-0506-7708-890a-0b0c0d0e0f10").value();
  job.kind = "send";
  job.queue = "mail";
  job.body = "bytes";
  job.headers = {{"trace", "t"}};
  const Result<Send> send = dialect.enqueue(job, kNow);
  ASSERT_TRUE(send) << send.error().message;
  EXPECT_EQ(send->exchange, "sneakers");
  EXPECT_EQ(send->key, "mail");
  EXPECT_EQ(send->message.body, "bytes");
  EXPECT_TRUE(send->message.persistent);
  EXPECT_EQ(send->message.content_type, "application/octet-stream");
  EXPECT_EQ(dialect.receive(send->message, "mail", "mail")->message.job.kind, "send");
  job.headers = {{"x-death", "forged"}};
  EXPECT_EQ(dialect.enqueue(job, kNow).error().code, ErrorCode::kInvalidArgument);
}

TEST(Sneakers, WrongOptionsAreRefusedByName) {
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"retry_max_times", "-1"},
                                                                                    {"retry_timeout", "soon"},
                                                                                    {"steps", "10"},
                                                                                    {"error_format", "3"},
                                                                                    {"kind", "a b"},
                                                                                    {"exchange", ""},
                                                                                    {"namespace", "x"}}) {
    const Result<SneakersOptions> options = SneakersOptions::parse({{name, value}});
    ASSERT_FALSE(options) << name;
    EXPECT_TRUE(options.error().message.starts_with(name + ": ")) << options.error().message;
  }
}

}  // namespace
}  // namespace bide::brokers::rabbitmq::compat
