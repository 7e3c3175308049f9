// HttpAddress: the address of a socket, as a check sees it, without a type of the system.

#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace bide::http_client {

struct HttpAddress {
  enum class Family : std::uint8_t { kIpv4, kIpv6 };
  Family family = Family::kIpv4;
  std::array<std::uint8_t, 16> bytes = {};  // In network order; of IPv4 the first four.
  std::uint16_t port = 0;

  std::string host() const;       // "192.0.2.1" or "2001:db8::1".
  std::string to_string() const;  // "192.0.2.1:80" or "[2001:db8::1]:80".
};

}  // namespace bide::http_client
