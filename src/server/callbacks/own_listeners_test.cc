#include "server/callbacks/own_listeners.h"

#include <gtest/gtest.h>

#include "http_client/local_addresses.h"

namespace bide::server {
namespace {

bool has(const std::string& listen, std::string_view address, std::uint16_t port) {
  OwnListeners own;
  own.set({parse_listen_address(listen).value()});
  return own.has(parse_ip(address).value(), port);
}

TEST(OwnListeners, TheAddressThatIsListenedOnIsOurs) {
  EXPECT_TRUE(has("127.0.0.1:7070", "127.0.0.1", 7070));
  EXPECT_TRUE(has("[::1]:7070", "::1", 7070));
  EXPECT_TRUE(has("127.0.0.1:7070", "::ffff:127.0.0.1", 7070));
  EXPECT_TRUE(has("127.0.0.1:7070", "0.0.0.0", 7070));
  EXPECT_TRUE(has("[::1]:7070", "::", 7070));
}

TEST(OwnListeners, AnotherPortOrAddressIsNot) {
  EXPECT_FALSE(has("127.0.0.1:7070", "127.0.0.1", 7071));
  EXPECT_FALSE(has("127.0.0.1:7070", "10.0.0.1", 7070));
  EXPECT_FALSE(has("10.0.0.1:7070", "0.0.0.0", 7070));
  EXPECT_FALSE(has("unix:/run/bide.sock", "127.0.0.1", 7070));
}

TEST(OwnListeners, ListeningEverywhereIsListeningOnEveryAddressOfTheMachine) {
  for (const char* everywhere : {"0.0.0.0:7070", "[::]:7070"}) {
    EXPECT_TRUE(has(everywhere, "127.0.0.1", 7070));
    EXPECT_TRUE(has(everywhere, "127.8.9.10", 7070));
    EXPECT_TRUE(has(everywhere, "::1", 7070));
    EXPECT_TRUE(has(everywhere, "0.0.0.0", 7070));
    EXPECT_FALSE(has(everywhere, "192.0.2.1", 7070));  // Nobody's: for documentation.
    OwnListeners own;
    own.set({parse_listen_address(everywhere).value()});
    for (const http_client::HttpAddress& each : http_client::local_addresses()) {
      const bool v6 = each.family == http_client::HttpAddress::Family::kIpv6;
      EXPECT_TRUE(own.has(IpAddress{v6, each.bytes}, 7070)) << each.to_string();
    }
  }
}

}  // namespace
}  // namespace bide::server
