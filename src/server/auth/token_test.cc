#include "server/auth/token.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace bide::server {
namespace {

TEST(Token, SecretsHaveOneFormAndAreNeverTheSame) {
  std::set<std::string> seen;
  for (int i = 0; i < 1'000; ++i) {
    const std::string secret = make_token_secret();
    EXPECT_EQ(secret.size(), kTokenCharacters);
    EXPECT_TRUE(secret.starts_with(kTokenPrefix));
    EXPECT_EQ(secret.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
              std::string::npos);
    seen.insert(secret);
  }
  EXPECT_EQ(seen.size(), 1'000u);
}

TEST(Token, DigestIsSha256) {
  const TokenDigest digest = digest_of("abc");  // The example of FIPS 180-2.
  const TokenDigest expected = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40,
                                0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17,
                                0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
  EXPECT_EQ(digest, expected);
  EXPECT_TRUE(same_digest(digest, expected));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    TokenDigest other = expected;
    other[i] ^= 1;
    EXPECT_FALSE(same_digest(digest, other));
  }
}

TEST(Token, IsGoodUntilItExpires) {
  const Time expires{std::chrono::hours(1)};
  const Token token = {.expires = expires};
  EXPECT_TRUE(token.is_good_at(expires - Milliseconds(1)));
  EXPECT_FALSE(token.is_good_at(expires));
  EXPECT_TRUE(Token().is_good_at(expires));
}

}  // namespace
}  // namespace bide::server
