// Authenticator: who sends a request, and whether they may. The caller shows a token:
//
//   Authorization: Bearer bide_...
//
// or the credential of a lease, which came with a callback and is good for settling and extending that one, or the cookie of a
// browser that has signed in with a token (see BrowserSessions).
//
// Whether a token is missing, malformed, unknown, expired or revoked is told by nothing but 401, after the same work
// each time; a token that is good but lacks the scope is told 403. An address that fails too often is told 429 until
// its failures have been forgotten one by one; a good token is let in all the same, so that nobody can lock another
// out.
//
// Safe to use from any thread. Never waits for more than a look at the token file, once a second.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "bide/job.h"
#include "bide/lease.h"
#include "bide/result.h"
#include "platform/clock.h"
#include "server/http/identity.h"
#include "server/http/request.h"
#include "wire/problem.h"

namespace bide::server {

// Somebody was not let in. For the log: it says more than the answer does.
struct Refusal {
  std::string_view peer = {};
  Method method = Method::kGet;
  std::string_view path = {};
  std::string_view why = {};     // "no token", "an unknown token", "an expired token", "lacks the scope admin".
  std::string_view caller = {};  // The name of the token, where it has one.
  std::uint64_t unlogged = 0;    // Refusals since the last that was told: of many, only some are.
};

struct AuthenticatorOptions {
  std::string token_file = {};  // Empty: there are no tokens. Need not be there yet.
  // Callers of this machine (loopback, or the Unix socket) that show no token may do everything. A proxy is a caller of
  // this machine as well, and the whole world is behind it; a bare one changes nothing by which it could be told from
  // anybody else. So only processes of our own user are let in, under a name of this machine, and without a field by
  // which a proxy speaks for somebody.
  bool local_without_token = false;

  // The lease that a credential was made for, if it was: see LeaseCredentials. Null: there are none.
  std::function<std::optional<LeaseRef>(std::string_view)> lease_of = {};

  int failures = 10;                      // An address may fail so often at once ...
  Milliseconds failure_forgotten{6'000};  // ... and again after so long, each.
  std::size_t addresses = 4'096;          // Of which failures are remembered; of more, the oldest are forgotten.

  // Told in one line when the token file was read again, or cannot be.
  std::function<void(std::string_view)> on_reload = {};
  std::function<void(const Refusal&)> on_refused = {};  // At most `refusals_a_second`.
  int refusals_a_second = 10;
  platform::Clock* clock = nullptr;  // Null: the real one.
};

class Authenticator {
 public:
  // kPermissionDenied: others may read or change the token file. kInvalidArgument: it holds something else; the message
  // has file:line. kNewerVersion, kIoError.
  static Result<std::unique_ptr<Authenticator>> open(AuthenticatorOptions options);
  ~Authenticator();

  // Who asks, if they may do what `wanted` stands for. Scope::kNone is for everybody: then a caller without a token, or
  // with a bad one, is nobody: an Identity without name and scopes.
  AuthResult admit(const Request& request, Scope wanted);

  // The secret for the cookie of a browser that shows a token, or a code of a link, for now on; or what to answer. The token must
  // be one that may read.
  std::variant<std::string, wire::Problem> sign_in(const Request& request, std::string_view token);
  std::variant<std::string, wire::Problem> sign_in_by_link(const Request& request, std::string_view code);
  void sign_out(const Request& request);
  // See BrowserSessions.
  std::string make_link_code();

  // Whether a caller that was admitted before still has its token, valid and with the same scopes and queues. For requests
  // that wait for long; every new one is admitted anew.
  bool is_still_valid(const Identity& caller) const;
  // Grows whenever is_still_valid() may have changed. Looks at the token file, once a second.
  std::uint64_t version() const;

  // At least one token is good now. A server that others can reach should not start without.
  bool has_tokens() const;

 private:
  class State;
  explicit Authenticator(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace bide::server
