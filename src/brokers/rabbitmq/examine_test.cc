#include "brokers/rabbitmq/examine.h"

#include <gtest/gtest.h>

#include "brokers/rabbitmq/drift.h"

namespace bide::brokers::rabbitmq {
namespace {

// As a server of version 3.10 said it.
constexpr const char* kNotSet =
    "the server said: PRECONDITION_FAILED - inequivalent arg 'x-overflow' for queue 'q' in vhost '/': received the "
    "value "
    "'reject-publish' of type 'longstr' but current is none";
constexpr const char* kOnlyThere =
    "the server said: PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received none "
    "but "
    "current is the value '1000' of type 'long'";
constexpr const char* kOther =
    "the server said: PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit' for queue 'q' in vhost '/': received "
    "'6' "
    "but current is '5'";

TEST(DifferenceTest, AValueThatIsNotSetOnTheServerIsUnderstood) {
  const std::optional<Difference> difference = Difference::parse(kNotSet);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->argument, "x-overflow");
  EXPECT_EQ(difference->wanted, "reject-publish");
  EXPECT_EQ(difference->current, "none");
  EXPECT_EQ(difference->current_type, "");
}

TEST(DifferenceTest, AValueThatOnlyTheServerHasIsUnderstoodWithItsType) {
  const std::optional<Difference> difference = Difference::parse(kOnlyThere);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->argument, "x-message-ttl");
  EXPECT_EQ(difference->wanted, "none");
  EXPECT_EQ(difference->current, "1000");
  EXPECT_EQ(difference->current_type, "long");
}

TEST(DifferenceTest, TwoValuesAreUnderstood) {
  const std::optional<Difference> difference = Difference::parse(kOther);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->wanted, "6");
  EXPECT_EQ(difference->current, "5");
}

TEST(DifferenceTest, AValueWithTheServersOwnWordsInItIsTakenWhole) {
  const std::optional<Difference> difference = Difference::parse(
      "inequivalent arg 'x-dead-letter-exchange' for queue 'q' in vhost '/': received 'it's: received ' but current is "
      "'b'");
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->wanted, "it's: received ");
  EXPECT_EQ(difference->current, "b");
}

TEST(DifferenceTest, WhatTheServerHasTakesThePlaceOfWhatWasWanted) {
  const auto adopted = [](FieldTable arguments, const std::string& argument, const std::string& words) {
    const auto difference =
        Difference::parse("inequivalent arg '" + argument + "' for queue 'q' in vhost '/': " + words);
    EXPECT_TRUE(difference) << words;
    if (!difference || !take_over(arguments, *difference)) arguments = {{"refused", true}};
    return arguments;
  };
  const std::string ttl = "x-message-ttl";
  EXPECT_EQ(adopted({}, ttl, "received none but current is the value '5000' of type 'signedint'"),
            (FieldTable{{ttl, 5000}}));
  EXPECT_EQ(adopted({{ttl, 60000}}, ttl, "received '60000' but current is '200'"), (FieldTable{{ttl, 200}}));
  EXPECT_EQ(adopted({{ttl, 60000}}, ttl, "received the value '60000' of type 'long' but current is none"),
            FieldTable());
  EXPECT_EQ(adopted({}, "x-queue-type", "received none but current is the value 'quorum' of type 'longstr'"),
            (FieldTable{{"x-queue-type", "quorum"}}));
  EXPECT_EQ(adopted({}, "durable", "received 'true' but current is 'false'"), (FieldTable{{"refused", true}}))
      << "it is no argument";
}

TEST(DifferenceTest, OtherWordsAreNoDifference) {
  EXPECT_FALSE(Difference::parse(""));
  EXPECT_FALSE(Difference::parse("the server said: NOT_FOUND - no queue 'q' in vhost '/'"));
  EXPECT_FALSE(Difference::parse("inequivalent arg 'x"));
  EXPECT_FALSE(Difference::parse("inequivalent arg 'x-overflow' but current is none"));
}

TEST(DriftTest, ADifferenceIsToldWithItsConsequenceAndARemedy) {
  EXPECT_EQ(
      describe(*Difference::parse(kNotSet)),
      "x-overflow is not set, wanted is 'reject-publish': without reject-publish a full queue drops its oldest jobs, "
      "and the server silently falls back from at-least-once to at-most-once");
  EXPECT_NE(remedy_for(*Difference::parse(kOther)).find("delivery_limit=5 in the URL"), std::string::npos);
  EXPECT_EQ(remedy_for(*Difference::parse(kNotSet)).find("in the URL"), std::string::npos);
}

}  // namespace
}  // namespace bide::brokers::rabbitmq
