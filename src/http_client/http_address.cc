#include "http_client/http_address.h"

#include <arpa/inet.h>
#include <sys/socket.h>

namespace bide::http_client {

std::string HttpAddress::host() const {
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(family == Family::kIpv6 ? AF_INET6 : AF_INET, bytes.data(), text, sizeof text);
  return text;
}

std::string HttpAddress::to_string() const {
  return (family == Family::kIpv6 ? "[" + host() + "]" : host()) + ":" + std::to_string(port);
}

}  // namespace bide::http_client
