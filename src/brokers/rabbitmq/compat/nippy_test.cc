#include "brokers/rabbitmq/compat/nippy.h"

#include <gtest/gtest.h>

#include <limits>

#include "brokers/rabbitmq/compat/compat_test_bytes.h"
#include "brokers/rabbitmq/compat/lz4_block.h"

namespace bide::brokers::rabbitmq::compat {
namespace {

ClojureValue keyword(const char* name) { return {ClojureKeyword{name}}; }
ClojureValue number(std::int64_t value) { return {value}; }

Result<ClojureValue> thaw_hex(const std::string& hex) { return thaw(from_hex("4e505900" + hex)); }

TEST(Nippy, ValuesAreWrittenInTheTypesThatEveryVersionReads) {
  const auto hex = [](ClojureValue value) { return to_hex(freeze(value)).substr(8); };
  EXPECT_EQ(hex({}), "03");
  EXPECT_EQ(hex({true}), "08");
  EXPECT_EQ(hex({false}), "09");
  EXPECT_EQ(hex(number(0)), "00");
  EXPECT_EQ(hex(number(5)), "6405");
  EXPECT_EQ(hex(number(-1)), "64ff");
  EXPECT_EQ(hex(number(1000)), "6503e8");
  EXPECT_EQ(hex(number(70000)), "6600011170");
  EXPECT_EQ(hex(number(std::int64_t{1} << 40)), "2b0000010000000000");
  EXPECT_EQ(hex({1.5}), "3d3ff8000000000000");
  EXPECT_EQ(hex({std::string()}), "22");
  EXPECT_EQ(hex({std::string("abc")}), "6903616263");
  EXPECT_EQ(hex({std::string(200, 'x')}).substr(0, 6), "1000c8");
  EXPECT_EQ(hex({std::string(40000, 'x')}).substr(0, 10), "0d00009c40");
  EXPECT_EQ(hex(keyword("job-1")), "6a056a6f622d31");
  EXPECT_EQ(hex({ClojureVector{}}), "11");
  EXPECT_EQ(hex({ClojureVector{{number(1), number(2)}}}), "7164016402");
  EXPECT_EQ(hex({ClojureVector{{number(1), number(2), number(3)}}}), "72640164026403");
  EXPECT_EQ(hex({ClojureVector{{number(1)}}}), "6e016401");
  EXPECT_EQ(hex({ClojureMap{}}), "13");
  EXPECT_EQ(hex({ClojureMap{{{keyword("a"), number(1)}}}}), "70016a01616401");
  EXPECT_EQ(hex({ClojureBytes{"\x01\x02"}}), "07020102");
}

TEST(Nippy, OldAndNewTypesOfTheSameValueAreReadAlike) {
  // Newer versions shift unsigned bytes by 128, so that 3 is 0x83.
  EXPECT_EQ(thaw_hex("6903616263").value(), thaw_hex("6083616263").value());
  EXPECT_EQ(thaw_hex("6e016401").value(), thaw_hex("61815781").value());
  EXPECT_EQ(thaw_hex("6f016401").value(), thaw_hex("62815781").value());
  EXPECT_EQ(thaw_hex("70016a01616401").value(), thaw_hex("63816a01615781").value());
  EXPECT_EQ(thaw_hex("5781").value(), number(1));
  EXPECT_EQ(thaw_hex("577f").value(), number(255));
  EXPECT_EQ(thaw_hex("5883e8").value(), number(1000));
  EXPECT_EQ(thaw_hex("5980011170").value(), number(70000));
  EXPECT_EQ(thaw_hex("5d81").value(), number(-1));
  EXPECT_EQ(thaw_hex("5e83e8").value(), number(-1000));
  EXPECT_EQ(thaw_hex("5f80011170").value(), number(-70000));
  EXPECT_EQ(thaw_hex("25").value(), thaw_hex("23").value()) << "an empty sequence and an empty list";
  EXPECT_EQ(thaw_hex("26016401").value(), (ClojureValue{ClojureList{{number(1)}}}));
}

TEST(Nippy, EveryValueThatIsWrittenIsReadBack) {
  const ClojureValue value{ClojureMap{{
      {keyword("nothing"), {}},
      {{std::string("text")}, {std::string(300, 'y')}},
      {number(std::numeric_limits<std::int64_t>::min()), number(std::numeric_limits<std::int64_t>::max())},
      {{ClojureSymbol{"plus"}}, {ClojureCharacter{0x20ac}}},
      {{ClojureUuid{{1, 2, 3}}}, {ClojureInstant{1700000000123}}},
      {keyword("all"),
       {ClojureVector{{{ClojureSet{{number(1)}}}, {ClojureList{{{true}}}}, {ClojureBytes{"\xff"}}, {0.1}}}}},
  }}};
  const Result<ClojureValue> back = thaw(freeze(value));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, value);
}

TEST(Nippy, WhatHasASizeButNoMeaningIsKeptAsItIs) {
  // A big integer of two bytes between two numbers.
  const std::string hex =
      "72"
      "6401"
      "2c000000020102"
      "6403";
  const Result<ClojureValue> value = thaw_hex(hex);
  ASSERT_TRUE(value) << value.error().message;
  const auto& items = std::get<ClojureVector>(value->value).items;
  EXPECT_EQ(items[1], (ClojureValue{ClojureOpaque{from_hex("2c000000020102")}}));
  EXPECT_EQ(to_hex(freeze(*value)), "4e505900" + hex);
}

TEST(Nippy, WhatCannotBeReadPastIsUnsupported) {
  EXPECT_EQ(thaw_hex("51").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(thaw(from_hex("4e50590203")).error().code, ErrorCode::kUnsupported) << "encrypted";
  EXPECT_EQ(thaw(from_hex("4e50590b03")).error().code, ErrorCode::kUnsupported) << "packed by LZMA2";
}

TEST(Nippy, DamagedDataIsRefused) {
  for (const char* hex : {"", "6905616263", "0dffffffff", "1e7fffffff", "70026a0161", "0303", "2b00"}) {
    const Result<ClojureValue> value = thaw_hex(hex);
    ASSERT_FALSE(value) << hex;
    EXPECT_EQ(value.error().code, ErrorCode::kInvalidArgument) << hex;
  }
  EXPECT_FALSE(thaw("hello"));
  EXPECT_FALSE(thaw(""));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "6e01";
  EXPECT_FALSE(thaw_hex(deep + "03"));
}

TEST(Nippy, DataPackedByLz4IsUnpacked) {
  // 20 letters 'a' as a string: literal "i", 20 and 'a', then a copy of 19 with distance 1, then nothing.
  const std::string packed = from_hex(
      "4e505908"
      "00000016"
      "3f"
      "691461"
      "0100"
      "00"
      "00");
  const Result<ClojureValue> value = thaw(packed);
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_EQ(*value, ClojureValue{std::string(20, 'a')});
  EXPECT_FALSE(thaw(packed.substr(0, packed.size() - 4))) << "cut off";
  EXPECT_FALSE(
      thaw(from_hex("4e505908"
                    "7fffffff"
                    "3f"
                    "691461"
                    "0100"
                    "00"
                    "00")))
      << "a size that cannot be";
}

TEST(Nippy, HostileInputNeverCrashes) {
  std::string seed = freeze({ClojureMap{{{keyword("a"), {ClojureVector{{number(1), {std::string("two")}, {3.0}}}}},
                                         {keyword("b"), {ClojureSet{{{ClojureBytes{"bytes"}}, {true}}}}}}}});
  Mutator mutator(1);
  int readable = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::string mutated = mutator.mutate(seed);
    if (thaw(mutated)) ++readable;
  }
  EXPECT_GT(readable, 0) << "the mutations are too coarse to reach anything";
  const std::string block = from_hex("3f69146101000000");
  for (int i = 0; i < 100'000; ++i) (void)unpack_lz4_block(mutator.mutate(block), 22);
}

}  // namespace
}  // namespace bide::brokers::rabbitmq::compat
