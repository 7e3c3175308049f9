// The tokens of a server, as text and to be searched. The text has a line for each:
//
//   # comments
//   bide-tokens 1                          2 when a token is restricted to queues, so that an older server refuses it
//   NAME SCOPES CREATED EXPIRES DIGEST [QUEUE,QUEUE...]
//   deploy read,write 2026-01-02T03:04:05.678Z never 9f86d081884c7d65...

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "bide/result.h"
#include "server/auth/token.h"

namespace bide::server {

using TokenList = std::vector<Token>;

// Every one is compared with every secret that is shown, so there cannot be very many.
inline constexpr std::size_t kMostTokens = 1'000;

// kInvalidArgument: `where`:LINE, and what is wrong with it. kNewerVersion.
Result<TokenList> parse_tokens(std::string_view text, std::string_view where);
std::string format_tokens(const TokenList& tokens);

// The token with this digest, or null. It takes the same time whether it is there or not, and where.
const Token* find_token(const TokenList& tokens, const TokenDigest& digest);

}  // namespace bide::server
