#include "brokers/rabbitmq/channel_consumers.h"

#include <gtest/gtest.h>

namespace bide::brokers::rabbitmq {
namespace {

TEST(ChannelConsumers, PrefetchIsThatOfAllThatAreNotCancelled) {
  ChannelConsumers consumers;
  EXPECT_FALSE(consumers.any());
  consumers.add("a", 4);
  consumers.add("b", 2);
  EXPECT_EQ(consumers.prefetch(), 6);
  EXPECT_EQ(consumers.cancelled("a"), 4);
  EXPECT_EQ(consumers.cancelled("a"), 0) << "once";
  EXPECT_EQ(consumers.prefetch(), 2);
  EXPECT_EQ(consumers.cancelled("b"), 2);
  EXPECT_FALSE(consumers.any());
}

TEST(ChannelConsumers, OnlyOneThatIsFullCanBeCancelledWithoutLosingSightOfAMessage) {
  ChannelConsumers consumers;
  consumers.add("a", 2);
  const auto first = consumers.delivered("a");
  ASSERT_TRUE(first);
  EXPECT_FALSE(consumers.full());
  ASSERT_TRUE(consumers.delivered("a"));
  EXPECT_EQ(consumers.full(), "a");
  consumers.settled(*first);
  EXPECT_FALSE(consumers.full());
}

TEST(ChannelConsumers, DeliveryForNobodyIsToldFromOneThatCameAfterTheCancel) {
  ChannelConsumers consumers;
  consumers.add("a", 1);
  consumers.cancelled("a");
  EXPECT_TRUE(consumers.delivered("a")) << "it was on its way";
  EXPECT_FALSE(consumers.delivered("of an earlier life of the channel"));
  consumers.clear();
  EXPECT_FALSE(consumers.delivered("a"));
}

}  // namespace
}  // namespace bide::brokers::rabbitmq
