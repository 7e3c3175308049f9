// IpAddress: an IPv4 or IPv6 address, the ranges of special-purpose addresses, and addresses embedded in others.
//
//   parse_ip("192.0.2.1")       dotted decimal, or any form of IPv6
//   parse_loose_ipv4("0x7f.1")  also what inet_aton() takes: fewer parts, octal, hexadecimal

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bide::server {

struct IpAddress {
  bool v6 = false;
  std::array<std::uint8_t, 16> bytes = {};  // Network order; IPv4: the first four.

  std::string to_string() const;
  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

// Without brackets, zone and port.
std::optional<IpAddress> parse_ip(std::string_view text);

// One to four numbers, the last of which fills what is left of the 32 bits: 127.1, 2130706433, 0x7f.1, 0177.0.0.1.
std::optional<IpAddress> parse_loose_ipv4(std::string_view text);

// The last label is a number: resolvers take such a name for an address, or fail.
bool looks_like_ipv4(std::string_view host);

struct IpRange {
  IpAddress address = {};
  int bits = 0;

  bool contains(const IpAddress& other) const;  // Of the same family.
};

// "10.0.0.0/8", "fd00::/8", or one address. Nothing when it is neither, or has bits set behind its prefix.
std::optional<IpRange> parse_ip_range(std::string_view text);

// Why an address is not public: a row of the special-purpose registries (RFC 6890 and its successors).
struct AddressRule {
  std::string_view name;  // "loopback", "private network" ...
  bool never = false;     // Reached only when listed by address, not through a listed name: link-local, metadata ...
};

// The address that packets would reach: out of IPv4-mapped and -compatible addresses, 6to4, NAT64 and ISATAP.
IpAddress unwrapped(const IpAddress& address);

// Nothing: the address is public.
std::optional<AddressRule> find_address_rule(const IpAddress& address);

}  // namespace bide::server
