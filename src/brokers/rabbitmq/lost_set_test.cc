#include "brokers/rabbitmq/lost_set.h"

#include <gtest/gtest.h>

namespace bide::brokers::rabbitmq {
namespace {

const Names kNames("p");

AmqpMessage dead_lettered(const char* queue, const char* reason) {
  AmqpMessage message;
  message.message_id = "id";
  message.type = "mail";
  message.headers = {{"x-death", FieldList{FieldTable{{"queue", queue}, {"reason", reason}}}}};
  return message;
}

TEST(LostMessage, BelongsToTheQueueThatItsHeadersName) {
  AmqpMessage message;
  EXPECT_EQ(lost_message_of(message, kNames).queue, "");
  message.headers = {{"CC", FieldList{"1>1.2", "p.queue.orders"}}};
  EXPECT_EQ(lost_message_of(message, kNames).queue, "orders");
  message.headers.emplace_back("bide-queue", "mail");
  EXPECT_EQ(lost_message_of(message, kNames).queue, "mail");
  message.headers = {{"CC", FieldList{"elsewhere.queue.orders"}}};
  EXPECT_EQ(lost_message_of(message, kNames).queue, "");
}

TEST(LostMessage, ThatTheServerGaveUpBelongsToTheQueueItWasIn) {
  const LostMessage lost = lost_message_of(dead_lettered("p.queue.orders", "delivery_limit"), kNames);
  EXPECT_EQ(lost.queue, "orders");
  EXPECT_EQ(lost.why, "delivery_limit");
}

TEST(LostMessage, ThatCameOutOfADelayHadNoWayToGo) {
  EXPECT_EQ(lost_message_of(dead_lettered("p.delay.3.1", "expired"), kNames).why, kNoWayToGo);
  EXPECT_EQ(lost_message_of(dead_lettered("p.queue.orders", "expired"), kNames).why, "expired");
  EXPECT_EQ(lost_message_of(AmqpMessage{}, kNames).why, kNoWayToGo);
}

TEST(LostMessage, ThatWasLostAtTheFirstStepOfItsDelayIsNotDue) {
  AmqpMessage message;
  EXPECT_TRUE(lost_message_of(message, kNames).is_due);
  message.headers = {{"CC", FieldList{"1>1.2", "orders"}}};
  EXPECT_FALSE(lost_message_of(message, kNames).is_due);
  AmqpMessage waited = dead_lettered("p.delay.3.1", "expired");
  waited.headers.emplace_back("CC", FieldList{"orders"});
  EXPECT_TRUE(lost_message_of(waited, kNames).is_due);
}

TEST(LostMessage, ThatWasLostAtALaterStepOfItsDelayIsNotDue) {
  AmqpMessage message = dead_lettered("p.delay.3.1", "expired");
  message.headers.emplace_back("CC", FieldList{"2>1.2", "0>!", "orders"});
  EXPECT_FALSE(lost_message_of(message, kNames).is_due);
  message.headers.front().second =
      FieldList{FieldTable{{"queue", "p.delay.1.2"}, {"reason", "expired"}},
                FieldTable{{"queue", "p.delay.3.1"}, {"reason", "expired"}}};
  EXPECT_TRUE(lost_message_of(message, kNames).is_due);
}

TEST(LostMessage, WithHeadersOfOtherTypesIsDescribedAllTheSame) {
  AmqpMessage message;
  message.headers = {{"x-death", "x"}, {"CC", 1}, {"bide-queue", FieldTable{}}};
  EXPECT_EQ(lost_message_of(message, kNames).why, kNoWayToGo);
  message.headers = {{"x-death", FieldList{1}}, {"CC", FieldList{}}, {"bide-queue", "not a name!"}};
  EXPECT_EQ(lost_message_of(message, kNames).queue, "");
  EXPECT_EQ(describe_lost(message, kNames), "a message without id");
}

}  // namespace
}  // namespace bide::brokers::rabbitmq
