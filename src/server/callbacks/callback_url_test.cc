#include "server/callbacks/callback_url.h"

#include <gtest/gtest.h>

#include <string>

namespace bide::server {
namespace {

std::string whole(std::string_view text) {
  const auto parsed = parse_callback_url(text);
  if (const auto* problem = std::get_if<UrlProblem>(&parsed)) return "rule " + std::string(problem->rule);
  return std::get<CallbackUrl>(parsed).whole();
}

TEST(CallbackUrl, IsPutTogetherAgainFromItsParts) {
  EXPECT_EQ(whole("http://example.org"), "http://example.org:80/");
  EXPECT_EQ(whole("HTTPS://Hooks.Example.ORG./a/b?c=d&e"), "https://hooks.example.org:443/a/b?c=d&e");
  EXPECT_EQ(whole("http://example.org:9000/x"), "http://example.org:9000/x");
  EXPECT_EQ(whole("http://example.org?q"), "http://example.org:80/?q");
  EXPECT_EQ(whole("http://example.org:/"), "http://example.org:80/");
  EXPECT_EQ(whole("http://[2001:DB8::1]:8080/x"), "http://[2001:db8::1]:8080/x");
  EXPECT_EQ(whole("http://example.org/a@b:c"), "http://example.org:80/a@b:c");
}

TEST(CallbackUrl, AnUnusualNumberIsSentAsWhatItIs) {
  EXPECT_EQ(whole("http://127.1/"), "http://127.0.0.1:80/");
  EXPECT_EQ(whole("http://2130706433/"), "http://127.0.0.1:80/");
  EXPECT_EQ(whole("http://0X7f.1:8080/"), "http://127.0.0.1:8080/");
  EXPECT_EQ(whole("http://[::ffff:127.0.0.1]/"), "http://[::ffff:127.0.0.1]:80/");
}

TEST(CallbackUrl, WhatTwoReadersMightTakeDifferentlyIsRefused) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "url"},
      {"example.org", "scheme"},
      {"/path", "scheme"},
      {"ftp://example.org/", "scheme"},
      {"file:///etc/passwd", "scheme"},
      {"gopher://example.org/", "scheme"},
      {"javascript:alert(1)", "scheme"},
      {" http://example.org/", "scheme"},
      {"http:example.org", "url"},
      {"http:/example.org", "url"},
      {"http:///path", "host"},
      {"http://", "host"},
      {"http://:80/", "host"},
      {"http://user@example.org/", "user information"},
      {"http://user:pass@example.org/", "user information"},
      {"http://example.org:80@127.0.0.1/", "user information"},
      {"http://example.org\\@127.0.0.1/", "url"},
      {"http://exa mple.org/", "url"},
      {"http://example.org/\r\nX: y", "url"},
      {"http://example.org/\x01", "url"},
      {"http://b\xc3\xbc"
       "cher.example/",
       "url"},
      {"http://example.org/{x}", "url"},
      {"http://%31%32%37.0.0.1/", "host"},
      {"http://exa..mple/", "host"},
      {"http://.example/", "host"},
      {"http://example.org:0/", "port"},
      {"http://example.org:65536/", "port"},
      {"http://example.org:8a/", "port"},
      {"http://example.org:-1/", "port"},
      {"http://[::1/", "host"},
      {"http://[::1]x/", "host"},
      {"http://[fe80::1%25eth0]/", "host"},
      {"http://[127.0.0.1]/", "host"},
      {"http://[]/", "host"},
      {"http://example.org/#x", "fragment"},
      {"http://example.org#", "fragment"},
      {"http://1.2.3.4.5/", "host"},
      {"http://256.256.256.256/", "host"},
      {"http://example.09/", "host"},
      {"http://0x7f.example.0x/", "host"},
  };
  for (const auto& [text, rule] : cases) EXPECT_EQ(whole(text), "rule " + std::string(rule)) << text;
  EXPECT_EQ(whole("http://example.org/" + std::string(5000, 'a')), "rule url");
  EXPECT_EQ(whole("http://" + std::string(64, 'a') + ".org/"), "rule host");
}

TEST(CallbackUrl, ShowsNoQuery) {
  const auto url = std::get<CallbackUrl>(parse_callback_url("https://example.org/hook?token=secret"));
  EXPECT_EQ(url.shown(), "https://example.org:443/hook?***");
  EXPECT_EQ(url.host_key(), "example.org:443");
}

TEST(CallbackUrl, NamesBelowOneDomainAreOneSite) {
  const auto site = [](std::string_view text) { return std::get<CallbackUrl>(parse_callback_url(text)).site(); };
  EXPECT_EQ(site("http://a.b.example.org/"), "example.org");
  EXPECT_EQ(site("http://example.org:81/"), "example.org");
  EXPECT_EQ(site("http://localhost/"), "localhost");
  EXPECT_EQ(site("http://192.0.2.1/"), "192.0.2.1");
  EXPECT_EQ(site("http://[2001:db8::1]/"), "2001:db8::1");
}

TEST(CallbackUrl, AProblemDoesNotRepeatAPassword) {
  const auto problem = std::get<UrlProblem>(parse_callback_url("http://ann:hunter2@example.org/"));
  EXPECT_EQ(problem.text.find("hunter2"), std::string::npos);
}

}  // namespace
}  // namespace bide::server
