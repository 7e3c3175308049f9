#include "server/callbacks/own_listeners.h"

#include <algorithm>
#include <variant>

#include "http_client/local_addresses.h"
#include "server/callbacks/address_rules.h"
#include "server/callbacks/callback_url.h"

namespace bide::server {

namespace {

bool is_unspecified(const IpAddress& address) {
  return std::all_of(address.bytes.begin(), address.bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

bool is_loopback(const IpAddress& address) {
  const auto rule = find_address_rule(address);
  return rule && rule->name == "loopback";
}

bool is_of_this_machine(const IpAddress& address) {
  if (is_unspecified(address) || is_loopback(address)) return true;
  const auto all = http_client::local_addresses();
  return std::any_of(all.begin(), all.end(), [&](const http_client::HttpAddress& each) {
    return IpAddress{each.family == http_client::HttpAddress::Family::kIpv6, each.bytes} == address;
  });
}

}  // namespace

void OwnListeners::set(const std::vector<ListenAddress>& addresses) {
  std::lock_guard lock(mutex_);
  listeners_.clear();
  for (const ListenAddress& each : addresses) {
    if (each.is_unix() || each.port == 0) continue;
    if (const auto address = parse_ip(each.host)) listeners_.emplace_back(unwrapped(*address), each.port);
  }
}

bool OwnListeners::has(const IpAddress& given, std::uint16_t port) const {
  const IpAddress address = unwrapped(given);
  std::lock_guard lock(mutex_);
  return std::any_of(listeners_.begin(), listeners_.end(), [&](const auto& listener) {
    if (listener.second != port) return false;
    // Connecting to no address in particular is connecting to loopback.
    if (is_unspecified(address)) return is_unspecified(listener.first) || is_loopback(listener.first);
    return listener.first == address || (is_unspecified(listener.first) && is_of_this_machine(address));
  });
}

bool OwnListeners::has(std::string_view text) const {
  const auto parsed = parse_callback_url(text);
  const auto* url = std::get_if<CallbackUrl>(&parsed);
  if (url == nullptr) return false;
  if (url->address) return has(*url->address, url->port);
  if (url->host != "localhost" && !url->host.ends_with(".localhost")) return false;
  return has(*parse_ip("127.0.0.1"), url->port) || has(*parse_ip("::1"), url->port);
}

}  // namespace bide::server
