#include "server/auth/authenticator.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "server/auth/token_file.h"
#include "server/http/identity.h"
#include "support/temporary_directory.h"
#include "support/virtual_clock.h"

namespace bide::server {
namespace {

using namespace std::chrono_literals;

class AuthenticatorTest : public testing::Test {
 protected:
  // The secret of a new token.
  std::string make(const std::string& name, const std::string& scopes, std::optional<Time> expires = {}) const {
    const std::string secret = make_token_secret();
    const Status made = change_tokens(path, [&](TokenList& tokens) {
      tokens.push_back(
          {.name = name, .scopes = *parse_scopes(scopes), .expires = expires, .digest = digest_of(secret)});
      return Status();
    });
    EXPECT_TRUE(made);
    return secret;
  }
  void revoke(const std::string& name) const {
    EXPECT_TRUE(change_tokens(path, [&](TokenList& tokens) {
      std::erase_if(tokens, [&](const Token& token) { return token.name == name; });
      return Status();
    }));
  }
  std::unique_ptr<Authenticator> open(AuthenticatorOptions options = {}) {
    options.token_file = path;
    options.clock = &clock;
    options.on_reload = [this](std::string_view text) { told.emplace_back(text); };
    Result<std::unique_ptr<Authenticator>> authenticator = Authenticator::open(std::move(options));
    EXPECT_TRUE(authenticator) << authenticator.error().message;
    return std::move(*authenticator);
  }
  static Request from(const std::string& peer, const std::string& authorization = {}) {
    Request request;
    request.peer = peer;
    request.peer_is_our_user = peer != "10.0.0.1";
    request.fields["host"] = "127.0.0.1:7070";
    if (!authorization.empty()) request.fields["authorization"] = authorization;
    return request;
  }
  static int status_of(const AuthResult& admission) {
    const auto* problem = std::get_if<wire::Problem>(&admission);
    return problem == nullptr ? 200 : problem->status;
  }
  Time wall() const { return Time(Milliseconds(clock.now().wall_us / 1000)); }

