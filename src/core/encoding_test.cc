#include "core/encoding.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace bide::core {
namespace {

std::string encoded_count(std::uint64_t value) {
  std::string bytes;
  Encoder(bytes).count(value);
  return bytes;
}

TEST(Encoding, IntegersAreLittleEndian) {
  std::string bytes;
  Encoder out(bytes);
  out.u8(0xfe);
  out.u32(0x01020304);
  out.u64(0x1112131415161718);
  out.i64(-2);
  EXPECT_EQ(bytes,
            std::string("\xfe\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11\xfe\xff\xff\xff\xff\xff\xff\xff", 21));
}

TEST(Encoding, EveryKindOfFieldComesBack) {
  std::string bytes;
  Encoder out(bytes);
  const JobId id(std::array<std::uint8_t, 16>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  out.u8(200);
  out.u32(4'000'000'000);
  out.u64(std::numeric_limits<std::uint64_t>::max());
  out.i64(std::numeric_limits<std::int64_t>::min());
  out.f64(-0.1);
  out.string("");
  out.string(std::string("a\0b", 3));
  out.id(id);
  out.raw("tail");
  Decoder in(bytes);
  EXPECT_EQ(in.u8(), 200);
  EXPECT_EQ(in.u32(), 4'000'000'000);
  EXPECT_EQ(in.u64(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(in.i64(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(in.f64(), -0.1);
  EXPECT_EQ(in.string(), "");
  EXPECT_EQ(in.string(), std::string_view("a\0b", 3));
  EXPECT_EQ(in.id(), id);
  EXPECT_FALSE(in.done());
  EXPECT_EQ(in.left(), 4u);
  EXPECT_EQ(in.rest(), "tail");
  EXPECT_TRUE(in.done());
}

TEST(Encoding, ACountTakesAsManyBytesAsItNeeds) {
  EXPECT_EQ(encoded_count(0), std::string("\0", 1));
  EXPECT_EQ(encoded_count(127), "\x7f");
  EXPECT_EQ(encoded_count(128), "\x80\x01");
  EXPECT_EQ(encoded_count(std::numeric_limits<std::uint64_t>::max()), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST(Encoding, EveryCountAroundAPowerOfTwoComesBack) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    for (const std::uint64_t value : {(1ull << bit) - 1, 1ull << bit, (1ull << bit) + 1}) {
      const std::string bytes = encoded_count(value);
      Decoder in(bytes);
      EXPECT_EQ(in.count(), value);
      EXPECT_TRUE(in.done());
    }
  }
}

TEST(Encoding, ACountOfMoreThan64BitsIsRefused) {
  for (const char* bytes :
       {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"}) {
    Decoder in(bytes);
    EXPECT_EQ(in.count(), 0u);
    EXPECT_FALSE(in.ok());
  }
}

TEST(Encoding, ReadingPastTheEndGivesZerosAndIsRemembered) {
  Decoder in("\x01\x02");
  EXPECT_EQ(in.u32(), 0u);
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(in.u8(), 0u);
  EXPECT_TRUE(in.string().empty());
  EXPECT_TRUE(in.id().is_nil());
  EXPECT_FALSE(in.done());
}

TEST(Encoding, AStringThatClaimsMoreThanThereIsIsRefused) {
  std::string bytes = encoded_count(std::numeric_limits<std::uint64_t>::max()) + "abc";
  Decoder in(bytes);
  EXPECT_EQ(in.string(), "");
  EXPECT_FALSE(in.ok());
}

}  // namespace
}  // namespace bide::core
