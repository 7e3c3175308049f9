#include "http_client/http_address.h"

#include <arpa/inet.h>
#include <sys/socket.h>

namespace bide::http_client {

std::string HttpAddress::to_string() const {
  char text[INET6_ADDRSTRLEN] = {};
  const bool v6 = family == Family::kIpv6;
  inet_ntop(v6 ? AF_INET6 : AF_INET, bytes.data(), text, sizeof text);
  return (v6 ? "[" + std::string(text) + "]" : std::string(text)) + ":" + std::to_string(port);
}

}  // namespace bide::http_client
