// SeededRandom: the same sequence for the same seed, on every machine and with every compiler.

#pragma once

#include <cstdint>

#include "platform/fatal.h"
#include "platform/random.h"

namespace bide::support {

// Not safe to share between threads. Copies go on independently from the same point.
class SeededRandom final : public platform::Random {
 public:
  explicit SeededRandom(std::uint64_t seed) {
    // splitmix64, so that seeds that lie close together lead to states that do not.
    for (auto& word : state_) {
      seed += 0x9e3779b97f4a7c15;
      std::uint64_t mixed = seed;
      mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
      mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
      word = mixed ^ (mixed >> 31);
    }
  }

  std::uint64_t next() override { return platform::xoshiro_next(state_); }

  // From 0 to limit - 1, all equally likely.
  std::uint64_t next_below(std::uint64_t limit) {
    platform::require(limit > 0, "there is a number below the limit");
    const std::uint64_t uneven = (0 - limit) % limit;  // So many low values would come up once too often.
    std::uint64_t value = next();
    while (value < uneven) value = next();
    return value % limit;
  }

  bool chance(double probability) { return static_cast<double>(next() >> 11) * 0x1.0p-53 < probability; }

 private:
  std::uint64_t state_[4];
};

}  // namespace bide::support
