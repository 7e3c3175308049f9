#include "server/auth/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "platform/fatal.h"

namespace bide::server {
namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

std::string make_token_secret() {
  std::array<std::uint8_t, 33> random{};  // The last byte stays zero: 43 letters hold 258 bits.
  platform::require(RAND_priv_bytes(random.data(), 32) == 1, "the system gives random bytes");
  std::string secret(kTokenPrefix);
  for (std::size_t i = 0; i < random.size(); i += 3) {
    const unsigned three = static_cast<unsigned>(random[i] << 16 | random[i + 1] << 8 | random[i + 2]);
    for (const int shift : {18, 12, 6, 0}) secret += kLetters[three >> shift & 63];
  }
  secret.resize(kTokenCharacters);
  return secret;
}

TokenDigest digest_of(std::string_view secret) {
  TokenDigest digest{};
  unsigned size = 0;
  const int done = EVP_Digest(secret.data(), secret.size(), digest.data(), &size, EVP_sha256(), nullptr);
  platform::require(done == 1 && size == digest.size(), "SHA-256 is there");
  return digest;
}

bool same_digest(const TokenDigest& a, const TokenDigest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace bide::server
