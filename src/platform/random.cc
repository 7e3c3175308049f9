#include "platform/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstddef>

#include "platform/fatal.h"
#include "platform/keyed_hash.h"

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

const HashKey& HashKey::of_process() {
  static const HashKey key = [] {
    SystemRandom random;
    return HashKey{{random.next(), random.next(), random.next(), random.next()}};
  }();
  return key;
}

std::uint64_t HashKey::operator()(std::string_view text) const {
  // The length is part of it: the last piece is filled up with zeros.
  std::uint64_t hash = words[0] ^ text.size();
  for (; text.size() > 16; text.remove_prefix(16)) {
    std::uint64_t pair[2];
    std::memcpy(pair, text.data(), 16);
    hash = fold(pair[0] ^ words[1], pair[1] ^ words[2] ^ hash);
  }
  std::uint64_t last[2] = {0, 0};
  if (!text.empty()) std::memcpy(last, text.data(), text.size());
  hash = fold(last[0] ^ words[1], last[1] ^ words[2] ^ hash);
  return fold(hash ^ words[0], words[3] | 1);
}

}  // namespace bide::platform
