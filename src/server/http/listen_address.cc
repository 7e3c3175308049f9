#include "server/http/listen_address.h"

#include <boost/asio/ip/address.hpp>
#include <charconv>
#include <optional>

#include "core/quote.h"

namespace bide::server {

namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::size_t kLongestPath = 107;  // Of sockaddr_un.

Error invalid(std::string_view text, std::string_view why) {
  return {ErrorCode::kInvalidArgument, "the address " + core::quoted(text) + " " + std::string(why) +
                                           "; examples: 127.0.0.1:7070, [::1]:7070, 0.0.0.0:7070, "
                                           "unix:/run/bide/bide.sock"};
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return port;
}

}  // namespace

bool ListenAddress::is_local() const {
  if (is_unix()) return true;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  return !error && address.is_loopback();
}

Result<ListenAddress> parse_listen_address(std::string_view text) {
  if (text.starts_with(kUnix)) {
    const std::string_view path = text.substr(kUnix.size());
    if (path.empty()) return invalid(text, "has no path");
    if (path.size() > kLongestPath || path.find('\0') != std::string_view::npos) {
      return invalid(text, "has a path of more than " + std::to_string(kLongestPath) + " bytes");
    }
    return ListenAddress{.path = std::string(path)};
  }
  const std::size_t colon = text.rfind(':');
  const bool is_port_only = colon == std::string_view::npos;
  const std::optional<std::uint16_t> port = parse_port(is_port_only ? text : text.substr(colon + 1));
  if (!port) return invalid(text, "does not end with a port from 0 to 65535");
  std::string_view host = is_port_only ? std::string_view("127.0.0.1") : text.substr(0, colon);
  if (host == "localhost") host = "127.0.0.1";
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  if (has_brackets) host = host.substr(1, host.size() - 2);
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(std::string(host), error);
  if (error || address.is_v6() != has_brackets) {
    return invalid(text, "does not begin with an address in digits (IPv6 in brackets) or localhost");
  }
  return ListenAddress{.host = std::string(host), .port = *port};
}

std::string to_string(const ListenAddress& address) {
  if (address.is_unix()) return std::string(kUnix) + address.path;
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

}  // namespace bide::server
