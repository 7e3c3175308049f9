// Random: the only source of randomness, so that a simulation can be repeated.

#pragma once

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

}  // namespace bide::platform
