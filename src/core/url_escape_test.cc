#include "core/url_escape.h"

#include <gtest/gtest.h>

namespace bide::core {
namespace {

TEST(UrlEscape, EscapesBecomeWhatTheyStandFor) {
  EXPECT_EQ(unescape_url("").value(), "");
  EXPECT_EQ(unescape_url("a+b/c").value(), "a+b/c");
  EXPECT_EQ(unescape_url("a%3Fb%2fc%25%20").value(), "a?b/c% ");
  EXPECT_EQ(unescape_url("%ff").value(), "\xff");
}

TEST(UrlEscape, WhatIsNoEscapeIsRefusedWithoutRepeatingIt) {
  for (const char* text : {"%", "secret%", "secret%4", "secret%4g", "secret%zz", "secret%00"}) {
    const auto refused = unescape_url(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.error().message.find("secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace bide::core
