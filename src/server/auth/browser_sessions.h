// BrowserSessions: who has signed in with a browser. The browser keeps a secret in a cookie; here its digest stands for the
// token that was shown, which is looked up anew for each request: a token that is revoked ends its sessions.
//
// In memory, so that a restart signs everybody out. Bounded, for each token and in all: of too many, the one that was unused for
// longest ends. Safe to use from any thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "bide/job.h"
#include "platform/clock.h"
#include "server/auth/token.h"
#include "server/http/request.h"

namespace bide::server {

class BrowserSessions {
 public:
  static constexpr std::size_t kMost = 1'000;
  static constexpr std::size_t kMostOfAToken = 20;
  static constexpr Milliseconds kIdle{12 * 3'600'000};  // Unused for so long, it ends.
  static constexpr Milliseconds kLinkTime{15 * 60'000};

  explicit BrowserSessions(platform::Clock& clock = platform::real_clock()) : clock_(clock) {}

  // What the session stands for: a token, or whoever was given the link.
  struct Session {
    bool by_link = false;
    TokenDigest token = {};  // Unless by the link.
  };

  // The secret, for the cookie.
  std::string open(Session session);
  // Of a request's cookie. Nothing: there is none, or it is over.
  std::optional<Session> find(const Request& request);
  void close(const Request& request);

  // A code that signs in once, within kLinkTime. It takes the place of an earlier one.
  std::string make_link_code();
  bool take_link_code(std::string_view code);

  // One for each port: cookies of one host are sent to all of its servers.
  static std::string cookie_name(const Request& request);

 private:
  struct Open {
    Session session;
    std::int64_t used_us = 0;  // Elapsed time.
  };
  using Sessions = std::map<TokenDigest, Open>;  // By the digest of their secret.

  // Ends the one of these that was unused for longest, if there are `most`.
  template <class Wanted>
  void make_room(std::size_t most, Wanted&& wanted);

  platform::Clock& clock_;
  std::mutex mutex_;  // Guards everything below.
  Sessions sessions_;
  std::optional<TokenDigest> link_;
  std::int64_t link_until_us_ = 0;
};

}  // namespace bide::server
