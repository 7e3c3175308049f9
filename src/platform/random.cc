#include "platform/random.h"

#include <sys/random.h>
#include <cerrno>
#include <cstddef>

#include "platform/fatal.h"
#include "platform/xoshiro.h"

namespace bide::platform {

SystemRandom::SystemRandom() {
  do {
    auto* into = reinterpret_cast<char*>(state_);
    std::size_t filled = 0;
    while (filled < sizeof state_) {
      const auto got = ::getrandom(into + filled, sizeof state_ - filled, 0);
      require(got > 0 || (got < 0 && errno == EINTR), "the kernel gives random bytes");
      if (got > 0) filled += static_cast<std::size_t>(got);
    }
  } while ((state_[0] | state_[1] | state_[2] | state_[3]) == 0);
}

std::uint64_t SystemRandom::next() { return xoshiro_next(state_); }

}  // namespace bide::platform
