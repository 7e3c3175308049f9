// Identity: who asks, and what they may do.

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bide::server {

// Each is separate: admin alone may not enqueue. kNone is for what anybody may ask.
enum class Scope : std::uint8_t { kNone = 0, kRead = 1, kWrite = 2, kWork = 4, kAdmin = 8 };

struct Identity {
  std::string name = {};     // Of the token, or "local".
  std::uint8_t scopes = 0;   // Of Scope, together.
  std::vector<std::string> queues = {};  // Only these; empty: all.

  bool is_known() const { return scopes != 0; }
  bool is_restricted() const { return !queues.empty(); }
  bool may_use(std::string_view queue) const {
    return queues.empty() || std::find(queues.begin(), queues.end(), queue) != queues.end();
  }
  bool may(Scope scope) const {
    const auto wanted = static_cast<std::uint8_t>(scope);
    return (scopes & wanted) == wanted;
  }
};

}  // namespace bide::server
