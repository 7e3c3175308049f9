#include "server/http/identity.h"

#include <algorithm>
#include <array>

#include "core/did_you_mean.h"
#include "core/quote.h"

namespace bide::server {

namespace {

// The one with value 1 << i.
constexpr std::array<std::string_view, 4> kScopeNames = {"read", "write", "work", "admin"};

}  // namespace

Result<std::uint8_t> parse_scopes(std::string_view text) {
  std::uint8_t scopes = 0;
  for (;;) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view name = text.substr(0, end);
    const auto found = std::find(kScopeNames.begin(), kScopeNames.end(), name);
    if (found == kScopeNames.end()) {
      return Error{ErrorCode::kInvalidArgument, "unknown scope " + core::quoted(name) +
                                                    "; allowed are read, write, work and admin, joined by commas" +
                                                    core::did_you_mean(name, kScopeNames)};
    }
    scopes = static_cast<std::uint8_t>(scopes | 1u << (found - kScopeNames.begin()));
    if (end == text.size()) return scopes;
    text.remove_prefix(end + 1);
  }
}

std::string scopes_text(std::uint8_t scopes) {
  std::string text;
  for (std::size_t i = 0; i < kScopeNames.size(); ++i) {
    if ((scopes >> i & 1) != 0) text.append(text.empty() ? "" : ",").append(kScopeNames[i]);
  }
  return text;
}

std::string_view to_string(Scope scope) {
  if (scope == Scope::kSettle) return to_string(Scope::kWork);  // What a token needs for it.
  for (std::size_t i = 0; i < kScopeNames.size(); ++i) {
    if (static_cast<unsigned>(scope) == 1u << i) return kScopeNames[i];
  }
  return "none";
}

}  // namespace bide::server
