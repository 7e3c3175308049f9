// OwnListeners: where this server itself listens. No callback goes there: a request that comes from this machine may be
// trusted more than one from elsewhere, and whoever may create a job could have the server make it.

#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "server/callbacks/ip_address.h"
#include "server/http/listen_address.h"

namespace bide::server {

// In the texts of what was refused for it.
inline constexpr std::string_view kOwnListenerRule = "(rule: own listener)";

// Safe to share between threads.
class OwnListeners {
 public:
  void set(const std::vector<ListenAddress>& addresses);

  // A connection to this address would reach us: it is listened on itself, or it is an address of this machine and its
  // port is listened on for all of them.
  bool has(const IpAddress& address, std::uint16_t port) const;
  // The same for a URL, as far as it is known without asking for the addresses of a name.
  bool has(std::string_view url) const;

 private:
  mutable std::mutex mutex_;  // Guards everything below.
  std::vector<std::pair<IpAddress, std::uint16_t>> listeners_;
};

}  // namespace bide::server
