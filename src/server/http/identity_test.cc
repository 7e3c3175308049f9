#include "server/http/identity.h"

#include <gtest/gtest.h>

namespace bide::server {
namespace {

TEST(Scopes, AreReadAndWrittenByName) {
  EXPECT_EQ(*parse_scopes("read"), static_cast<std::uint8_t>(Scope::kRead));
  EXPECT_EQ(*parse_scopes("admin,read,write,work"), kAllScopes);
  EXPECT_EQ(scopes_text(kAllScopes), "read,write,work,admin");
  EXPECT_EQ(scopes_text(*parse_scopes("work,read,work")), "read,work");
  EXPECT_EQ(to_string(Scope::kWork), "work");
}

TEST(Scopes, AreRefusedWithTheNameThatIsUnknownAndTheNearest) {
  for (const char* text : {"", "read,", ",read", "READ", "read write", "all"}) EXPECT_FALSE(parse_scopes(text)) << text;
  EXPECT_EQ(parse_scopes("read,wrte").error().message,
            "unknown scope 'wrte'; allowed are read, write, work and admin, joined by commas; did you mean 'write'?");
}

}  // namespace
}  // namespace bide::server
