// Which addresses are not public: the registries of special-purpose addresses (RFC 6890 and its successors) as a table,
// and the ways in which one address hides inside another.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/callbacks/ip_address.h"

namespace bide::server {

struct AddressRule {
  std::string_view name;  // For people and tests: "loopback", "private network" ...
  // An address that no name may lead to, unless the address itself is allowed: nobody serves anything there on purpose,
  // or what is served there are the keys of the machine.
  bool never = false;
};

// The address that packets would end up at: out of IPv4-mapped and -compatible addresses, 6to4, NAT64 and ISATAP.
// Otherwise the same.
IpAddress unwrapped(const IpAddress& address);

// The rule that keeps the address from being public. Nothing: it is public.
std::optional<AddressRule> find_address_rule(const IpAddress& address);

}  // namespace bide::server
