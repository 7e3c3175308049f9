#include "server/callbacks/address_policy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "http_client/http_client.h"

namespace bide::server {
namespace {

AddressPolicy policy(std::string_view mode, const std::vector<std::string>& allow = {}) {
  return AddressPolicy::make(mode, allow).value();
}

// "ok", or the rule that blocks.
std::string rule_of(const Status& status) {
  if (status) return "ok";
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  const std::string& text = status.error().message;
  const std::size_t from = text.find("(rule: ") + 7;
  return text.substr(from, text.find(')', from) - from);
}

std::string checked(const AddressPolicy& policy, std::string_view url) {
  return rule_of(policy.check(url));
}

std::string connected(const AddressPolicy& policy, std::string_view host, std::string_view address,
                      std::uint16_t port = 80) {
  return rule_of(policy.check_address(host, *parse_ip(address), port));
}

TEST(AddressPolicy, OffAllowsNothing) {
  EXPECT_EQ(checked({}, "https://example.org/"), "off");
  EXPECT_EQ(checked(policy("off", {"example.org"}), "https://example.org/"), "off");
  EXPECT_EQ(connected({}, "example.org", "8.8.8.8"), "off");
}

TEST(AddressPolicy, PublicOnlyBlocksEveryWayToWriteAnAddressThatIsNotPublic) {
  const AddressPolicy only_public = policy("public-only");
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"https://example.org/", "ok"}, {"http://8.8.8.8/", "ok"}, {"http://[2606:4700::1111]/", "ok"},
      {"http://example.org:8080/", "ok"}, {"ftp://example.org/", "scheme"}, {"file:///etc/passwd", "scheme"},
      {"http://127.0.0.1/", "loopback"}, {"http://127.1/", "loopback"}, {"http://2130706433/", "loopback"},
      {"http://0x7f.1/", "loopback"}, {"http://0177.0.0.1/", "loopback"}, {"http://017700000001/", "loopback"},
      {"http://0/", "unspecified address"}, {"http://[::]/", "unspecified address"}, {"http://[::1]/", "loopback"},
      {"http://[::ffff:127.0.0.1]/", "loopback"}, {"http://[::ffff:7f00:1]/", "loopback"},
      {"http://[64:ff9b::127.0.0.1]/", "loopback"}, {"http://[2002:7f00:1::]/", "loopback"},
      {"http://[2001:0:1::1]/", "Teredo"}, {"http://169.254.169.254/latest/meta-data/", "link-local"},
      {"http://[fe80::1]/", "link-local"}, {"http://[fd00::1]/", "unique local address"},
      {"http://10.0.0.1/", "private network"}, {"http://100.64.0.1/", "carrier-grade NAT"},
      {"http://224.0.0.1/", "multicast"}, {"http://203.0.113.9/", "documentation"},
      {"http://134744072/", "numeric form"}, {"http://localhost/", "local name"}, {"http://LOCALHOST./", "local name"},
      {"http://a.localhost/", "local name"}, {"http://metadata.google.internal/", "local name"},
      {"http://printer.local/", "local name"}, {"http://intranet/", "local name"},
      {"http://example.org:22/", "port"}, {"http://8.8.8.8:6379/", "port"},
      {"http://user:pass@example.org/", "user information"},
  };
  for (const auto& [url, rule] : cases) EXPECT_EQ(checked(only_public, url), rule) << url;
}

TEST(AddressPolicy, ANameThatLeadsToAnAddressThatIsNotPublicIsBlockedAtSend) {
  const AddressPolicy only_public = policy("public-only");
  EXPECT_EQ(connected(only_public, "rebind.example.org", "127.0.0.1"), "loopback");
  EXPECT_EQ(connected(only_public, "rebind.example.org", "::ffff:10.0.0.1"), "private network");
  EXPECT_EQ(connected(only_public, "rebind.example.org", "169.254.169.254"), "link-local");
  EXPECT_EQ(connected(only_public, "example.org", "8.8.8.8"), "ok");
  EXPECT_EQ(connected(only_public, "example.org", "8.8.8.8", 25), "port");
}

