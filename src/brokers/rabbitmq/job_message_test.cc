#include "brokers/rabbitmq/job_message.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>

namespace bide::brokers::rabbitmq {
namespace {

const JobId kId = *JobId::parse("01900000-0000-7000-8000-000000000001");

JobMessage full() {
  JobMessage message;
  message.job.id = kId;
  message.job.kind = "resize:v2";
  message.job.queue = "images";
  message.job.body = std::string("\0\xff body", 7);
  message.job.content_type = "image/png";
  message.job.headers = {{"a", "1"}, {"b", ""}, {"a", "2"}};
  message.job.expires = Time(Milliseconds(1'900'000'000'000));
  message.job.time_limit = Milliseconds(4321);
  message.job.priority = -3;
  message.job.retry = RetryPolicy::steps({Milliseconds(10), Milliseconds(20)});
  message.generation = 1'700'000'000'000'001;
  message.published = 1'700'000'000'000'002;
  message.due = Time(Milliseconds(1'800'000'000'000));
  message.due_by_wall_clock = true;
  message.counts = {1, 2, 3, 4};
  message.history = {{1, Time(Milliseconds(5)), Fault::kTimedOut, "slow"},
                     {2, Time(Milliseconds(6)), Fault::kLost, ""}};
  message.token = 1'700'000'000'000'003;
  message.note = "no handler";
  message.running = true;
  message.dead = DeadReason::kExhausted;
  message.dead_at = 1'700'000'000'000'004;
  return message;
}

void expect_same(const JobMessage& a, const JobMessage& b) {
  EXPECT_EQ(a.job.id, b.job.id);
  EXPECT_EQ(a.job.kind, b.job.kind);
  EXPECT_EQ(a.job.queue, b.job.queue);
  EXPECT_EQ(a.job.body, b.job.body);
  EXPECT_EQ(a.job.content_type, b.job.content_type);
  EXPECT_EQ(a.job.headers, b.job.headers);
  EXPECT_EQ(a.job.expires, b.job.expires);
  EXPECT_EQ(a.job.time_limit, b.job.time_limit);
  EXPECT_EQ(a.job.priority, b.job.priority);
  EXPECT_EQ(a.job.retry, b.job.retry);
  EXPECT_EQ(a.generation, b.generation);
  EXPECT_EQ(a.published, b.published);
  EXPECT_EQ(a.due, b.due);
  EXPECT_EQ(a.due_by_wall_clock, b.due_by_wall_clock);
  EXPECT_EQ(a.counts, b.counts);
  EXPECT_EQ(a.history, b.history);
  EXPECT_EQ(a.token, b.token);
  EXPECT_EQ(a.note, b.note);
  EXPECT_EQ(a.running, b.running);
  EXPECT_EQ(a.dead, b.dead);
  EXPECT_EQ(a.dead_at, b.dead_at);
}

TEST(JobMessageTest, AServerThatObeysPrioritiesIsToldThem) {
  const auto priority_of = [](int priority) {
    JobMessage message;
    message.job.kind = "work";
    message.job.priority = priority;
    AmqpMessage encoded = encode(std::move(message));
    set_server_priority(encoded);
    return encoded.priority;
  };
  EXPECT_EQ(priority_of(0), std::nullopt) << "as messages of others";
  EXPECT_EQ(priority_of(100), 31);
  EXPECT_EQ(priority_of(-100), 0);
  AmqpMessage foreign;
  foreign.priority = 9;
  set_server_priority(foreign);
  EXPECT_EQ(foreign.priority, 9);
}

TEST(JobMessage, ReadsBackEverythingThatWasWritten) {
  const auto decoded = decode(encode(full()), "images");
  ASSERT_TRUE(decoded) << decoded.error().message;
  expect_same(*decoded, full());
}

TEST(JobMessage, WhatHasItsUsualValueTakesNoRoom) {
  JobMessage message;
  message.job.id = kId;
  message.job.kind = "work";
  message.generation = message.published = 17;
  const AmqpMessage encoded = encode(message);
  ASSERT_EQ(encoded.headers.size(), 1u);
  EXPECT_EQ(encoded.headers[0].first, "bide-generation");
  const auto decoded = decode(encoded, "default");
  ASSERT_TRUE(decoded);
  expect_same(*decoded, message);
}

TEST(JobMessage, MessageOfAStrangerIsAJobWhenItNamesItsKind) {
  AmqpMessage message;
  message.type = "work";
  message.body = "hello";
  const auto decoded = decode(message, "default");
  ASSERT_TRUE(decoded);
  EXPECT_TRUE(decoded->job.id.is_nil());
  EXPECT_EQ(decoded->job.kind, "work");
  EXPECT_EQ(decoded->job.body, "hello");
  EXPECT_EQ(decoded->job.retry, RetryPolicy());
}

TEST(JobMessage, WhatCannotBeReadIsRefusedWithTheReason) {
  const auto refusal = [](const std::function<void(AmqpMessage&)>& spoil) {
    AmqpMessage message = encode(full());
    spoil(message);
    const auto decoded = decode(message, "images");
    EXPECT_FALSE(decoded);
    return decoded ? "" : decoded.error().message;
  };
  const auto with = [](std::string_view name, Field value) {
    return [name, value](AmqpMessage& message) {
      std::erase_if(message.headers, [&](const auto& entry) { return entry.first == name; });
      message.headers.emplace_back(name, value);
    };
  };
  EXPECT_NE(refusal([](AmqpMessage& m) { m.type.clear(); }).find("missing"), std::string::npos);
  EXPECT_NE(refusal([](AmqpMessage& m) { m.type = "not a name\n"; }).find("'not a name\\n'"), std::string::npos);
  EXPECT_NE(refusal(with("bide-format", 2)).find("newer version"), std::string::npos);
  EXPECT_NE(refusal(with("bide-generation", "x")).find("bide-generation"), std::string::npos);
  EXPECT_NE(refusal(with("bide-due", std::int64_t{1} << 62)).find("bide-due"), std::string::npos);
  EXPECT_NE(refusal(with("bide-limit", 0)).find("bide-limit"), std::string::npos);
  EXPECT_NE(refusal(with("bide-priority", 1000)).find("bide-priority"), std::string::npos);
  EXPECT_NE(refusal(with("bide-retry", "sometimes")).find("bide-retry"), std::string::npos);
  EXPECT_NE(refusal(with("bide-headers", FieldList{"odd"})).find("bide-headers"), std::string::npos);
  EXPECT_NE(refusal(with("bide-counts", FieldList{1, 2})).find("bide-counts"), std::string::npos);
  EXPECT_NE(refusal(with("bide-history", FieldList{FieldList{1, 2, "failed"}})).find("bide-history"),
            std::string::npos);
  EXPECT_NE(refusal(with("bide-dead", "tired")).find("bide-dead"), std::string::npos);
}

Field any_field(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 7 : 5)) {
    case 0:
      return {};
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3:
      return *rc::gen::arbitrary<double>();
    case 4:
      return *rc::gen::arbitrary<std::string>();
    case 5: {
      FieldList list;
      for (int i = *rc::gen::inRange(0, 5); i > 0; --i) list.push_back(any_field(depth - 1));
      return list;
    }
    default: {
      FieldTable table;
      for (int i = *rc::gen::inRange(0, 3); i > 0; --i) table.emplace_back("k", any_field(depth - 1));
      return table;
    }
  }
}

