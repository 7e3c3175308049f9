#include "server/callbacks/ip_address.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace bide::server {
namespace {

std::string loose(std::string_view text) {
  const auto address = parse_loose_ipv4(text);
  return address ? address->to_string() : "none";
}

TEST(IpAddress, TheUsualFormsAreRead) {
  EXPECT_EQ(parse_ip("192.0.2.1")->to_string(), "192.0.2.1");
  EXPECT_EQ(parse_ip("2001:DB8:0::1")->to_string(), "2001:db8::1");
  EXPECT_EQ(parse_ip("::ffff:1.2.3.4")->to_string(), "::ffff:1.2.3.4");
}

TEST(IpAddress, OtherFormsAreNotUsual) {
  for (const std::string_view text :
       {"", "127.1", "0177.0.0.1", "1.2.3.4.5", "1.2.3.256", "fe80::1%eth0", "[::1]", " 1.2.3.4", "1.2.3.4 ", "::g"}) {
    EXPECT_FALSE(parse_ip(text)) << text;
  }
  EXPECT_FALSE(parse_ip(std::string_view("1.2.3.4\0x", 9)));
}

TEST(IpAddress, EveryNumericFormThatAResolverTakesIsRead) {
  EXPECT_EQ(loose("127.1"), "127.0.0.1");
  EXPECT_EQ(loose("127.0.1"), "127.0.0.1");
  EXPECT_EQ(loose("2130706433"), "127.0.0.1");
  EXPECT_EQ(loose("0x7f.1"), "127.0.0.1");
  EXPECT_EQ(loose("0x7F000001"), "127.0.0.1");
  EXPECT_EQ(loose("0177.0.0.1"), "127.0.0.1");
  EXPECT_EQ(loose("017700000001"), "127.0.0.1");
  EXPECT_EQ(loose("0300.0250.257"), "192.168.1.1");
  EXPECT_EQ(loose("127.0.0.1."), "127.0.0.1");
  EXPECT_EQ(loose("0"), "0.0.0.0");
  EXPECT_EQ(loose("0x"), "0.0.0.0");
}

TEST(IpAddress, WhatDoesNotFitIsNoAddress) {
  for (const std::string_view text : {"4294967296", "256.1", "1.16777216", "1.2.65536", "1.2.3.256", "1.2.3.4.5",
                                      "1..2", "09", "0xg", "1.2.3.-4", "", "."}) {
    EXPECT_EQ(loose(text), "none") << text;
  }
}

TEST(IpAddress, ANameWhoseLastLabelIsANumberLooksLikeAnAddress) {
  for (const std::string_view text : {"127.1", "example.1", "1", "0x7f", "a.0x1f", "127.0.0.1.", "09"}) {
    EXPECT_TRUE(looks_like_ipv4(text)) << text;
  }
  for (const std::string_view text : {"example.org", "1.example", "0xg", "a1", ""}) {
    EXPECT_FALSE(looks_like_ipv4(text)) << text;
  }
}

TEST(IpAddress, ARangeHoldsWhatSharesItsPrefix) {
  const auto range = parse_ip_range("172.16.0.0/12");
  ASSERT_TRUE(range);
  EXPECT_TRUE(range->contains(*parse_ip("172.16.0.0")));
  EXPECT_TRUE(range->contains(*parse_ip("172.31.255.255")));
  EXPECT_FALSE(range->contains(*parse_ip("172.32.0.0")));
  EXPECT_FALSE(range->contains(*parse_ip("::ffff:172.16.0.0")));
  EXPECT_TRUE(parse_ip_range("0.0.0.0/0")->contains(*parse_ip("8.8.8.8")));
  EXPECT_TRUE(parse_ip_range("::1")->contains(*parse_ip("::1")));
  EXPECT_FALSE(parse_ip_range("::1")->contains(*parse_ip("::2")));
}

TEST(IpAddress, ARangeWithBitsBehindItsPrefixIsRefused) {
  for (const std::string_view text :
       {"10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8x", "::1/127", "a/8"}) {
    EXPECT_FALSE(parse_ip_range(text)) << text;
  }
}

std::string rule(std::string_view text) {
  const auto found = find_address_rule(*parse_ip(text));
  return found ? std::string(found->name) : "public";
}

TEST(AddressRules, PublicAddressesArePublic) {
  for (const std::string_view text :
       {"8.8.8.8", "1.1.1.1", "93.184.216.34", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.0",
        "169.253.0.1", "192.0.1.1", "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2a00:1450:4001::1",
        "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1"}) {
    EXPECT_EQ(rule(text), "public") << text;
  }
}

TEST(AddressRules, EverySpecialRangeIsNamed) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"0.0.0.0", "unspecified address"}, {"0.1.2.3", "unspecified address"}, {"10.255.0.1", "private network"},
      {"100.64.0.1", "carrier-grade NAT"}, {"100.100.100.200", "cloud metadata"}, {"127.0.0.1", "loopback"},
      {"127.255.255.255", "loopback"}, {"168.63.129.16", "cloud metadata"}, {"169.254.169.254", "link-local"},
      {"172.16.0.1", "private network"}, {"172.31.255.255", "private network"}, {"192.0.0.1", "protocol assignments"},
      {"192.0.2.1", "documentation"}, {"192.88.99.1", "6to4 relay"}, {"192.168.1.1", "private network"},
      {"198.18.0.1", "benchmarking"}, {"198.19.255.255", "benchmarking"}, {"198.51.100.1", "documentation"},
      {"203.0.113.1", "documentation"}, {"224.0.0.1", "multicast"}, {"239.255.255.255", "multicast"},
      {"240.0.0.1", "reserved"}, {"255.255.255.255", "broadcast"},
      {"::", "unspecified address"}, {"::1", "loopback"}, {"fc00::1", "unique local address"},
      {"fdff::1", "unique local address"}, {"fd00:ec2::254", "cloud metadata"}, {"fe80::1", "link-local"},
      {"febf::1", "link-local"}, {"fec0::1", "site-local"}, {"ff02::1", "multicast"}, {"2001::1", "Teredo"},
      {"2001:db8::1", "documentation"}, {"2001:2::1", "protocol assignments"}, {"3fff::1", "documentation"},
      {"100::1", "discard-only"}, {"64:ff9b:1::1", "local NAT64"}, {"5f00::1", "segment routing"},
      {"4000::1", "unassigned"}, {"1::1", "unassigned"}, {"::7", "unassigned"},
  };
  for (const auto& [text, name] : cases) EXPECT_EQ(rule(text), name) << text;
}

