#include "server/http/browser_guard.h"

#include <gtest/gtest.h>

namespace bide::server {
namespace {

using Fields = std::map<std::string, std::string>;

std::string code_of(Method method, Fields fields, std::string peer = "127.0.0.1") {
  const BrowserGuard guard({"Jobs.example.org", ".inside.example.org"});
  const auto problem = guard.check({.method = method, .path = "/", .fields = std::move(fields), .peer = std::move(peer)});
  return problem ? problem->code : "";
}

TEST(BrowserGuard, KnowsItsOwnNames) {
  for (const char* host : {"localhost", "localhost:7070", "LOCALHOST.", "127.0.0.1:7070", "[::1]:7070", "10.1.2.3",
                           "jobs.example.org", "JOBS.example.org:443", "a.inside.example.org", "app.localhost"}) {
    EXPECT_EQ(code_of(Method::kGet, {{"host", host}}), "") << host;
  }
  for (const char* host : {"evil.example.com", "jobs.example.org.evil.com", "xjobs.example.org", "inside.example.org",
                           "localhost.evil.com", "127.0.0.1.evil.com"}) {
    EXPECT_EQ(code_of(Method::kGet, {{"host", host}}), "host_not_allowed") << host;
  }
}

TEST(BrowserGuard, LeavesThoseAloneWhoCannotBeARebindingPage) {
  EXPECT_EQ(code_of(Method::kGet, {{"host", "load.balancer"}, {"authorization", "Bearer x"}}), "");
  EXPECT_EQ(code_of(Method::kGet, {{"host", "whatever"}}, "unix"), "");
  EXPECT_EQ(code_of(Method::kGet, {}), "");
}

TEST(BrowserGuard, RefusesChangesThatAnotherSiteAsksFor) {
  EXPECT_EQ(code_of(Method::kPost, {{"host", "localhost"}, {"sec-fetch-site", "cross-site"}}), "cross_site");
  EXPECT_EQ(code_of(Method::kPost, {{"host", "localhost"}, {"sec-fetch-site", "same-site"}}), "cross_site");
  EXPECT_EQ(code_of(Method::kDelete, {{"host", "localhost"}, {"sec-fetch-site", "cross-site"}}), "cross_site");
  EXPECT_EQ(code_of(Method::kOther, {{"host", "localhost"}, {"sec-fetch-site", "cross-site"}}), "cross_site");
  EXPECT_EQ(code_of(Method::kPost, {{"host", "localhost"}, {"sec-fetch-site", "same-origin"}}), "");
  EXPECT_EQ(code_of(Method::kPost, {{"host", "localhost"}, {"sec-fetch-site", "none"}}), "");
  EXPECT_EQ(code_of(Method::kGet, {{"host", "localhost"}, {"sec-fetch-site", "cross-site"}}), "");
  EXPECT_EQ(code_of(Method::kPost, {{"host", "localhost"}}), "") << "not a browser";
}

TEST(BrowserGuard, LooksAtTheOriginOfOlderBrowsers) {
  EXPECT_EQ(code_of(Method::kPost, {{"host", "localhost:7070"}, {"origin", "http://localhost:7070"}}), "");
  EXPECT_EQ(code_of(Method::kPost, {{"host", "localhost:7070"}, {"origin", "http://evil.example.com"}}), "cross_site");
  EXPECT_EQ(code_of(Method::kPost, {{"host", "localhost:7070"}, {"origin", "http://localhost:8080"}}), "cross_site");
  EXPECT_EQ(code_of(Method::kPost, {{"host", "localhost:7070"}, {"origin", "null"}}), "cross_site");
}

}  // namespace
}  // namespace bide::server