RC_GTEST_PROP(JobMessage, HostileHeadersAreReadOrRefusedAndCanAlwaysBeBuriedAndShown, ()) {
  const std::vector<std::string> names = {"bide-generation", "bide-published",   "bide-due",    "bide-expires",
                                          "bide-limit",      "bide-priority",    "bide-retry",  "bide-headers",
                                          "bide-counts",     "bide-history",     "bide-token",  "bide-note",
                                          "bide-dead",       "bide-dead-at",     "bide-format", "bide-wall",
                                          "x-death",         "x-delivery-count", "CC",          "bide-unreadable"};
  AmqpMessage message = encode(full());
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) {
    message.headers.insert(message.headers.begin(),
                           {names[*rc::gen::inRange<std::size_t>(0, names.size())], any_field(2)});
  }
  if (*rc::gen::arbitrary<bool>()) message.type = *rc::gen::arbitrary<std::string>();
  if (*rc::gen::arbitrary<bool>()) message.message_id = *rc::gen::arbitrary<std::string>();
  (void)delivery_count(message);
  const auto decoded = decode(message, "q");
  if (decoded) RC_ASSERT(decode(encode(*decoded), "q").has_value());
  (void)dead_info(message, "q");
  const AmqpMessage buried = bury_unreadable(message, "q", "because", 1'700'000'000'000'000);
  const JobInfo info = dead_info(buried, "q");
  RC_ASSERT(info.job.kind == "unreadable");
  RC_ASSERT(info.job.body == message.body);
  RC_ASSERT(info.finished == Time(Milliseconds(1'700'000'000'000)));
  RC_ASSERT(info.job.id == dead_info(buried, "q").job.id);
}

TEST(JobMessage, WhatTheServerAddsOnTheWayIsTakenAway) {
  FieldTable headers = {{"CC", FieldList{"a"}},
                        {"x-death", FieldList{}},
                        {"x-first-death-queue", "q"},
                        {"x-first-death-reason", "expired"},
                        {"x-last-death-queue", "q"},
                        {"x-delivery-count", 3},
                        {"x-opt", "kept"},
                        {"bide-generation", 5}};
  strip_travel_headers(headers);
  EXPECT_EQ(headers, (FieldTable{{"x-opt", "kept"}, {"bide-generation", 5}}));
}

TEST(JobMessage, FaultsAreCountedApartAndTheNewestErrorsAreKept) {
  JobMessage message;
  for (std::uint32_t i = 0; i < Limits::kHistory + 3; ++i) {
    record_fault(message, i % 2 == 0 ? Fault::kFailed : Fault::kCrashed, std::string(5000, 'e'), Time(Milliseconds(i)));
  }
  EXPECT_EQ(message.counts.failed, 7u);
  EXPECT_EQ(message.counts.crashed, 6u);
  ASSERT_EQ(message.history.size(), Limits::kHistory);
  EXPECT_EQ(message.history.back().attempt, Limits::kHistory + 3);
  EXPECT_EQ(message.history.back().text.size(), Limits::kErrorBytes);
}

TEST(JobMessage, DeadJobIsShownWithItsReason) {
  const JobInfo info = dead_info(encode(full()), "images");
  EXPECT_EQ(info.job.id, kId);
  EXPECT_EQ(info.state, JobState::kDead);
  EXPECT_EQ(info.dead_reason, DeadReason::kExhausted);
  EXPECT_EQ(info.attempts, 10u);
  EXPECT_EQ(info.finished, Time(Milliseconds(1'700'000'000'000)));
  EXPECT_EQ(info.history.size(), 2u);
}

TEST(JobMessage, DeliveriesBeforeAreCounted) {
  AmqpMessage message;
  EXPECT_EQ(delivery_count(message), 0u);
  message.headers = {{"x-delivery-count", 3}};
  EXPECT_EQ(delivery_count(message), 3u);
  message.headers = {{"x-delivery-count", -3}};
  EXPECT_EQ(delivery_count(message), 0u);
}

}  // namespace
}  // namespace bide::brokers::rabbitmq
