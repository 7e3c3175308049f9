// Base64, hexadecimal digits, UTF-8 and the other helpers of text.

#include "core/text.h"

#include <gtest/gtest.h>

#include "core/utf8.h"

namespace bide::core {
namespace {

TEST(Base64, GoesThereAndBack) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
    bytes += static_cast<char>(i * 7);
  }
  EXPECT_EQ(to_base64("foob"), "Zm9vYg==");
  for (const std::string_view wrong : {"Zg", "Zg=", "Z===", "Zh==", "Zm9=", "Zg==Zg==", "Z g=", "===="}) {
    EXPECT_EQ(from_base64(wrong), std::nullopt) << wrong;
  }
}

TEST(Utf8, EveryCodePointGoesThereAndBack) {
  for (std::uint32_t code = 0; code < 0x110000; ++code) {
    std::string text;
    append_character(text, code);
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    ASSERT_EQ(character_bytes(text), surrogate ? 0 : text.size()) << code;
    ASSERT_EQ(code_point(text), code);
  }
}

TEST(Utf8, NothingLongerThanNeedBeIsACharacter) {
  for (const std::string_view bad : {"\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                                     "\xf5\x80", "\x80", "\xff", "\xe2\x82", "\xf0\x9f\x98"}) {
    EXPECT_EQ(character_bytes(bad), 0u);
    EXPECT_FALSE(is_utf8(bad));
  }
}

TEST(Text, CaseBlanksTokensAndDigits) {
  EXPECT_EQ(lower_case("AbZ\xc4[@"), "abz\xc4[@");
  EXPECT_EQ(trimmed(" \t a b \t"), "a b");
  EXPECT_EQ(trimmed(" \t"), "");
  EXPECT_EQ(trimmed("\ta ", " "), "\ta");
  EXPECT_TRUE(is_token("X-a_1!"));
  for (const std::string_view bad : {"", "a b", "a:", "a\x80", "(a)"}) EXPECT_FALSE(is_token(bad)) << bad;
  for (int c = 0; c < 256; ++c) {
    const std::size_t lower = kHexDigits.find(lower_case(static_cast<char>(c)));
    EXPECT_EQ(hex_value(static_cast<char>(c)), lower == std::string_view::npos ? -1 : static_cast<int>(lower)) << c;
  }
  EXPECT_EQ(to_hex(std::string_view("\x00\xff\x1a", 3)), "00ff1a");
}

}  // namespace
}  // namespace bide::core
