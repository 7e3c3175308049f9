#include "http_client/transfer.h"

#include <gtest/gtest.h>

namespace bide::http_client {
namespace {

Result<Destination> of(const std::string& url) { return destination_of({.url = url}); }

TEST(Destination, NamesTheHostAndThePortThatTheSchemeStandsFor) {
  EXPECT_EQ(of("http://example.org/a?b#c")->key, "http://example.org:80");
  EXPECT_EQ(of("https://example.org")->key, "https://example.org:443");
  EXPECT_EQ(of("http://[::1]:7070/x")->host, "::1");
}

TEST(Destination, RefusesWhatIsNotHttp) {
  for (const char* url : {"ftp://example.org/", "file:///etc/passwd", "gopher://x/", "", "nothing", "http://",
                          "http:///x", "http://a b/", "http://example.org:99999/"}) {
    const Result<Destination> destination = of(url);
    ASSERT_FALSE(destination) << url;
    EXPECT_EQ(destination.error().code, ErrorCode::kInvalidArgument) << url;
  }
}

TEST(Destination, RefusesAUrlWithAPasswordAndDoesNotRepeatIt) {
  const Result<Destination> destination = of("http://me:hunter2@example.org/");
  ASSERT_FALSE(destination);
  EXPECT_EQ(destination.error().message.find("hunter2"), std::string::npos);
}

TEST(Destination, RefusesFieldsAndMethodsThatWouldBeginAnotherLine) {
  EXPECT_FALSE(destination_of({.method = "GET /\r\nHost: x", .url = "http://x/"}));
  EXPECT_FALSE(destination_of({.url = "http://x/", .fields = {{"A", "b\r\nC: d"}}}));
  EXPECT_FALSE(destination_of({.url = "http://x/", .fields = {{"A:b\n", "c"}}}));
  EXPECT_FALSE(destination_of({.url = "http://x/", .fields = {{"", "c"}}}));
  EXPECT_TRUE(destination_of({.url = "http://x/", .fields = {{"A", "any text, even: this"}}}));
}

TEST(Destination, ConnectsToAPinnedAddressOnlyWhenItIsNumeric) {
  EXPECT_EQ(destination_of({.url = "http://x/", .pinned_address = "192.0.2.1"})->connect_to, "::192.0.2.1:");
  EXPECT_EQ(destination_of({.url = "http://x/", .pinned_address = "2001:db8::1"})->connect_to, "::[2001:db8::1]:");
  EXPECT_FALSE(destination_of({.url = "http://x/", .pinned_address = "example.org"}));
  EXPECT_FALSE(destination_of({.url = "http://x/", .pinned_address = "127.1"}));
}

TEST(Destination, ASocketOfTheMachineIsAnotherPlaceThanTheHostOfTheUrl) {
  EXPECT_NE(destination_of({.url = "http://x/", .unix_socket = "/run/bide.sock"})->key, of("http://x/")->key);
}

}  // namespace
}  // namespace bide::http_client
