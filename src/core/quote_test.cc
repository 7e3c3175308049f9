#include "core/quote.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace bide::core {
namespace {

TEST(Quote, PlainTextIsShownAsItIs) {
  EXPECT_EQ(quoted("send_email"), "'send_email'");
  EXPECT_EQ(quoted(""), "''");
  EXPECT_EQ(quoted("größe 五"), "'größe 五'");
}

TEST(Quote, ControlCharactersQuotesAndBackslashesAreEscaped) {
  EXPECT_EQ(quoted("a\nb\r\tc"), "'a\\nb\\r\\tc'");
  EXPECT_EQ(quoted(std::string_view("\0\x1b[31m\x7f", 7)), "'\\x00\\x1b[31m\\x7f'");
  EXPECT_EQ(quoted("it's \\"), "'it\\'s \\\\'");
}

TEST(Quote, CharactersThatEndLinesOrTurnTextAreEscaped) {
  EXPECT_EQ(quoted("\xC2\x85"), "'\\u{85}'");
  EXPECT_EQ(quoted("\u2028\u202e\u2066"), "'\\u{2028}\\u{202e}\\u{2066}'");
}

TEST(Quote, BytesThatAreNotUtf8AreEscapedOneByOne) {
  EXPECT_EQ(quoted("\xff\xfe"), "'\\xff\\xfe'");
  EXPECT_EQ(quoted("\xC0\xAF"), "'\\xc0\\xaf'");  // Overlong.
  EXPECT_EQ(quoted("\xE0\x80\xAF"), "'\\xe0\\x80\\xaf'");
  EXPECT_EQ(quoted("\xED\xA0\x80"), "'\\xed\\xa0\\x80'");  // Surrogate.
  EXPECT_EQ(quoted("\xF4\x90\x80\x80"), "'\\xf4\\x90\\x80\\x80'");
  EXPECT_EQ(quoted("a\xE2\x82"), "'a\\xe2\\x82'");  // Cut off.
}

TEST(Quote, SixtyFourCharactersAreShownAndTheLengthIsGiven) {
  EXPECT_EQ(quoted(std::string(64, 'x')), "'" + std::string(64, 'x') + "'");
  EXPECT_EQ(quoted(std::string(65, 'x')), "'" + std::string(64, 'x') + "'... (65 bytes)");
}

TEST(Quote, ACharacterOfSeveralBytesIsNeverCutInTwo) {
  std::string text;
  std::string shown;
  for (int i = 0; i < 70; ++i) {
    text += "€";
    if (i < 64) shown += "€";
  }
  EXPECT_EQ(quoted(text), "'" + shown + "'... (210 bytes)");
}

TEST(Quote, PrintableTextIsWholeAndKeepsItsQuotes) {
  EXPECT_EQ(printable("it's a\\b"), "it's a\\b");
  EXPECT_EQ(printable("\x1b[31mred\nnext\xc2\x9b\xff"), "\\x1b[31mred\\nnext\\u{9b}\\xff");
  EXPECT_EQ(printable(std::string(100, 'x')), std::string(100, 'x'));
}

RC_GTEST_PROP(QuoteProperty, AnyBytesBecomeOneShortPrintableLine, (const std::string& text)) {
  const std::string line = quoted(text);
  RC_ASSERT(line.size() <= kQuotedCharacters * 8 + 40);
  for (const char c : line) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}

}  // namespace
}  // namespace bide::core
