#include "wire/json_reader.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace bide::wire {
namespace {

JsonFault fault_of(std::string_view text, int deepest = kDeepestRequest) {
  JsonReader in(text, deepest);
  in.raw();
  in.end();
  return in.fault();
}

TEST(JsonReader, GivesTheValuesOfAnObjectInTurn) {
  JsonReader in(R"( {"a" : "x\ny", "b":[1, -2.5e3 ,true,null], "c":{"d":"\u00e9\ud83d\ude00"} } )");
  ASSERT_TRUE(in.object());
  EXPECT_EQ(in.field(), "a");
  EXPECT_EQ(in.string(), "x\ny");
  EXPECT_EQ(in.field(), "b");
  ASSERT_TRUE(in.array());
  ASSERT_TRUE(in.element());
  EXPECT_EQ(in.number(), "1");
  ASSERT_TRUE(in.element());
  EXPECT_EQ(in.number(), "-2.5e3");
  ASSERT_TRUE(in.element());
  EXPECT_TRUE(in.boolean());
  ASSERT_TRUE(in.element());
  in.null();
  EXPECT_FALSE(in.element());
  EXPECT_EQ(in.field(), "c");
  ASSERT_TRUE(in.object());
  EXPECT_EQ(in.field(), "d");
  EXPECT_EQ(in.string(), "\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(in.field(), std::nullopt);
  EXPECT_EQ(in.field(), std::nullopt);
  in.end();
  EXPECT_TRUE(in.ok()) << in.fault().text;
}

TEST(JsonReader, RawIsTheValueByteForByte) {
  JsonReader in(R"({"body": {"b" : [ 1,2 ],"a":"\u0041"} ,"kind":"x"})");
  in.object();
  EXPECT_EQ(in.field(), "body");
  EXPECT_EQ(in.raw(), R"({"b" : [ 1,2 ],"a":"\u0041"})");
  EXPECT_EQ(in.field(), "kind");
  EXPECT_EQ(in.string(), "x");
  EXPECT_EQ(in.field(), std::nullopt);
  EXPECT_TRUE(in.ok());
}

TEST(JsonReader, GoingBackTakesTheFaultBackToo) {
  JsonReader in(R"([{"a":5},7])");
  in.array();
  ASSERT_TRUE(in.element());
  const JsonReader::Place place = in.place();
  in.object();
  EXPECT_EQ(in.field(), "a");
  in.string();
  EXPECT_EQ(in.fault().code, "wrong_type");
  EXPECT_EQ(in.fault().offset, 6u);
  in.go_back(place);
  EXPECT_EQ(in.raw(), R"({"a":5})");
  EXPECT_TRUE(in.element());
  EXPECT_EQ(in.number(), "7");
  EXPECT_FALSE(in.element());
  EXPECT_TRUE(in.ok());
}

struct Wrong {
  std::string text;
  std::size_t offset;
};

TEST(JsonReader, NamesTheByteWhereItIsWrong) {
  const std::vector<Wrong> cases = {
      {R"({"a" 1})", 5},   {R"({"a":1,})", 7}, {R"([1 2])", 3},    {R"([1,])", 3},     {R"({"a":tru})", 5},
      {R"({a:1})", 1},     {R"("abc)", 4},     {"\"a\x01\"", 2},   {"\"\xff\"", 1},    {"\"\xc0\xaf\"", 1},
      {R"("\x")", 1},      {R"("\u12g4")", 1}, {R"("\ud800")", 1}, {R"("\udc00")", 1}, {R"(01)", 1},
      {R"(-)", 1},         {R"(1.)", 2},       {R"(1e)", 2},       {R"({} {})", 3},    {"\xef\xbb\xbf{}", 0},
      {R"({"a":NaN})", 5}, {R"([)", 1},        {R"({"a")", 4},     {R"({"a":)", 5},    {R"("abcdefghijk\)", 13},
      {"'a'", 0},          {"[+1]", 1},        {"[.5]", 1},
  };
  for (const Wrong& each : cases) {
    const JsonFault fault = fault_of(each.text);
    EXPECT_EQ(fault.code, "invalid_json") << each.text;
    EXPECT_EQ(fault.offset, each.offset) << each.text << ": " << fault.text;
  }
}

TEST(JsonReader, RefusesWhatIsDeeperThanAllowed) {
  EXPECT_EQ(fault_of(std::string(64, '[') + std::string(64, ']')).code, "");
  EXPECT_EQ(fault_of(std::string(65, '[') + std::string(65, ']')).code, "json_too_deep");
  EXPECT_EQ(fault_of(std::string(10'000, '[')).code, "json_too_deep");
  std::string objects;
  for (int i = 0; i < 10'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(fault_of(objects).code, "json_too_deep");
}

TEST(JsonReader, SpecialBytesAreFoundAtEveryPlaceOfALongString) {
  for (std::size_t place = 0; place < 40; ++place) {
    for (const char bad : {'\x00', '\x1f', '\n', '\xff', '\x80'}) {
      std::string text = "\"" + std::string(40, 'x') + "\"";
      text[1 + place] = bad;
      EXPECT_EQ(fault_of(text).offset, 1 + place);
      EXPECT_EQ(fault_of(text).code, "invalid_json");
    }
    std::string closed = "\"" + std::string(40, 'x') + "\"";
    closed[1 + place] = '"';
    EXPECT_EQ(fault_of(closed).offset, 2 + place) << place;
  }
}

TEST(IsJsonValue, MeansThatNothingIsAround) {
  EXPECT_TRUE(is_json_value("{\"a\": 1}"));
  EXPECT_TRUE(is_json_value("12"));
  EXPECT_FALSE(is_json_value(""));
  EXPECT_FALSE(is_json_value(" 1"));
  EXPECT_FALSE(is_json_value("1 "));
  EXPECT_FALSE(is_json_value("1 2"));
  EXPECT_FALSE(is_json_value("hello"));
}

// Another parser agrees on what is JSON, over texts that are nearly it.
TEST(JsonReader, AgreesWithAnotherParserOnDamagedTexts) {
  const std::vector<std::string> seeds = {
      R"({"kind":"resize","queue":"images","body":{"width":640,"tags":["a","b\n\u00e9"],"ok":true,"none":null}})",
      R"([1,-2.5e10,0.5,"\ud83d\ude00 caf)"
      "\xc3\xa9"
      R"(",{},[],{"a":[{}]}])",
      R"("\\\"\/\b\f\n\r\t\u0000")",
      R"({"a":[[[[1]]]],"b":-0,"c":1E+2})",
  };
  std::mt19937_64 random(7);
  const std::string pieces = "{}[]\",:\\u0019eE+-.tfn \n\x80\xc3\xff";
  int accepted = 0;
  for (int round = 0; round < 40'000; ++round) {
    std::string text = seeds[random() % seeds.size()];
    for (std::uint64_t i = 0, n = 1 + random() % 3; i < n; ++i) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = pieces[random() % pieces.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 3);
          break;
        default:
          text.insert(at, 1, pieces[random() % pieces.size()]);
          break;
      }
      if (text.empty()) text = "1";
    }
    boost::json::error_code error;
    boost::json::parse_options options;
    options.max_depth = kDeepestRequest;
    boost::json::parse(text, error, {}, options);
    // Whether a number is too large is not for us to say: bodies are kept as they are.
    if (error == boost::json::error::exponent_overflow) continue;
    const bool ours = fault_of(text).code.empty();
    accepted += ours ? 1 : 0;
    ASSERT_EQ(ours, !error) << text << ": " << error.message() << " / " << fault_of(text).text;
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace bide::wire
