// Token: a name for somebody who may ask the server, what they may do, and how their secret is known again.
//
// The secret is `bide_` and 256 random bits in base64url. Only its SHA-256 is kept. That is enough because nobody can
// guess 256 bits: a slow hash, or a salt, protects passwords that people have thought up, and would here only let
// strangers keep the server busy by showing wrong tokens.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job.h"

namespace bide::server {

using TokenDigest = std::array<std::uint8_t, 32>;

struct Token {
  std::string name = {};
  std::uint8_t scopes = 0;  // Of Scope, together.
  Time created = {};
  std::optional<Time> expires = {};  // Nothing: never.
  TokenDigest digest = {};
  std::vector<std::string> queues = {};  // Only these; empty: all.

  bool is_good_at(Time now) const { return !expires || now < *expires; }
};

inline constexpr std::string_view kTokenPrefix = "bide_";
inline constexpr std::size_t kTokenCharacters = 48;

std::string make_token_secret();
TokenDigest digest_of(std::string_view secret);
// In a time that does not depend on what is in them.
bool same_digest(const TokenDigest& a, const TokenDigest& b);

}  // namespace bide::server
