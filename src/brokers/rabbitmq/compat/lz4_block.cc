#include "brokers/rabbitmq/compat/lz4_block.h"

#include <cstdint>

namespace bide::brokers::rabbitmq::compat {

namespace {

constexpr std::size_t kMostGrowth = 255;  // One byte of a length stands for at most so many bytes.
constexpr std::size_t kShortestCopy = 4;
constexpr std::size_t kLongLength = 15;

}  // namespace

std::optional<std::string> unpack_lz4_block(std::string_view packed, std::size_t size) {
  if (size / kMostGrowth > packed.size()) return std::nullopt;
  std::string out;
  out.reserve(size);
  std::size_t at = 0;
  const auto byte = [&] { return static_cast<std::uint8_t>(packed[at++]); };
  const auto length = [&](std::size_t nibble) -> std::optional<std::size_t> {
    if (nibble < kLongLength) return nibble;
    while (at < packed.size()) {
      const std::uint8_t more = byte();
      nibble += more;
      if (more != 255) return nibble;
    }
    return std::nullopt;
  };
  while (at < packed.size()) {
    const std::uint8_t token = byte();
    const std::optional<std::size_t> literals = length(token >> 4);
    if (!literals || *literals > packed.size() - at || *literals > size - out.size()) return std::nullopt;
    out.append(packed.substr(at, *literals));
    at += *literals;
    if (at == packed.size()) break;  // The last sequence has no copy.

    if (packed.size() - at < 2) return std::nullopt;
    std::size_t distance = byte();
    distance |= static_cast<std::size_t>(byte()) << 8;
    std::optional<std::size_t> copied = length(token & 0x0f);
    if (!copied || distance == 0 || distance > out.size()) return std::nullopt;
    *copied += kShortestCopy;
    if (*copied > size - out.size()) return std::nullopt;
    // Byte by byte: what is copied may overlap what is written.
    for (std::size_t i = 0; i < *copied; ++i) out.push_back(out[out.size() - distance]);
  }
  if (out.size() != size) return std::nullopt;
  return out;
}

}  // namespace bide::brokers::rabbitmq::compat
