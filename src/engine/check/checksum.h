// XXH3 with 64 bits, seeded: the checksum of the on-disk format.

#pragma once

#include <cstdint>
#include <string_view>

namespace bide::engine::check {

std::uint64_t xxh3(std::string_view bytes, std::uint64_t seed);

}  // namespace bide::engine::check
