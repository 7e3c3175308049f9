// ListenAddress: where a server waits for connections.
//
//   127.0.0.1:7070   [::1]:7070   localhost:7070   0.0.0.0:7070   7070   unix:/run/bide/bide.sock

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bide/result.h"

namespace bide::server {

struct ListenAddress {
  std::string host = {};  // An address in digits; IPv6 without brackets.
  std::uint16_t port = 0;  // 0: any.
  std::string path = {};  // Of a Unix socket; then the others are empty.

  bool is_unix() const { return !path.empty(); }
  // Only this machine can reach it.
  bool is_local() const;
};

// kInvalidArgument. Names other than localhost are not looked up: what a server listens on should not depend on DNS.
Result<ListenAddress> parse_listen_address(std::string_view text);

std::string to_string(const ListenAddress& address);

}  // namespace bide::server
