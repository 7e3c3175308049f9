#include "server/auth/token_list.h"

#include <algorithm>
#include <optional>

#include "core/job_rules.h"
#include "core/quote.h"
#include "core/time_text.h"
#include "server/http/identity.h"

namespace bide::server {
namespace {

constexpr std::string_view kFirstWord = "bide-tokens";
constexpr std::string_view kNever = "never";
constexpr std::string_view kHexDigits = "0123456789abcdef";

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (;;) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (line.empty()) return words;
    const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::optional<TokenDigest> parse_digest(std::string_view text) {
  TokenDigest digest{};
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t value = kHexDigits.find(text[i]);
    if (value == std::string_view::npos) return std::nullopt;
    digest[i / 2] = static_cast<std::uint8_t>(digest[i / 2] * 16u + value);
  }
  return digest;
}

Error invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

Result<Token> parse_token(const std::vector<std::string_view>& words) {
  if (words.size() != 5 && words.size() != 6) return invalid("expected NAME SCOPES CREATED EXPIRES DIGEST [QUEUES]");
  Token token;
  token.name = words[0];
  if (!core::is_name(words[0])) return invalid("invalid name " + core::quoted(words[0]));
  const Result<std::uint8_t> scopes = parse_scopes(words[1]);
  if (!scopes) return scopes.error();
  token.scopes = *scopes;
  const Result<Time> created = core::parse_time(words[2]);
  if (!created) return created.error();
  token.created = *created;
  if (words[3] != kNever) {
    const Result<Time> expires = core::parse_time(words[3]);
    if (!expires) return expires.error();
    token.expires = *expires;
  }
  const std::optional<TokenDigest> digest = parse_digest(words[4]);
  // What is there instead may be a secret that somebody has pasted: it is not repeated.
  if (!digest) return invalid("the last word is not the SHA-256 of a token in 64 hexadecimal digits");
  token.digest = *digest;
  std::string_view queues = words.size() == 6 ? words[5] : std::string_view();
  while (!queues.empty()) {
    const std::size_t comma = std::min(queues.find(','), queues.size());
    const std::string_view queue = queues.substr(0, comma);
    if (!core::is_name(queue)) return invalid("invalid queue name " + core::quoted(queue));
    token.queues.emplace_back(queue);
    queues.remove_prefix(std::min(comma + 1, queues.size()));
  }
  return token;
}

Status check_first_line(const std::vector<std::string_view>& words) {
  if (words.size() == 2 && words[0] == kFirstWord && (words[1] == "1" || words[1] == "2")) return {};
  if (words.size() == 2 && words[0] == kFirstWord) {
    return Error{ErrorCode::kNewerVersion,
                 "version " + core::quoted(words[1]) + " of the file is not known to this bide"};
  }
  return invalid("not a file of tokens: its first line is 'bide-tokens 1'");
}

}  // namespace

Result<TokenList> parse_tokens(std::string_view text, std::string_view where) {
  TokenList tokens;
  bool begun = false;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string_view> words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty() || words[0].starts_with('#')) continue;

    const auto at_line = [&](const Error& error) {
      return Error{error.code, std::string(where) + ":" + std::to_string(number) + ": " + error.message};
    };
    if (!begun) {
      if (const Status first = check_first_line(words); !first) return at_line(first.error());
      begun = true;
      continue;
    }
    Result<Token> token = parse_token(words);
    if (!token) return at_line(token.error());
    const auto same_name = [&](const Token& other) { return other.name == token->name; };
    if (std::any_of(tokens.begin(), tokens.end(), same_name)) {
      return at_line(invalid("the name " + core::quoted(token->name) + " is there twice"));
    }
    if (tokens.size() == kMostTokens) return at_line(invalid("there may be 1000 tokens"));
    tokens.push_back(std::move(*token));
  }
  return tokens;
}

std::string format_tokens(const TokenList& tokens) {
  std::string text =
      "# The tokens of a bide server, hashed. Written by `bide token`. A line that is taken out is a token revoked.\n"
      "bide-tokens ";
  const bool restricts = std::any_of(tokens.begin(), tokens.end(), [](const Token& each) { return !each.queues.empty(); });
  text += restricts ? "2\n" : "1\n";
  for (const Token& token : tokens) {
    text += token.name + " " + scopes_text(token.scopes) + " " + core::format_time(token.created) + " " +
            (token.expires ? core::format_time(*token.expires) : std::string(kNever)) + " ";
    for (const std::uint8_t byte : token.digest) {
      text += kHexDigits[byte >> 4];
      text += kHexDigits[byte & 15];
    }
    for (const std::string& queue : token.queues) text += (&queue == &token.queues.front() ? " " : ",") + queue;
    text += "\n";
  }
  return text;
}

const Token* find_token(const TokenList& tokens, const TokenDigest& digest) {
  const Token* found = nullptr;
  for (const Token& token : tokens) {
    if (same_digest(token.digest, digest)) found = &token;
  }
  return found;
}

}  // namespace bide::server
