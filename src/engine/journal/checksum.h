// The checksum of everything in the journal: XXH3, 64 bits. The seed is the address of what is summed, so that bytes
// which belong elsewhere never pass.

#pragma once

#include <cstdint>
#include <string_view>

namespace bide::engine::journal {

std::uint64_t checksum(std::string_view bytes, std::uint64_t seed);

}  // namespace bide::engine::journal
