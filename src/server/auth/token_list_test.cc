#include "server/auth/token_list.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "server/http/identity.h"

namespace bide::server {
namespace {

const Time kNow{std::chrono::hours(490'000)};

TokenList some_tokens() {
  return {{.name = "deploy", .scopes = 3, .created = kNow, .digest = digest_of("one")},
          {.name = "worker.1",
           .scopes = kAllScopes,
           .created = kNow,
           .expires = kNow + Milliseconds(5),
           .digest = digest_of("two")}};
}

TEST(TokenList, ComesBackAsItWasWritten) {
  const Result<TokenList> read = parse_tokens(format_tokens(some_tokens()), "f");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const Token expected = some_tokens()[i];
    EXPECT_EQ((*read)[i].name, expected.name);
    EXPECT_EQ((*read)[i].scopes, expected.scopes);
    EXPECT_EQ((*read)[i].created, expected.created);
    EXPECT_EQ((*read)[i].expires, expected.expires);
    EXPECT_EQ((*read)[i].digest, expected.digest);
  }
}

TEST(TokenList, QueuesComeBackAndMakeAFileThatOlderServersRefuse) {
  TokenList tokens = some_tokens();
  EXPECT_NE(format_tokens(tokens).find("\nbide-tokens 1\n"), std::string::npos);
  tokens[0].queues = {"images", "mail"};
  const std::string text = format_tokens(tokens);
  EXPECT_NE(text.find("\nbide-tokens 2\n"), std::string::npos);
  const Result<TokenList> read = parse_tokens(text, "f");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)[0].queues, tokens[0].queues);
  EXPECT_TRUE((*read)[1].queues.empty());
  std::string wrong = text;
  wrong.replace(wrong.find("images,mail"), 11, "images,../x");
  EXPECT_FALSE(parse_tokens(wrong, "f"));
}

TEST(TokenList, AnEmptyFileHasNoTokens) {
  EXPECT_TRUE(parse_tokens("", "f")->empty());
  EXPECT_TRUE(parse_tokens("# nothing\n\n", "f")->empty());
  EXPECT_TRUE(parse_tokens("bide-tokens 1\r\n", "f")->empty());
}

TEST(TokenList, SaysWhereItIsWrong) {
  const std::string digest(64, '0');
  const std::string head = "bide-tokens 1\n";
  const std::string times = " 2026-01-02T03:04:05Z never ";
  const struct {
    std::string text;
    std::string message;
  } cases[] = {
      {"[server]\n", "f:1: not a file of tokens"},
      {head + "a read" + times + "\n", "f:2: expected NAME"},
      {head + "\n# c\na b c d" + times + digest + "\n", "f:4: expected NAME"},
      {head + "../x read" + times + digest, "f:2: invalid name '../x'"},
      {head + "a rad" + times + digest, "did you mean 'read'?"},
      {head + "a read yesterday never " + digest, "f:2: invalid time 'yesterday'"},
      {head + "a read 2026-01-02T03:04:05Z soon " + digest, "f:2: invalid time 'soon'"},
      {head + "a read" + times + digest + "\na read" + times + digest, "f:3: the name 'a' is there twice"},
  };
  for (const auto& each : cases) {
    const Result<TokenList> read = parse_tokens(each.text, "f");
    ASSERT_FALSE(read) << each.text;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(read.error().message.find(each.message), std::string::npos) << read.error().message;
  }
  EXPECT_EQ(parse_tokens("bide-tokens 3\n", "f").error().code, ErrorCode::kNewerVersion);
}

TEST(TokenList, NeverRepeatsASecretThatSomebodyPasted) {
  const std::string secret = make_token_secret();
  const Result<TokenList> read = parse_tokens("bide-tokens 1\na read 2026-01-02T03:04:05Z never " + secret, "f");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message.find(secret.substr(5)), std::string::npos);
}

TEST(TokenList, HasALimit) {
  std::string text = "bide-tokens 1\n";
  for (std::size_t i = 0; i < kMostTokens; ++i) {
    text += "t" + std::to_string(i) + " read 2026-01-02T03:04:05Z never " + std::string(64, '0') + "\n";
  }
  EXPECT_EQ(parse_tokens(text, "f")->size(), kMostTokens);
  EXPECT_FALSE(parse_tokens(text + "more read 2026-01-02T03:04:05Z never " + std::string(64, '0') + "\n", "f"));
}

TEST(TokenList, FindsATokenByTheDigestOfItsSecret) {
  const TokenList tokens = some_tokens();
  EXPECT_EQ(find_token(tokens, digest_of("one")), &tokens[0]);
  EXPECT_EQ(find_token(tokens, digest_of("two")), &tokens[1]);
  EXPECT_EQ(find_token(tokens, digest_of("three")), nullptr);
  EXPECT_EQ(find_token({}, digest_of("one")), nullptr);
}

}  // namespace
}  // namespace bide::server
