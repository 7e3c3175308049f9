// Random: the only source of randomness, so that a simulation can be repeated.

#pragma once

#include <bit>
#include <cstdint>

namespace bide::platform {

class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;
};

// Seeded by the kernel. Not safe to share between threads: each owner makes one.
class SystemRandom : public Random {
 public:
  SystemRandom();
  std::uint64_t next() override;

 private:
  std::uint64_t state_[4];
};

// xoshiro256**: the generator behind SystemRandom and the seeded one of the tests. Fast and even; not for secrets. The state must not be all zeros: it would stay so.
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
