#include "server/auth/caller_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace bide::server {
namespace {

constexpr std::string_view kUnix = "unix";

struct Address {
  std::array<std::uint8_t, 16> bytes{};
  bool is_v4 = false;  // The last four are it.
};

// IPv4 also where it comes in the clothes of IPv6, as it does on a socket for both.
std::optional<Address> parse(std::string_view peer) {
  Address address;
  const std::string text(peer.substr(0, peer.find('%')));
  if (::inet_pton(AF_INET, text.c_str(), &address.bytes[12]) == 1) {
    address.is_v4 = true;
    return address;
  }
  if (::inet_pton(AF_INET6, text.c_str(), address.bytes.data()) != 1) return std::nullopt;
  const auto& bytes = address.bytes;
  address.is_v4 = std::all_of(bytes.begin(), bytes.begin() + 10, [](std::uint8_t byte) { return byte == 0; }) &&
                  bytes[10] == 0xff && bytes[11] == 0xff;
  return address;
}

}  // namespace

bool is_local(std::string_view peer) {
  if (peer == kUnix) return true;
  const std::optional<Address> address = parse(peer);
  if (!address) return false;
  if (address->is_v4) return address->bytes[12] == 127;
  std::array<std::uint8_t, 16> loopback{};
  loopback[15] = 1;
  return address->bytes == loopback;
}

std::string address_group(std::string_view peer) {
  const std::optional<Address> address = parse(peer);
  // What is no address cannot come from outside; it is cut so that it cannot be long either.
  if (!address) return std::string(peer.substr(0, 64));
  const auto* const bytes = reinterpret_cast<const char*>(address->bytes.data());
  return address->is_v4 ? std::string(bytes + 12, 4) : std::string(bytes, 8);
}

}  // namespace bide::server
