#include "engine/check/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace bide::engine::check {

std::uint64_t xxh3(std::string_view bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace bide::engine::check
