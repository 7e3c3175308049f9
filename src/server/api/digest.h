// SHA-256.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace bide::server {

using Digest = std::array<std::uint8_t, 32>;

Digest sha256(std::string_view bytes);
std::string hex(const Digest& digest, std::size_t bytes = 32);  // The first so many of them.

}  // namespace bide::server