TEST(AddressPolicy, AnAllowListAllowsWhatItNames) {
  const AddressPolicy listed =
      policy("allow-list", {"hooks.example.org", "*.trusted.example:9443", "10.1.0.0/16", "127.0.0.1:*", "[fd00::]/8"});
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"https://hooks.example.org/", "ok"}, {"https://HOOKS.example.org./", "ok"},
      {"https://hooks.example.org:9000/", "allow-list"}, {"https://example.org/", "allow-list"},
      {"https://xhooks.example.org/", "allow-list"}, {"https://a.hooks.example.org/", "allow-list"},
      {"https://a.trusted.example:9443/", "ok"}, {"https://trusted.example:9443/", "allow-list"},
      {"https://a.trusted.example/", "allow-list"}, {"https://untrusted.example:9443/", "allow-list"},
      {"http://10.1.2.3/", "ok"}, {"http://10.2.0.1/", "private network"}, {"http://127.0.0.1:1234/", "ok"},
      {"http://127.1:1234/", "ok"}, {"http://[::ffff:127.0.0.1]:1/", "ok"}, {"http://127.0.0.2:1234/", "loopback"},
      {"http://[fd12::1]/", "ok"}, {"http://8.8.8.8/", "allow-list"},
  };
  for (const auto& [url, rule] : cases) EXPECT_EQ(checked(listed, url), rule) << url;
}

TEST(AddressPolicy, AListedNameMayBePrivateButNeverMetadata) {
  const AddressPolicy listed = policy("allow-list", {"hooks.internal", "*.example.org", "10.1.0.0/16"});
  EXPECT_EQ(connected(listed, "hooks.internal", "127.0.0.1"), "ok");
  EXPECT_EQ(connected(listed, "hooks.internal", "192.168.0.1"), "ok");
  EXPECT_EQ(connected(listed, "hooks.internal", "169.254.169.254"), "link-local");
  EXPECT_EQ(connected(listed, "hooks.internal", "::ffff:169.254.169.254"), "link-local");
  EXPECT_EQ(connected(listed, "hooks.internal", "8.8.8.8", 25), "allow-list");
  EXPECT_EQ(connected(listed, "a.example.org", "8.8.8.8"), "ok");
  EXPECT_EQ(connected(listed, "a.example.org", "127.0.0.1"), "loopback");
  EXPECT_EQ(connected(listed, "a.example.org", "10.1.0.1"), "ok");
  EXPECT_EQ(connected(listed, "other.example", "8.8.8.8"), "allow-list");
}

TEST(AddressPolicy, AListAddsToPublicOnly) {
  const AddressPolicy both = policy("public-only", {"127.0.0.1:9000", "localhost:9000"});
  EXPECT_EQ(checked(both, "http://127.0.0.1:9000/"), "ok");
  EXPECT_EQ(checked(both, "http://127.0.0.1:9001/"), "loopback");
  EXPECT_EQ(checked(both, "http://localhost:9000/"), "ok");
  EXPECT_EQ(connected(both, "localhost", "127.0.0.1", 9000), "ok");
  EXPECT_EQ(connected(both, "localhost", "::1", 9000), "ok");
  EXPECT_EQ(checked(both, "https://example.org/"), "ok");
}

TEST(AddressPolicy, AMistakeInTheListIsNamed) {
  for (const std::string text : {"", "http://example.org", "example.org/path", "10.0.0.1/8", "host:0", "host:x", "a b",
                                 "*", "*.", "user@host", "127.1", "[::1", "host:1:2:3.4"}) {
    const auto made = AddressPolicy::make("public-only", {text});
    ASSERT_FALSE(made) << text;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(AddressPolicy::make("public"));
  EXPECT_FALSE(AddressPolicy::make("allow-list"));
}

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
