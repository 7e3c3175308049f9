// xoshiro256**: the generator behind SystemRandom and the seeded one of the tests. Fast and even; not for secrets.

#pragma once

#include <bit>
#include <cstdint>

namespace bide::platform {

// The state must not be all zeros: it would stay so.
inline std::uint64_t xoshiro_next(std::uint64_t (&state)[4]) {
  const std::uint64_t result = std::rotl(state[1] * 5, 7) * 9;
  const std::uint64_t shifted = state[1] << 17;
  state[2] ^= state[0];
  state[3] ^= state[1];
  state[1] ^= state[2];
  state[0] ^= state[3];
  state[2] ^= shifted;
  state[3] = std::rotl(state[3], 45);
  return result;
}

}  // namespace bide::platform
