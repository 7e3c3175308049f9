#include "server/http/request_head.h"

#include <gtest/gtest.h>

namespace bide::server {
namespace {

Target target_of(std::string_view text) { return std::get<Target>(parse_target(text)); }
std::string code_of(std::string_view text) { return std::get<wire::Problem>(parse_target(text)).code; }

TEST(Target, IsAPathAndAQuery) {
  EXPECT_EQ(target_of("/v1/jobs").path, "/v1/jobs");
  EXPECT_TRUE(target_of("/v1/jobs").query.empty());
  const Target target = target_of("/v1/jobs?state=dead&q=a%20b+c&empty=&flag");
  EXPECT_EQ(target.path, "/v1/jobs");
  EXPECT_EQ(target.query.at("state"), "dead");
  EXPECT_EQ(target.query.at("q"), "a b c");
  EXPECT_EQ(target.query.at("empty"), "");
  EXPECT_EQ(target.query.at("flag"), "");
  EXPECT_EQ(target_of("*").path, "*");
}

TEST(Target, OfAProxyNamesTheHost) {
  EXPECT_EQ(target_of("http://example.org/a?b=c").path, "/a");
  EXPECT_EQ(target_of("http://example.org/a?b=c").authority, "example.org");
  EXPECT_EQ(target_of("HTTPS://[::1]:80").authority, "[::1]:80");
  EXPECT_EQ(target_of("/a").authority, "");
  EXPECT_EQ(target_of("https://example.org").path, "/");
  EXPECT_EQ(target_of("http://example.org?b=c").query.at("b"), "c");
}

TEST(Target, KeepsAnEscapedSlashInItsSegment) { EXPECT_EQ(target_of("/v1/queues/a%2Fb").path, "/v1/queues/a%2Fb"); }

TEST(Target, RefusesWhatCannotBeDecoded) {
  for (const char* text : {"/a%", "/a%2", "/a%zz", "/a%00b", "/?a=%", "/?%=a", "/?a=%00", "jobs", "example.org:80", "http://",
                           "http:///a", "http://user@localhost/a", "https://?a=b"}) {
    EXPECT_EQ(code_of(text), "invalid_target") << text;
  }
  EXPECT_EQ(code_of("/?a=1&a=2"), "duplicate_parameter");
}

}  // namespace
}  // namespace bide::server
