#include "http_client/http_client.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

namespace bide::http_client {

std::string HttpAddress::host() const {
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(family == Family::kIpv6 ? AF_INET6 : AF_INET, bytes.data(), text, sizeof text);
  return text;
}

std::string HttpAddress::to_string() const {
  return (family == Family::kIpv6 ? "[" + host() + "]" : host()) + ":" + std::to_string(port);
}

std::vector<HttpAddress> local_addresses() {
  std::vector<HttpAddress> found;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return found;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, freeifaddrs);
  for (const ifaddrs* each = all.get(); each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    HttpAddress address;
    if (each->ifa_addr->sa_family == AF_INET) {
      sockaddr_in v4;
      std::memcpy(&v4, each->ifa_addr, sizeof v4);
      std::memcpy(address.bytes.data(), &v4.sin_addr, 4);
    } else if (each->ifa_addr->sa_family == AF_INET6) {
      sockaddr_in6 v6;
      std::memcpy(&v6, each->ifa_addr, sizeof v6);
      address.family = HttpAddress::Family::kIpv6;
      std::memcpy(address.bytes.data(), &v6.sin6_addr, 16);
    } else {
      continue;
    }
    found.push_back(address);
  }
  return found;
}

}  // namespace bide::http_client
