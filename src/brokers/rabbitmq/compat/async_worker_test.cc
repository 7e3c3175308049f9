#include "brokers/rabbitmq/compat/async_worker.h"

#include <gtest/gtest.h>

#include "brokers/rabbitmq/compat/compat_test_bytes.h"

namespace bide::brokers::rabbitmq::compat {
namespace {

using namespace std::chrono_literals;

// {:job-name :job-1 :args {:hello :world} :current-iteration 0 :retry-max 5 :retry-timeout-ms 1000}
const std::string kSample =
    "4e50590070056a086a6f622d6e616d656a056a6f622d316a046172677370016a0568656c6c6f6a05776f726c646a1163757272656e742d6974"
    "65726174696f6e006a0972657472792d6d617864056a1072657472792d74696d656f75742d6d736503e8";

AsyncWorker dialect() { return AsyncWorker(AsyncWorkerOptions::parse({{"namespace", "my-app"}}).value()); }

AmqpMessage sample() {
  AmqpMessage message;
  message.content_type = "application/octet-stream";
  message.body = from_hex(kSample);
  return message;
}

ReceivedJob at_iteration(std::int64_t iteration) {
  AmqpMessage message = sample();
  message.body = with_iteration(parse_async_worker_message(message.body).value(), iteration);
  return dialect().receive(message, "my_app_instant_queue", "default").value();
}

TEST(AsyncWorker, MessageBecomesAJob) {
  const ReceivedJob job = dialect().receive(sample(), "my_app_instant_queue", "default").value();
  EXPECT_EQ(job.message.job.kind, "job-1");
  EXPECT_EQ(job.message.job.body, "{:hello :world}");
  EXPECT_EQ(job.message.job.content_type, "application/edn");
  EXPECT_EQ(job.message.job.retry.max_attempts, 6u);
  EXPECT_EQ(at_iteration(3).message.counts.failed, 3u);
}

TEST(AsyncWorker, JobIsPublishedByteForByte) {
  Job job;
  job.kind = "job-1";
  job.body = "{:hello :world}";
  const Result<Send> send = dialect().enqueue(job, Time());
  ASSERT_TRUE(send) << send.error().message;
  EXPECT_EQ(to_hex(send->message.body), kSample);
  EXPECT_EQ(send->exchange, "my_app_exchange");
  EXPECT_EQ(send->key, "my_app_instant_queue");
  EXPECT_EQ(send->message.content_type, "application/octet-stream");
  EXPECT_TRUE(send->message.persistent);
}

TEST(AsyncWorker, EnqueueNeedsEveryDelayQueueOfItsSchedule) {
  Job job;
  job.kind = "job-1";
  job.retry = RetryPolicy::exponential(500ms, 2.0, 1h, 4);
  const Send send = dialect().enqueue(job, Time()).value();
  std::vector<std::string> names;
  for (const QueueSpec& queue : send.needs.queues) names.push_back(queue.name);
  EXPECT_EQ(names, (std::vector<std::string>{"my_app_delay_queue_500_ms", "my_app_delay_queue_1000_ms",
                                             "my_app_delay_queue_2000_ms"}));
  job.retry = RetryPolicy::none();
  EXPECT_TRUE(dialect().enqueue(job, Time())->needs.queues.empty());
}

TEST(AsyncWorker, NamespacesOfNamesBecomeColonsAndBack) {
  Job job;
  job.kind = "my.app:send";
  const Send send = dialect().enqueue(job, Time()).value();
  EXPECT_EQ(parse_async_worker_message(send.message.body)->job_name, "my.app/send");
  EXPECT_EQ(dialect().receive(send.message, "", "default")->message.job.kind, "my.app:send");
}

TEST(AsyncWorker, BodyIsEdnOrBytesOrNippyByItsType) {
  Job job;
  job.kind = "k";
  const auto back = [&] {
    return dialect().receive(dialect().enqueue(job, Time()).value().message, "", "default")->message.job.body;
  };
  job.body = "";
  EXPECT_EQ(back(), "nil");
  job.body = "x y";
  job.content_type = "text/plain";
  EXPECT_EQ(back(), "\"x y\"");
  job.content_type = "application/octet-stream";
  EXPECT_EQ(back(), "#bide/bytes \"782079\"");
  job.content_type = "application/edn";
  EXPECT_FALSE(dialect().enqueue(job, Time())) << "two values";
  job.content_type = "image/png";
  EXPECT_FALSE(dialect().enqueue(job, Time()));
  job.content_type = "application/x-nippy";
  EXPECT_FALSE(dialect().enqueue(job, Time()));
  job.body = from_hex("4e5059006405");
  EXPECT_EQ(back(), "5");
}

TEST(AsyncWorker, PolicyIsCarriedWhereItCanBe) {
  Job job;
  job.kind = "k";
  const auto message = [&] { return parse_async_worker_message(dialect().enqueue(job, Time())->message.body).value(); };
  EXPECT_EQ(message().retry_max, 5);
  job.retry = RetryPolicy::exponential(2s, 2.0, 1h, 4);
  EXPECT_EQ(message().retry_max, 3);
  EXPECT_EQ(message().retry_timeout_ms, 2000);
  job.retry = RetryPolicy::none();
  EXPECT_EQ(message().retry_max, 0);
  for (const RetryPolicy& other : {RetryPolicy::fixed(1s), RetryPolicy::steps({1s}), RetryPolicy::exponential(1s, 3.0),
                                   RetryPolicy::exponential(1s, 2.0, 2s, 10)}) {
    job.retry = other;
    EXPECT_EQ(dialect().enqueue(job, Time()).error().code, ErrorCode::kUnsupported) << other.to_string();
  }
}

TEST(AsyncWorker, FailedAttemptWaitsInTheQueueOfItsOldIteration) {
  const Send send = *dialect().retry(at_iteration(2), RetryAt{.after = 1s}, Time()).value();
  EXPECT_EQ(send.exchange, "my_app_exchange");
  EXPECT_EQ(send.key, "my_app_delay_queue_4000_ms");
  EXPECT_EQ(parse_async_worker_message(send.message.body)->current_iteration, 3);
  ASSERT_EQ(send.needs.queues.size(), 1u);
  EXPECT_EQ(send.needs.queues[0].arguments, (FieldTable{{"x-message-ttl", 4000},
                                                        {"x-dead-letter-exchange", "my_app_exchange"},
                                                        {"x-dead-letter-routing-key", "my_app_instant_queue"}}));
  EXPECT_EQ(send.needs.bindings.at(0).key, send.key);
}

TEST(AsyncWorker, DeadJobIsUnchangedAndReplayedAsTheOriginalOrAnew) {
  const ReceivedJob job = at_iteration(5);
  const Send dead = dialect().bury(job, Dead{.error = "why"}, Time(Milliseconds(1234)));
  EXPECT_EQ(dead.key, "my_app_dead_letter_queue");
  EXPECT_EQ(dead.message.body, job.original->message.body);
  const JobInfo info = dialect().dead_info(dead.message, dead.key, "my_app");
  EXPECT_EQ(info.attempts, 6u);
  EXPECT_EQ(info.history.at(0).text, "why");
  EXPECT_EQ(info.finished, Time(Milliseconds(1234)));
  const Send kept = dialect().replay(dead.message, dead.key, "my_app", {.keep_attempts = true}).value();
  EXPECT_EQ(kept.key, "my_app_instant_queue");
  EXPECT_EQ(kept.message.body, job.original->message.body);
  const Send fresh = dialect().replay(dead.message, dead.key, "my_app", {}).value();
  EXPECT_EQ(fresh.message.body, from_hex(kSample));
  EXPECT_TRUE(fresh.message.headers.empty());
}

TEST(AsyncWorker, UnreadableMessageGoesToTheDeadUnchanged) {
  AmqpMessage message;
  message.body = "no Nippy";
  EXPECT_FALSE(dialect().receive(message, "", "default"));
  const Send send = dialect().send_unreadable(message, "", "default", "why");
  EXPECT_EQ(send.key, "my_app_dead_letter_queue");
  EXPECT_EQ(send.message.body, "no Nippy");
  EXPECT_EQ(dialect().dead_info(send.message, "", "my_app").job.kind, "unreadable");
  EXPECT_FALSE(dialect().replay(send.message, "", "my_app", {}));
  EXPECT_TRUE(dialect().replay(send.message, "", "my_app", {.keep_attempts = true}));
}

TEST(AsyncWorker, WrongOptionsAreRefused) {
  EXPECT_FALSE(AsyncWorkerOptions::parse({}));
  EXPECT_FALSE(AsyncWorkerOptions::parse({{"namespace", "MyApp"}}));
  EXPECT_FALSE(AsyncWorkerOptions::parse({{"namespace", "a"}, {"retry_max", "x"}}));
  EXPECT_FALSE(AsyncWorkerOptions::parse({{"namespace", "a"}, {"exchange", "x"}}));
  EXPECT_FALSE(dialect().check_queue("other"));
  EXPECT_TRUE(dialect().check_queue("my_app"));
}

}  // namespace
}  // namespace bide::brokers::rabbitmq::compat
