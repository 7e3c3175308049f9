#include "cli/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace bide::cli {
namespace {

TEST(Json, StringsAreEscapedSoThatTheyStayOneLine) {
  EXPECT_EQ(json_string("plain"), "\"plain\"");
  EXPECT_EQ(json_string("a\"b\\c\nd\te\x01\x7f"), "\"a\\\"b\\\\c\\nd\\te\\u0001\\u007f\"");
  EXPECT_EQ(json_string(std::string_view("a\0b", 3)), "\"a\\u0000b\"");
}

TEST(Json, Utf8StaysAndAnythingElseIsReplaced) {
  EXPECT_EQ(json_string("\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82"), "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82\"");
  EXPECT_EQ(json_string("a\xff"), "\"a\xef\xbf\xbd\"");
}

TEST(Json, OverlongFormsSurrogatesAndCutCharactersAreNotUtf8) {
  EXPECT_TRUE(is_utf8("h\xc3\xa9llo"));
  for (const char* bad : {"\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80", "\xf5\x80\x80\x80"}) {
    EXPECT_FALSE(is_utf8(bad)) << json_string(bad);
  }
}

TEST(Json, NumbersAreShortAndNeverInfinite) {
  EXPECT_EQ(json_number(0.5), "0.5");
  EXPECT_EQ(json_number(0), "0");
  EXPECT_EQ(json_number(123456789), "123456789");
  EXPECT_EQ(json_number(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(json_number(std::numeric_limits<double>::quiet_NaN()), "null");
}

TEST(Json, ObjectsKeepTheOrderOfTheirFields) {
  JsonObject object;
  object.add("b", 1).add("a", "x").add("list", JsonArray().add("one").add(JsonObject().add("deep", true)));
  object.add("inner", JsonObject()).add_null("nothing");
  EXPECT_EQ(object.text(), R"({"b":1,"a":"x","list":["one",{"deep":true}],"inner":{},"nothing":null})");
}

}  // namespace
}  // namespace bide::cli
