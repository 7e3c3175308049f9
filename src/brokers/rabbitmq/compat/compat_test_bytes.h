// Bytes for tests: as hexadecimal, and spoilt at random.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bide::brokers::rabbitmq::compat {

inline std::string from_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1])));
  }
  return bytes;
}

inline std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) {
    hex += "0123456789abcdef"[static_cast<std::uint8_t>(c) >> 4];
    hex += "0123456789abcdef"[static_cast<std::uint8_t>(c) & 15];
  }
  return hex;
}

// Changes a few bytes, cuts, doubles. The same seed gives the same row of mutations.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : state_(seed * 2 + 1) {}

  std::string mutate(std::string bytes) {
    const std::uint64_t changes = 1 + below(4);
    for (std::uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
      const std::size_t at = static_cast<std::size_t>(below(bytes.size()));
      switch (below(6)) {
        case 0:
          bytes.resize(at);
          break;
        case 1:
          bytes.insert(at, bytes.substr(at, 4));
          break;
        case 2:
          bytes.erase(at, 1 + static_cast<std::size_t>(below(3)));
          break;
        case 3:
          bytes[at] = "\x00\x7f\x80\xff"[below(4)];
          break;
        default:
          bytes[at] = static_cast<char>(below(256));
      }
    }
    return bytes;
  }

 private:
  std::uint64_t below(std::uint64_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ % limit;
  }

  std::uint64_t state_;
};

}  // namespace bide::brokers::rabbitmq::compat