  support::TemporaryDirectory directory;
  const std::string path = directory.path() + "/tokens";
  support::VirtualClock clock;
  std::vector<std::string> told;
};

TEST_F(AuthenticatorTest, TheCredentialOfALeaseIsForSettlingThatOneAndNothingElse) {
  const LeaseRef lease{JobId::parse("0190d6c0-8a5e-7f2a-9d0e-5b8a52f6f0c1").value(), 17};
  const auto authenticator = open({.lease_of = [&](std::string_view shown) {
    return shown == "good" ? std::optional(lease) : std::nullopt;
  }});
  const AuthResult admitted = authenticator->admit(from("192.0.2.1", "Bearer good"), Scope::kSettle);
  ASSERT_EQ(status_of(admitted), 200);
  EXPECT_EQ(std::get<Identity>(admitted).lease->id, lease.id);
  EXPECT_EQ(std::get<Identity>(admitted).lease->token, lease.token);
  for (const Scope scope : {Scope::kRead, Scope::kWrite, Scope::kWork, Scope::kAdmin}) {
    EXPECT_EQ(status_of(authenticator->admit(from("192.0.2.1", "Bearer good"), scope)), 403);
  }
  EXPECT_EQ(status_of(authenticator->admit(from("192.0.2.1", "Bearer bad"), Scope::kSettle)), 401);
}

TEST_F(AuthenticatorTest, WhoeverMayWorkMaySettle) {
  const std::string worker = make("worker", "work");
  const std::string writer = make("writer", "read,write,admin");
  const auto authenticator = open();
  EXPECT_EQ(status_of(authenticator->admit(from("192.0.2.1", "Bearer " + worker), Scope::kSettle)), 200);
  EXPECT_EQ(status_of(authenticator->admit(from("192.0.2.1", "Bearer " + writer), Scope::kSettle)), 403);
}

TEST_F(AuthenticatorTest, LetsInWhoShowsATokenWithTheScope) {
  const std::string secret = make("deploy", "read,write");
  const auto authenticator = open();
  const AuthResult admitted = authenticator->admit(from("10.0.0.1", "Bearer " + secret), Scope::kWrite);
  ASSERT_EQ(status_of(admitted), 200);
  EXPECT_EQ(std::get<Identity>(admitted).name, "deploy");
  EXPECT_TRUE(std::get<Identity>(admitted).may(Scope::kRead));
  EXPECT_FALSE(std::get<Identity>(admitted).may(Scope::kAdmin));
  EXPECT_EQ(status_of(authenticator->admit(from("10.0.0.1", "bearer   " + secret), Scope::kRead)), 200);
  EXPECT_TRUE(authenticator->has_tokens());
}

TEST_F(AuthenticatorTest, TellsAGoodTokenWhichScopeItLacks) {
  const std::string secret = make("deploy", "read,work");
  const AuthResult refused = open()->admit(from("10.0.0.1", "Bearer " + secret), Scope::kAdmin);
  ASSERT_EQ(status_of(refused), 403);
  EXPECT_EQ(std::get<wire::Problem>(refused).code, "forbidden");
  EXPECT_EQ(std::get<wire::Problem>(refused).detail, "this token lacks the scope admin; it has read,work");
}

TEST_F(AuthenticatorTest, SaysTheSameToEveryOtherWhateverIsWrong) {
  const std::string secret = make("deploy", "read");
  const std::string expired = make("old", "read", wall());
  const auto authenticator = open({.failures = 1'000});
  std::string cut = secret;
  cut.pop_back();
  std::string changed = secret;
  changed.back() = changed.back() == 'A' ? 'B' : 'A';
  const std::vector<std::string> wrong = {"",
                                          "Bearer",
                                          "Bearer ",
                                          "Bearer x",
                                          "Basic " + secret,
                                          secret,
                                          "Bearer " + cut,
                                          "Bearer " + changed,
                                          "Bearer " + secret + "x",
                                          "Bearer " + make_token_secret(),
                                          "Bearer " + expired,
                                          "Bearer " + std::string(10'000, 'a'),
                                          "Bearer " + std::string(48, '\0')};
  std::string text;
  for (const std::string& authorization : wrong) {
    const AuthResult refused = authenticator->admit(from("10.0.0.1", authorization), Scope::kRead);
    ASSERT_EQ(status_of(refused), 401) << authorization;
    const std::string& detail = std::get<wire::Problem>(refused).detail;
    EXPECT_TRUE(text.empty() || detail == text) << detail;
    text = detail;
  }
}

TEST_F(AuthenticatorTest, LetsNobodyInWithoutTokens) {
  const auto authenticator = open();
  EXPECT_FALSE(authenticator->has_tokens());
  for (const char* peer : {"10.0.0.1", "127.0.0.1", "unix"}) {
    EXPECT_EQ(status_of(authenticator->admit(from(peer), Scope::kRead)), 401) << peer;
  }
}

TEST_F(AuthenticatorTest, LetsThisMachineInWithoutATokenOnlyWhenAskedTo) {
  const auto authenticator = open({.local_without_token = true});
  for (const char* peer : {"127.0.0.1", "::1", "unix"}) {
    const AuthResult admitted = authenticator->admit(from(peer), Scope::kAdmin);
    ASSERT_EQ(status_of(admitted), 200) << peer;
    EXPECT_EQ(std::get<Identity>(admitted).name, "local");
  }
  EXPECT_EQ(status_of(authenticator->admit(from("10.0.0.1"), Scope::kRead)), 401);
  EXPECT_EQ(status_of(authenticator->admit(from("127.0.0.1", "Bearer wrong"), Scope::kRead)), 401);
  for (const char* field :
       {"forwarded", "x-forwarded-for", "x-forwarded-host", "via", "x-real-ip", "true-client-ip", "cf-connecting-ip"}) {
    Request request = from("127.0.0.1");
    request.fields[field] = "for=10.0.0.1";
    EXPECT_EQ(status_of(authenticator->admit(request, Scope::kRead)), 401) << field;
  }
}

// What nginx sends for a bare `proxy_pass http://127.0.0.1:7070`: nothing in it tells it from a caller of this machine,
// but that its workers are of another user.
TEST_F(AuthenticatorTest, ABareProxyOfAnotherUserIsNotThisMachine) {
  const auto authenticator = open({.local_without_token = true});
  for (const char* peer : {"127.0.0.1", "unix"}) {
    Request request = from(peer);
    request.peer_is_our_user = false;
    request.fields["connection"] = "close";
    request.fields["user-agent"] = "curl/8.0";
    const AuthResult admitted = authenticator->admit(request, Scope::kRead);
    ASSERT_EQ(status_of(admitted), 401) << peer;
    EXPECT_NE(std::get<wire::Problem>(admitted).detail.find("own user"), std::string::npos);
  }
}

TEST_F(AuthenticatorTest, ThisMachineIsAskedUnderItsOwnNames) {
  const auto authenticator = open({.local_without_token = true});
  const auto asked = [&](const std::string& host) {
    Request request = from("127.0.0.1");
    request.fields["host"] = host;
    return status_of(authenticator->admit(request, Scope::kRead));
  };
  for (const char* host : {"localhost", "localhost:7070", "127.0.0.1", "127.0.0.9:1", "[::1]:7070", "a.localhost"}) {
    EXPECT_EQ(asked(host), 200) << host;
  }
  for (const char* host : {"", "jobs.example.org", "10.0.0.1:7070", "[::2]", "[", "unix", "localhost.example.org"}) {
    EXPECT_EQ(asked(host), 401) << host;
  }
}

TEST_F(AuthenticatorTest, TellsWhoWasRefusedButNotMoreThanSoOften) {
  std::vector<std::string> refused;
  std::uint64_t unlogged = 0;
  const std::string good = make("deploy", "read");
  const std::string old = make("old", "read", wall() - 1s);
  const auto authenticator = open({.on_refused = [&](const Refusal& refusal) {
                            refused.push_back(std::string(refusal.why) + "/" + std::string(refusal.caller) + "/" +
                                              std::string(refusal.peer) + "/" + std::string(refusal.path));
                            unlogged += refusal.unlogged;
                          },
                          .refusals_a_second = 4});
  const auto ask = [&](const std::string& authorization) {
    Request request = from("10.0.0.1", authorization);
    request.path = "/v1/jobs";
    (void)authenticator->admit(request, Scope::kWrite);
  };
  ask("Bearer " + good);
  ask("Bearer " + old);
  ask("Bearer wrong");
  ask("");
  for (int i = 0; i < 5; ++i) ask("");
  EXPECT_EQ(refused, (std::vector<std::string>{"lacks the scope write/deploy/10.0.0.1//v1/jobs",
                                               "an expired token/old/10.0.0.1//v1/jobs",
                                               "an unknown token//10.0.0.1//v1/jobs", "no token//10.0.0.1//v1/jobs"}));
  clock.advance(1s);
  ask("");
  EXPECT_EQ(refused.size(), 5u);
  EXPECT_EQ(unlogged, 5u);
}

TEST_F(AuthenticatorTest, AsksNobodyForATokenWhereNoneIsWanted) {
  const std::string secret = make("deploy", "read");
  const auto authenticator = open();
  for (const std::string& authorization : {std::string(), std::string("Bearer wrong")}) {
    const AuthResult admitted = authenticator->admit(from("10.0.0.1", authorization), Scope::kNone);
    ASSERT_EQ(status_of(admitted), 200);
    EXPECT_EQ(std::get<Identity>(admitted).name, "");
    EXPECT_FALSE(std::get<Identity>(admitted).may(Scope::kRead));
  }
  EXPECT_EQ(std::get<Identity>(authenticator->admit(from("10.0.0.1", "Bearer " + secret), Scope::kNone)).name, "deploy");
}

TEST_F(AuthenticatorTest, ForgetsATokenThatWasRevokedAndKnowsANewOneWithinASecond) {
  const std::string first = make("first", "read");
  const auto authenticator = open();
  EXPECT_EQ(status_of(authenticator->admit(from("10.0.0.1", "Bearer " + first), Scope::kRead)), 200);
  revoke("first");
  const std::string second = make("second", "read");
  clock.advance(1s);
  EXPECT_EQ(status_of(authenticator->admit(from("10.0.0.1", "Bearer " + first), Scope::kRead)), 401);
  EXPECT_EQ(status_of(authenticator->admit(from("10.0.0.1", "Bearer " + second), Scope::kRead)), 200);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0], "read 1 tokens from " + path);
}

TEST_F(AuthenticatorTest, SaysWhoMayNotStayWhenTokensHaveChanged) {
  const std::string first = make("first", "read");
  make("second", "read");
  const auto authenticator = open();
  const Identity caller = std::get<Identity>(authenticator->admit(from("10.0.0.1", "Bearer " + first), Scope::kRead));
  const std::uint64_t version = authenticator->version();
  EXPECT_TRUE(authenticator->is_still_valid(caller));
  revoke("second");
  clock.advance(1s);
  EXPECT_NE(authenticator->version(), version);
  EXPECT_TRUE(authenticator->is_still_valid(caller)) << "another one was revoked";
  revoke("first");
  clock.advance(1s);
  EXPECT_NE(authenticator->version(), version + 1);
  EXPECT_FALSE(authenticator->is_still_valid(caller));
  EXPECT_TRUE(authenticator->is_still_valid({.name = "local", .scopes = 0xff})) << "no token, nothing to revoke";
}

TEST_F(AuthenticatorTest, DoesNotTakeATokenForAnEarlierOneOfTheSameName) {
  const std::string leaked = make("first", "read");
  const auto authenticator = open();
  const auto caller = std::get<Identity>(authenticator->admit(from("10.0.0.1", "Bearer " + leaked), Scope::kRead));
  EXPECT_TRUE(authenticator->is_still_valid(caller));
  revoke("first");
  const std::string secret = make("first", "read");
  clock.advance(1s);
  EXPECT_NE(authenticator->version(), 1u);
  EXPECT_FALSE(authenticator->is_still_valid(caller));
  EXPECT_TRUE(authenticator->is_still_valid(std::get<Identity>(authenticator->admit(from("10.0.0.1", "Bearer " + secret), Scope::kRead))));
}

TEST_F(AuthenticatorTest, HasAnotherVersionWhenATokenExpires) {
  const std::string secret = make("first", "read", wall() + 10s);
  const auto authenticator = open();
  const auto caller = std::get<Identity>(authenticator->admit(from("10.0.0.1", "Bearer " + secret), Scope::kRead));
  clock.advance(5s);
  const std::uint64_t version = authenticator->version();
  EXPECT_TRUE(authenticator->is_still_valid(caller));
  clock.advance(5s);
  EXPECT_NE(authenticator->version(), version);
  EXPECT_FALSE(authenticator->is_still_valid(caller));
}

TEST_F(AuthenticatorTest, RevokesEverythingWhenTheFileIsTakenAway) {
  const std::string secret = make("first", "read");
  const auto authenticator = open();
  ASSERT_EQ(std::remove(path.c_str()), 0);
  clock.advance(1s);
  EXPECT_EQ(status_of(authenticator->admit(from("10.0.0.1", "Bearer " + secret), Scope::kRead)), 401);
}

TEST_F(AuthenticatorTest, KeepsTheTokensOfBeforeWhenTheFileCannotBeReadAnyMore) {
  const std::string secret = make("first", "read");
  const auto authenticator = open();
  std::ofstream(path) << "half a f";
  clock.advance(1s);
  EXPECT_EQ(status_of(authenticator->admit(from("10.0.0.1", "Bearer " + secret), Scope::kRead)), 200);
  clock.advance(5s);
  EXPECT_EQ(status_of(authenticator->admit(from("10.0.0.1", "Bearer " + secret), Scope::kRead)), 200);
  ASSERT_EQ(told.size(), 1u);  // Not again for a file that is as before.
  EXPECT_NE(told[0].find("the tokens of before stay in force: " + path + ":1:"), std::string::npos);
}

TEST_F(AuthenticatorTest, RefusesToOpenWithATokenFileThatOthersMayRead) {
  make("first", "read");
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  const auto authenticator = Authenticator::open({.token_file = path});
  ASSERT_FALSE(authenticator);
  EXPECT_EQ(authenticator.error().code, ErrorCode::kPermissionDenied);
}

TEST_F(AuthenticatorTest, LetsATokenExpire) {
  const std::string secret = make("short", "read", wall() + 10s);
  const auto authenticator = open();
  EXPECT_EQ(status_of(authenticator->admit(from("10.0.0.1", "Bearer " + secret), Scope::kRead)), 200);
  clock.advance(10s);
  EXPECT_EQ(status_of(authenticator->admit(from("10.0.0.1", "Bearer " + secret), Scope::kRead)), 401);
  EXPECT_FALSE(authenticator->has_tokens());
}

TEST_F(AuthenticatorTest, TellsAnAddressThatFailsTooOftenToWaitAndLetsItsGoodTokensIn) {
  const std::string secret = make("deploy", "read");
  const auto authenticator = open({.failures = 3, .failure_forgotten = 6s});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status_of(authenticator->admit(from("10.0.0.1", "Bearer no"), Scope::kRead)), 401);
  const AuthResult limited = authenticator->admit(from("10.0.0.1"), Scope::kRead);
  ASSERT_EQ(status_of(limited), 429);
  EXPECT_EQ(std::get<wire::Problem>(limited).retry_after, 6s);
  EXPECT_EQ(status_of(authenticator->admit(from("10.0.0.2"), Scope::kRead)), 401);
  EXPECT_EQ(status_of(authenticator->admit(from("10.0.0.1", "Bearer " + secret), Scope::kRead)), 200);
  clock.advance(6s);
  EXPECT_EQ(status_of(authenticator->admit(from("10.0.0.1"), Scope::kRead)), 401);
}

TEST_F(AuthenticatorTest, CanBeAskedByManyThreadsWhileTokensComeAndGo) {
  const std::string secret = make("steady", "read");
  const auto authenticator = open({.failures = 1'000'000});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2'000; ++i) {
        EXPECT_EQ(status_of(authenticator->admit(from("10.0.0.1", "Bearer " + secret), Scope::kRead)), 200);
        EXPECT_EQ(status_of(authenticator->admit(from("10.0.0.1", "Bearer no"), Scope::kRead)), 401);
      }
    });
  }
  for (int i = 0; i < 10; ++i) {
    make("other-" + std::to_string(i), "read");
    clock.advance(1s);
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace bide::server
