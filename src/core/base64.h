// Base64 of RFC 4648 with padding, strictly: no other characters, no bits left over.

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bide::core {

std::string to_base64(std::string_view bytes);
std::optional<std::string> from_base64(std::string_view text);  // Nothing when it is not base64.

}  // namespace bide::core
