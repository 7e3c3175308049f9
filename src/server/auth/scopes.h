// Scopes as text: read, write, work, admin, joined by commas.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bide/result.h"
#include "server/http/identity.h"

namespace bide::server {

inline constexpr std::uint8_t kAllScopes = 15;

// kInvalidArgument: names what is unknown and what is allowed. Empty is not allowed.
Result<std::uint8_t> parse_scopes(std::string_view text);
std::string scopes_text(std::uint8_t scopes);
std::string_view to_string(Scope scope);

}  // namespace bide::server
