// The checksum of the on-disk formats: XXH3, 64 bits. The seed is usually the address of the bytes, so that bytes that
// belong elsewhere do not pass.

#pragma once

#include <cstdint>
#include <string_view>

namespace bide::platform {

std::uint64_t checksum(std::string_view bytes, std::uint64_t seed);

}  // namespace bide::platform
