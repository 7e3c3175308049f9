// What the authenticator wants to know of a caller's address.

#pragma once

#include <string>
#include <string_view>

namespace bide::server {

// Loopback, or "unix". An address that cannot be read is not.
bool is_local(std::string_view peer);

// Whose failures are counted together: an IPv4 address, or a /64 of IPv6, which one user has all to themselves.
std::string address_group(std::string_view peer);

}  // namespace bide::server
