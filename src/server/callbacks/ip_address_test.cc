#include "server/callbacks/ip_address.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace bide::server
