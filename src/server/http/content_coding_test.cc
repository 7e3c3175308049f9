#include "server/http/content_coding.h"

#include <gtest/gtest.h>

namespace bide::server {
namespace {

// Up to so many bytes.
auto appended_to(std::string& out, std::size_t most = 1'000'000) {
  return [&out, most](std::string_view piece) {
    if (piece.size() > most - out.size()) return false;
    out += piece;
    return true;
  };
}

TEST(ContentCoding, ComesBackAsItWas) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i) + ",";
  const std::string zipped = gzip(text);
  EXPECT_LT(zipped.size(), text.size());
  // In pieces of any size.
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, zipped.size()}) {
    Gunzip gunzip;
    std::string back;
    for (std::size_t at = 0; at < zipped.size(); at += piece) {
      EXPECT_FALSE(gunzip.is_complete());
      ASSERT_EQ(gunzip.push(std::string_view(zipped).substr(at, piece), appended_to(back)), Gunzip::Result::kOk);
    }
    EXPECT_TRUE(gunzip.is_complete());
    EXPECT_EQ(back, text);
  }
}

TEST(ContentCoding, OfTwoFilesOneAfterTheOtherIsBoth) {
  Gunzip gunzip;
  std::string back;
  ASSERT_EQ(gunzip.push(gzip("one ") + gzip("two"), appended_to(back)), Gunzip::Result::kOk);
  EXPECT_TRUE(gunzip.is_complete());
  EXPECT_EQ(back, "one two");
}

TEST(ContentCoding, StopsABombAtTheLimit) {
  const std::string bomb = gzip(std::string(10'000'000, 'a'));
  ASSERT_LT(bomb.size(), 100'000u);
  Gunzip gunzip;
  std::string back;
  std::size_t calls = 0;
  const auto count = [&](std::string_view piece) {
    ++calls;
    return appended_to(back)(piece);
  };
  EXPECT_EQ(gunzip.push(bomb, count), Gunzip::Result::kStopped);
  EXPECT_LE(back.size(), 1'000'000u);
  EXPECT_LT(calls, 100u) << "it was not inflated beyond";
}

TEST(ContentCoding, SaysWhenItIsNotGzip) {
  std::string back;
  EXPECT_EQ(Gunzip().push("{\"kind\":\"a\"}", appended_to(back)), Gunzip::Result::kBroken);
  std::string damaged = gzip(std::string(100, 'a'));
  damaged[damaged.size() - 6] = static_cast<char>(damaged[damaged.size() - 6] ^ 1);
  EXPECT_EQ(Gunzip().push(damaged, appended_to(back)), Gunzip::Result::kBroken);
  EXPECT_EQ(Gunzip().push(gzip("a") + "rest", appended_to(back)), Gunzip::Result::kBroken);
}

TEST(ContentCoding, IsUsedForThoseWhoAcceptIt) {
  EXPECT_TRUE(accepts_gzip("gzip"));
  EXPECT_TRUE(accepts_gzip("GZIP"));
  EXPECT_FALSE(accepts_gzip("GZIP;Q=0"));
  EXPECT_TRUE(accepts_gzip("br, gzip;q=0.5"));
  EXPECT_TRUE(accepts_gzip("deflate , *"));
  EXPECT_FALSE(accepts_gzip(""));
  EXPECT_FALSE(accepts_gzip("br"));
  EXPECT_FALSE(accepts_gzip("gzip;q=0"));
  EXPECT_FALSE(accepts_gzip("gzip; q=0.000"));
  EXPECT_TRUE(is_compressible("application/problem+json"));
  EXPECT_TRUE(is_compressible("text/html; charset=utf-8"));
  EXPECT_FALSE(is_compressible("text/event-stream"));
  EXPECT_FALSE(is_compressible("image/png"));
}

}  // namespace
}  // namespace bide::server
