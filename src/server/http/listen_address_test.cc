#include "server/http/listen_address.h"

#include <gtest/gtest.h>

namespace bide::server {
namespace {

TEST(ListenAddress, IsAnAddressAndAPortOrAPath) {
  const auto text = [](std::string_view given) { return to_string(parse_listen_address(given).value()); };
  EXPECT_EQ(text("127.0.0.1:7070"), "127.0.0.1:7070");
  EXPECT_EQ(text("localhost:1"), "127.0.0.1:1");
  EXPECT_EQ(text("[::1]:7070"), "[::1]:7070");
  EXPECT_EQ(text("0.0.0.0:0"), "0.0.0.0:0");
  EXPECT_EQ(text("7070"), "127.0.0.1:7070");
  EXPECT_EQ(text("unix:/run/bide.sock"), "unix:/run/bide.sock");
}

TEST(ListenAddress, IsLocalWhenOnlyThisMachineReachesIt) {
  const auto is_local = [](std::string_view given) { return parse_listen_address(given).value().is_local(); };
  EXPECT_TRUE(is_local("127.0.0.1:1"));
  EXPECT_TRUE(is_local("127.8.8.8:1"));
  EXPECT_TRUE(is_local("[::1]:1"));
  EXPECT_TRUE(is_local("unix:x"));
  EXPECT_FALSE(is_local("0.0.0.0:1"));
  EXPECT_FALSE(is_local("[::]:1"));
  EXPECT_FALSE(is_local("192.168.1.1:1"));
}

TEST(ListenAddress, RefusesTheRestWithAnExample) {
  for (const char* given : {"", ":", "a", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:1x",
                            "example.org:80", "::1:7070", "[127.0.0.1]:80", "unix:", ":7070", "127.1:80"}) {
    const auto address = parse_listen_address(given);
    ASSERT_FALSE(address) << given;
    EXPECT_EQ(address.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(address.error().message.find("127.0.0.1:7070"), std::string::npos);
  }
  EXPECT_FALSE(parse_listen_address("unix:/" + std::string(200, 'a')));
}

}  // namespace
}  // namespace bide::server
