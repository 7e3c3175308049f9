// Backoff: how long to wait before the next try to connect. It grows and is jittered, so that a thousand workers do not
// come back in the same moment.

#pragma once

#include <algorithm>
#include <chrono>

#include "platform/random.h"

namespace bide::platform {

class Backoff {
 public:
  // The first is short: most often the server, or another node of it, is there at once.
  std::chrono::milliseconds next() {
    const std::int64_t longest = kFirst << std::min(step_++, 6);
    return std::chrono::milliseconds(
        longest / 2 + static_cast<std::int64_t>(random_.next() % static_cast<std::uint64_t>(longest / 2 + 1)));
  }
  void reset() { step_ = 0; }

 private:
  static constexpr std::int64_t kFirst = 50;  // Then doubled up to 3.2 s.

  int step_ = 0;
  platform::SystemRandom random_;
};

}  // namespace bide::platform
