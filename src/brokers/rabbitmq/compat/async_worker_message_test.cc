#include "brokers/rabbitmq/compat/async_worker_message.h"

#include <gtest/gtest.h>

#include "brokers/rabbitmq/compat/compat_test_bytes.h"
#include "brokers/rabbitmq/compat/edn.h"
#include "brokers/rabbitmq/compat/nippy.h"

namespace bide::brokers::rabbitmq::compat {
namespace {

// {:job-name :job-1 :args {:hello :world} :current-iteration 0 :retry-max 5 :retry-timeout-ms 1000}, as published.
const std::string kSample =
    "4e5059007005"
    "6a086a6f622d6e616d65"
    "6a056a6f622d31"
    "6a0461726773"
    "70016a0568656c6c6f6a05776f726c64"
    "6a1163757272656e742d697465726174696f6e"
    "00"
    "6a0972657472792d6d6178"
    "6405"
    "6a1072657472792d74696d656f75742d6d73"
    "6503e8";

std::string with(const std::string& from, const std::string& to) {
  std::string hex = kSample;
  return from_hex(hex.replace(hex.find(from), from.size(), to));
}

TEST(AsyncWorkerMessage, SampleIsUnderstood) {
  const Result<AsyncWorkerMessage> message = parse_async_worker_message(from_hex(kSample));
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_EQ(message->job_name, "job-1");
  ASSERT_TRUE(message->args);
  EXPECT_EQ(to_edn(*message->args), "{:hello :world}");
  EXPECT_EQ(message->current_iteration, 0);
  EXPECT_EQ(message->retry_max, 5);
  EXPECT_EQ(message->retry_timeout_ms, 1000);
}

TEST(AsyncWorkerMessage, SampleIsWrittenByteForByte) {
  const std::string args = freeze(parse_edn("{:hello :world}").value());
  EXPECT_EQ(to_hex(async_worker_body("job-1", args, 5, 1000)), kSample);
}

TEST(AsyncWorkerMessage, NextIterationChangesThatNumberOnly) {
  AsyncWorkerMessage message = parse_async_worker_message(from_hex(kSample)).value();
  EXPECT_EQ(with_iteration(message, 0), from_hex(kSample));
  EXPECT_EQ(with_iteration(message, 1), with("6e00", "6e6401"));
  EXPECT_EQ(with_iteration(message, 1000), with("6e00", "6e6503e8"));
  message = parse_async_worker_message(with_iteration(message, 1)).value();
  EXPECT_EQ(message.current_iteration, 1);
  EXPECT_EQ(with_iteration(message, 0), from_hex(kSample));
}

TEST(AsyncWorkerMessage, WaitsDouble) {
  AsyncWorkerMessage message;
  message.retry_timeout_ms = 1000;
  EXPECT_EQ(message.delay_ms(), 1000);
  message.current_iteration = 3;
  EXPECT_EQ(message.delay_ms(), 8000);
  message.current_iteration = 1'000'000;
  message.retry_timeout_ms = std::int64_t{1} << 60;
  EXPECT_GT(message.delay_ms(), 0) << "no overflow";
}

TEST(AsyncWorkerMessage, NumbersOfNewerVersionsAreUnderstood) {
  const AsyncWorkerMessage message = parse_async_worker_message(with("6503e8", "5883e8")).value();
  EXPECT_EQ(message.retry_timeout_ms, 1000);
}

TEST(AsyncWorkerMessage, LimitsMayBeNil) {
  const AsyncWorkerMessage message = parse_async_worker_message(with("6405", "03")).value();
  EXPECT_EQ(message.retry_max, std::nullopt);
  EXPECT_EQ(message.retries(), 0);
}

TEST(AsyncWorkerMessage, ArgumentsThatCannotBeReadAreKeptByteForByte) {
  // Type 81 is a custom one: nobody but its owner knows where it ends.
  const std::string unreadable =
      "51"
      "0102030405";
  const std::string body = with("70016a0568656c6c6f6a05776f726c64", unreadable);
  const Result<AsyncWorkerMessage> message = parse_async_worker_message(body);
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_FALSE(message->args);
  EXPECT_EQ(to_hex(message->args_nippy), "4e505900" + unreadable);
  EXPECT_EQ(message->retry_max, 5);
  const std::string next = with_iteration(*message, 1);
  EXPECT_EQ(parse_async_worker_message(next)->args_nippy, message->args_nippy);
  EXPECT_EQ(with_iteration(*parse_async_worker_message(next), 0), body);
}

TEST(AsyncWorkerMessage, WhatIsNoJobIsRefused) {
  EXPECT_FALSE(parse_async_worker_message("not Nippy"));
  EXPECT_FALSE(parse_async_worker_message(from_hex("4e50590003")));
  EXPECT_FALSE(parse_async_worker_message(from_hex(kSample + "03"))) << "something behind it";
  EXPECT_FALSE(parse_async_worker_message(with("6e00", "6e03"))) << "no current iteration";
  EXPECT_FALSE(parse_async_worker_message(with("6e00", "6e64ff"))) << "a negative one";
}

TEST(AsyncWorkerMessage, HostileBodiesNeverCrash) {
  Mutator mutator(3);
  int readable = 0;
  for (int i = 0; i < 100'000; ++i) {
    const Result<AsyncWorkerMessage> message = parse_async_worker_message(mutator.mutate(from_hex(kSample)));
    if (!message || !message->args) continue;
    ++readable;
    const Result<AsyncWorkerMessage> next = parse_async_worker_message(with_iteration(*message, 7));
    ASSERT_TRUE(next) << next.error().message;
    ASSERT_EQ(next->current_iteration, 7);
  }
  EXPECT_GT(readable, 0);
}

}  // namespace
}  // namespace bide::brokers::rabbitmq::compat
