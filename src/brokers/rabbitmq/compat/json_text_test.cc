#include "brokers/rabbitmq/compat/json_text.h"

#include <gtest/gtest.h>

#include "brokers/rabbitmq/compat/compat_test_bytes.h"

namespace bide::brokers::rabbitmq::compat {
namespace {

TEST(JsonText, FieldsBecomeJson) {
  EXPECT_EQ(to_json(Field()), "null");
  EXPECT_EQ(to_json(FieldTable{{"a", 1}, {"b", FieldList{true, 1.5, "x"}}}), R"({"a":1,"b":[true,1.5,"x"]})");
  EXPECT_EQ(json_string("a\"\\\n\x01\xff\xc3\xa4"), "\"a\\\"\\\\\\n\\u0001\xef\xbf\xbd\xc3\xa4\"");
}

TEST(JsonText, PropertiesHaveBunnysNames) {
  AmqpMessage message;
  message.content_type = "text/plain";
  message.message_id = "m";
  message.timestamp = 1'700'000'000;
  message.headers = {{"h", "v"}};
  EXPECT_EQ(properties_json(message),
            R"({"content_type":"text/plain","headers":{"h":"v"},"delivery_mode":2,"message_id":"m",)"
            R"("timestamp":"2023-11-14 22:13:20 UTC"})");
}

TEST(JsonText, JsonIsToldFromWhatIsNot) {
  for (const char* text : {"{}", "[]", " [1, -2.5e3, {\"a\" : null}] ", "\"\\u00e4\"", "0", "true"}) {
    EXPECT_TRUE(is_json(text)) << text;
  }
  for (const char* text : {"", "{", "[1,]", "{\"a\"}", "{a:1}", "01", "1 2", "\"\\x\"", "\"open", "nul", "'a'"}) {
    EXPECT_FALSE(is_json(text)) << text;
  }
  EXPECT_FALSE(is_json(std::string(100'000, '[')));
}

TEST(JsonText, MembersOfTheNewestRecordAreFound) {
  const std::string record =
      R"([{"error":"a\n\u00e4\ud83d\ude00","n":{"error":"no"},"num_attempts":6},{"error":"old"}])";
  EXPECT_EQ(json_member(record, "error"), "a\n\xc3\xa4\xf0\x9f\x98\x80");
  EXPECT_EQ(json_member(record, "num_attempts"), "6");
  EXPECT_EQ(json_member(record, "missing"), std::nullopt);
  EXPECT_EQ(json_member("not json", "error"), std::nullopt);
}

TEST(JsonText, LineBreaksInBase64DoNotMatter) {
  EXPECT_EQ(from_base64("aGVs\nbG8=\n"), "hello");
  EXPECT_EQ(from_base64("!"), std::nullopt);
}

TEST(JsonText, HostileTextNeverCrashes) {
  Mutator mutator(4);
  const std::string seed = R"([{"error":"a\n\u00e4\ud83d\ude00","n":{"error":[1,2]},"num_attempts":6}])";
  for (int i = 0; i < 50'000; ++i) (void)json_member(mutator.mutate(seed), "error");
}

}  // namespace
}  // namespace bide::brokers::rabbitmq::compat
