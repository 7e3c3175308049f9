#include "platform/keyed_hash.h"

#include "platform/random.h"

namespace bide::platform {

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
