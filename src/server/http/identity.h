// Identity: who asks, and what they may do.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bide/lease.h"
#include "bide/result.h"
#include "wire/problem.h"

namespace bide::server {

// Each is separate: admin alone may not enqueue. kNone is for what anybody may ask. kSettle is for settling and extending
// leases: whoever may work may, and who was given the credential of a lease may for that one.
enum class Scope : std::uint8_t { kNone = 0, kRead = 1, kWrite = 2, kWork = 4, kAdmin = 8, kSettle = 16 };

struct Identity {
  std::string name = {};     // Of the token, or "local".
  std::uint8_t scopes = 0;   // Of Scope, together.
  std::vector<std::string> queues = {};  // Only these; empty: all.

  std::optional<LeaseRef> lease = {};  // May act on this one only.
  bool has_token = false;              // One of the token file, which can be revoked.
  std::uint64_t token = 0;             // Which one: names are given again.
  std::uint64_t connection = 0;        // Through which they ask; one caller can have many.

  bool is_known() const { return scopes != 0; }
  bool is_restricted() const { return !queues.empty(); }
  bool may_use(std::string_view queue) const {
    return queues.empty() || std::find(queues.begin(), queues.end(), queue) != queues.end();
  }
  bool may(Scope scope) const {
    if (scope == Scope::kSettle && may(Scope::kWork)) return true;
    const auto wanted = static_cast<std::uint8_t>(scope);
    return (scopes & wanted) == wanted;
  }
};

// Who it is, or what to answer: 401 unauthorized, 403 forbidden, 429 rate_limited.
using AuthResult = std::variant<Identity, wire::Problem>;

// Scopes as text: read, write, work, admin, joined by commas.
inline constexpr std::uint8_t kAllScopes = 15;

// kInvalidArgument: names what is unknown and what is allowed. Empty is not allowed.
Result<std::uint8_t> parse_scopes(std::string_view text);
std::string scopes_text(std::uint8_t scopes);
std::string_view to_string(Scope scope);

}  // namespace bide::server
