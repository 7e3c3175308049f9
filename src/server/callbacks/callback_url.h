// CallbackUrl: a parsed URL. What is sent is put together from its parts, so that it cannot differ from what was checked.
// Stricter than browsers: what two parsers might understand differently is refused.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "server/callbacks/ip_address.h"

namespace bide::server {

struct CallbackUrl {
  static constexpr std::size_t kMostBytes = 4096;

  bool https = false;
  std::string host = {};  // In lower case, without brackets and without a dot at the end.
  std::optional<IpAddress> address = {};  // When the host is one, in whatever form.
  bool unusual_number = false;  // An IPv4 address that is not written as four decimal numbers.
  std::uint16_t port = 0;
  std::string target = "/";  // Path and query; never empty.

  std::string whole() const;     // To be sent. May hold secrets in its query.
  std::string shown() const;     // For logs and people: the query as `?***`.
  std::string host_key() const;  // "host:port": what deliveries are counted by.
  std::string site() const;      // The last two labels of a name, or the address: all names below it count together.
};

struct UrlProblem {
  std::string_view rule;  // "scheme", "user information", "port" ...
  std::string text;       // One sentence without a dot. Never repeats the URL, which may hold a password.
};

std::variant<CallbackUrl, UrlProblem> parse_callback_url(std::string_view text);

}  // namespace bide::server
