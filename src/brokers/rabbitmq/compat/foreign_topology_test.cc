#include "brokers/rabbitmq/compat/foreign_topology.h"

#include <gtest/gtest.h>

namespace bide::brokers::rabbitmq::compat {
namespace {

const std::string kHead =
    "the server said: PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': ";

TEST(ForeignTopology, WhatTheQueueReallyHasIsReadFromTheServersRefusal) {
  const auto number = parse_inequivalent(kHead + "received none but current is the value '5000' of type 'signedint'");
  ASSERT_TRUE(number);
  EXPECT_EQ(number->argument, "x-message-ttl");
  EXPECT_EQ(number->current, Field(5000));
  const auto both = parse_inequivalent(kHead + "received '60000' but current is '200'");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->current, Field(200));
  const auto none = parse_inequivalent(kHead + "received the value '60000' of type 'long' but current is none");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->current, std::nullopt);
  const auto text = parse_inequivalent(
      "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': received none but current is "
      "the "
      "value 'quorum' of type 'longstr'");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->current, Field("quorum"));
}

TEST(ForeignTopology, WhatIsNoArgumentCannotBeAdopted) {
  EXPECT_FALSE(
      parse_inequivalent("PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': received "
                         "'true' but current is 'false'"));
  EXPECT_FALSE(parse_inequivalent("ACCESS_REFUSED"));
  EXPECT_FALSE(parse_inequivalent(""));
}

TEST(ForeignTopology, LongestHeadersAreLeftOutOfWhatCannotBePublished) {
  AmqpMessage message;
  message.headers = {{"short", "kept"}, {"long", std::string(130 * 1024, 'x')}};
  fit_headers(message);
  EXPECT_EQ(message.headers, (FieldTable{{"short", "kept"}, {"bide-dropped-headers", "long"}}));
  AmqpMessage fits;
  fits.headers = {{"long", std::string(100 * 1024, 'x')}};
  const FieldTable before = fits.headers;
  fit_headers(fits);
  EXPECT_EQ(fits.headers, before);
}

}  // namespace
}  // namespace bide::brokers::rabbitmq::compat
