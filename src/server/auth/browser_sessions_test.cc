#include "server/auth/browser_sessions.h"

#include <gtest/gtest.h>

#include <string>

#include "support/virtual_clock.h"

namespace bide::server {
namespace {

Request with_cookie(const std::string& cookies, const std::string& host = "127.0.0.1:7070") {
  Request request;
  request.fields = {{"host", host}, {"cookie", cookies}};
  return request;
}

TEST(BrowserSessions, AreFoundByTheirCookieUntilTheyAreClosed) {
  BrowserSessions sessions;
  const std::string secret = sessions.open({.token = digest_of("a token")});
  const Request request = with_cookie("theme=dark; bide_session_7070=" + secret + "; other=1");
  const auto found = sessions.find(request);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->token, digest_of("a token"));
  EXPECT_FALSE(sessions.find(with_cookie("bide_session_7070=" + make_token_secret())));
  EXPECT_FALSE(sessions.find(with_cookie("")));
  EXPECT_FALSE(sessions.find(with_cookie("bide_session_7070")));
  sessions.close(request);
  EXPECT_FALSE(sessions.find(request));
}

TEST(BrowserSessions, OfTwoPortsOfAHostAreApart) {
  EXPECT_EQ(BrowserSessions::cookie_name(with_cookie("", "localhost:7071")), "bide_session_7071");
  EXPECT_EQ(BrowserSessions::cookie_name(with_cookie("", "[::1]:7071")), "bide_session_7071");
  EXPECT_EQ(BrowserSessions::cookie_name(with_cookie("", "[::1]")), "bide_session");
  EXPECT_EQ(BrowserSessions::cookie_name(with_cookie("", "jobs.example.com")), "bide_session");
  EXPECT_EQ(BrowserSessions::cookie_name(with_cookie("", "x:1;evil=1")), "bide_session");
}

TEST(BrowserSessions, AreBounded) {
  BrowserSessions sessions;
  const auto is_open = [&](const std::string& secret) {
    return sessions.find(with_cookie("bide_session_7070=" + secret)).has_value();
  };
  const std::string first = sessions.open({.token = digest_of("a")});
  std::string last;
  for (std::size_t i = 0; i < BrowserSessions::kMost; ++i) last = sessions.open({.token = digest_of(std::to_string(i))});
  EXPECT_FALSE(is_open(first));
  EXPECT_TRUE(is_open(last));
}

TEST(BrowserSessions, NobodySignsOthersOutBySigningInAgainAndAgain) {
  BrowserSessions sessions;
  const auto is_open = [&](const std::string& secret) {
    return sessions.find(with_cookie("bide_session_7070=" + secret)).has_value();
  };
  const std::string other = sessions.open({.token = digest_of("of another")});
  const std::string first = sessions.open({.token = digest_of("a")});
  for (std::size_t i = 0; i < 2 * BrowserSessions::kMost; ++i) sessions.open({.token = digest_of("a")});
  EXPECT_TRUE(is_open(other));
  EXPECT_FALSE(is_open(first));
}

TEST(BrowserSessions, AreOverWhenNobodyUsesThem) {
  support::VirtualClock clock;
  BrowserSessions sessions(clock);
  const Request request = with_cookie("bide_session_7070=" + sessions.open({}));
  clock.advance(BrowserSessions::kIdle - Milliseconds(1'000));
  EXPECT_TRUE(sessions.find(request));
  clock.advance(BrowserSessions::kIdle - Milliseconds(1'000));
  EXPECT_TRUE(sessions.find(request));
  clock.advance(BrowserSessions::kIdle + Milliseconds(1'000));
  EXPECT_FALSE(sessions.find(request));
}

TEST(BrowserSessions, ALinkSignsInOnceAndForAWhile) {
  support::VirtualClock clock;
  BrowserSessions sessions(clock);
  const std::string code = sessions.make_link_code();
  EXPECT_FALSE(sessions.take_link_code("something else"));
  EXPECT_TRUE(sessions.take_link_code(code));
  EXPECT_FALSE(sessions.take_link_code(code));
  const std::string late = sessions.make_link_code();
  clock.advance(BrowserSessions::kLinkTime + Milliseconds(1'000));
  EXPECT_FALSE(sessions.take_link_code(late));
}

}  // namespace
}  // namespace bide::server
