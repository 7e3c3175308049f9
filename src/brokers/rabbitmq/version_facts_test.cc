#include "brokers/rabbitmq/version_facts.h"

#include <string>

#include <gtest/gtest.h>

namespace bide::brokers::rabbitmq {
namespace {

VersionFacts facts(const char* version) { return facts_of(ServerVersion::parse(version)); }

TEST(ServerVersionTest, VersionsAreComparedAsNumbers) {
  EXPECT_LT(ServerVersion::parse("3.9.13"), ServerVersion::parse("3.10.8"));
  EXPECT_LT(ServerVersion::parse("3.13.7"), ServerVersion::parse("4.0.1+rc"));
  EXPECT_EQ(ServerVersion::parse("nonsense"), ServerVersion{});
}

TEST(ServerVersionTest, TheVersionIsAPropertyOfTheServer) {
  EXPECT_EQ(ServerVersion::of({{"product", "RabbitMQ"}, {"version", "4.3.5"}}), (ServerVersion{4, 3}));
  EXPECT_EQ(ServerVersion::of({{"version", 4}}), ServerVersion{});
  EXPECT_EQ(ServerVersion::of({}), ServerVersion{});
}

TEST(VersionFactsTest, From43AConsumerThatTimesOutIsCancelledAndItsChannelStays) {
  EXPECT_FALSE(facts("3.10.8").timeout_cancels_consumer);
  EXPECT_FALSE(facts("4.2.0").timeout_cancels_consumer);
  EXPECT_TRUE(facts("4.3.0").timeout_cancels_consumer);
  EXPECT_TRUE(facts("5.0.0").timeout_cancels_consumer);
}

TEST(VersionFactsTest, From43OnlyRejectsAndClosedChannelsCountAsDeliveries) {
  EXPECT_TRUE(facts("4.2.0").nack_counts);
  EXPECT_TRUE(facts("4.2.0").timeout_counts);
  EXPECT_FALSE(facts("4.3.0").nack_counts);
  EXPECT_FALSE(facts("4.3.0").timeout_counts);
}

TEST(VersionFactsTest, From40QuorumQueuesHaveADeliveryLimit) {
  EXPECT_FALSE(facts("3.13.7").default_delivery_limit);
  EXPECT_EQ(facts("4.0.1").default_delivery_limit, 20);
}

TEST(VersionFactsTest, From40TheDeathsThatAClientWritesAreNotContinued) {
  EXPECT_TRUE(facts("3.13.7").continues_x_death);
  EXPECT_FALSE(facts("4.0.1").continues_x_death);
}

TEST(VersionFactsTest, From43NewQueuesAreNotForgotten) {
  EXPECT_TRUE(facts("3.10.8").forgets_new_queues);
  EXPECT_TRUE(facts("4.2.1").forgets_new_queues);
  EXPECT_FALSE(facts("4.3.0").forgets_new_queues);
}

TEST(VersionFactsTest, Until42PartitionsAreHandledAsConfigured) {
  EXPECT_TRUE(facts("4.2.0").has_partition_handling);
  EXPECT_FALSE(facts("4.3.0").has_partition_handling);
}

TEST(VersionFactsTest, From40AMessageHas16MiB) {
  EXPECT_EQ(facts("3.13.7").message_bytes, 134'217'728u);
  EXPECT_EQ(facts("4.0.1").message_bytes, 16'777'216u);
}

TEST(VersionFactsTest, From43QuorumQueuesObeyPriorities) {
  EXPECT_EQ(facts("4.2.0").quorum_priorities, 1);
  EXPECT_EQ(facts("4.3.0").quorum_priorities, 32);
}

TEST(VersionFactsTest, PrioritiesKeepTheirOrder) {
  EXPECT_EQ(server_priority(0), 4) << "as messages that have none";
  EXPECT_EQ(server_priority(100), 31);
  EXPECT_EQ(server_priority(-100), 0);
  EXPECT_EQ(server_priority(1), 5);
  EXPECT_EQ(server_priority(-1), 3);
  for (int priority = -100; priority < 100; ++priority) {
    EXPECT_LE(server_priority(priority), server_priority(priority + 1)) << priority;
  }
}

TEST(VersionFactsTest, From43LookingNeedsTheRightToConfigure) {
  EXPECT_FALSE(facts("4.2.0").passive_needs_configure);
  EXPECT_TRUE(facts("4.3.0").passive_needs_configure);
}

TEST(VersionFactsTest, TheConsequencesOfAVersionAreNamed) {
  EXPECT_TRUE(consequences_of({3, 10}).empty());
  std::string four;
  for (const std::string& text : consequences_of({4, 0})) four += text + "\n";
  for (const char* word : {"x-delivery-limit", "20 deliveries", "x-death", "16 MiB"}) {
    EXPECT_NE(four.find(word), std::string::npos) << word;
  }
  std::string later;
  for (const std::string& text : consequences_of({4, 3})) later += text + "\n";
  for (const char* word : {"consumer_timeout", "basic.nack", "P.new", "track_qq_members_uids",
                           "cluster_partition_handling", "32 levels", "right to configure"}) {
    EXPECT_EQ(four.find(word), std::string::npos) << word;
    EXPECT_NE(later.find(word), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace bide::brokers::rabbitmq