TEST(AddressRules, AnAddressInsideAnotherIsJudgedItself) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"::ffff:127.0.0.1", "loopback"},          {"::ffff:7f00:1", "loopback"},
      {"::ffff:0:127.0.0.1", "loopback"},        {"::127.0.0.1", "loopback"},
      {"::ffff:169.254.169.254", "link-local"},  {"64:ff9b::10.0.0.1", "private network"},
      {"64:ff9b::a9fe:a9fe", "link-local"},      {"2002:7f00:1::", "loopback"},
      {"2002:c0a8:101::1", "private network"},   {"2606:4700::5efe:10.0.0.1", "private network"},
      {"2606:4700::200:5efe:127.0.0.1", "loopback"},
  };
  for (const auto& [text, name] : cases) EXPECT_EQ(rule(text), name) << text;
}

TEST(AddressRules, NobodyIsLedToLinkLocalAndMetadataAddressesByAName) {
  for (const std::string_view text : {"169.254.169.254", "fe80::1", "fd00:ec2::254", "224.0.0.1", "0.0.0.0", "::",
                                      "::ffff:169.254.169.254", "255.255.255.255", "168.63.129.16"}) {
    EXPECT_TRUE(find_address_rule(*parse_ip(text))->never) << text;
  }
  for (const std::string_view text : {"127.0.0.1", "10.0.0.1", "::1", "fd12::1", "192.168.0.1"}) {
    EXPECT_FALSE(find_address_rule(*parse_ip(text))->never) << text;
  }
}

}  // namespace
}  // namespace bide::server
