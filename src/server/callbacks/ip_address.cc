#include "server/callbacks/ip_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace bide::server {

namespace {

std::optional<std::uint64_t> parse_part(std::string_view text) {
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    base = text[1] == 'x' || text[1] == 'X' ? 16 : 8;
    text.remove_prefix(base == 16 ? 2 : 1);
    if (text.empty()) return 0;  // "0x" is a zero to some.
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view without_last_dot(std::string_view host) {
  if (host.size() > 1 && host.ends_with('.')) host.remove_suffix(1);
  return host;
}

}  // namespace

std::string IpAddress::to_string() const {
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(v6 ? AF_INET6 : AF_INET, bytes.data(), text, sizeof text);
  return text;
}

std::optional<IpAddress> parse_ip(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  const std::string whole(text);
  IpAddress address;
  address.v6 = text.find(':') != std::string_view::npos;
  if (inet_pton(address.v6 ? AF_INET6 : AF_INET, whole.c_str(), address.bytes.data()) != 1) return std::nullopt;
  return address;
}

std::optional<IpAddress> parse_loose_ipv4(std::string_view text) {
  text = without_last_dot(text);
  std::vector<std::uint64_t> parts;
  while (true) {
    const std::size_t dot = text.find('.');
    const auto part = parse_part(text.substr(0, dot));
    if (!part || parts.size() == 4) return std::nullopt;
    parts.push_back(*part);
    if (dot == std::string_view::npos) break;
    text.remove_prefix(dot + 1);
  }
  const std::size_t last_bytes = 5 - parts.size();
  if (parts.back() >= std::uint64_t{1} << (8 * last_bytes)) return std::nullopt;
  IpAddress address;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (parts[i] > 255) return std::nullopt;
    address.bytes[i] = static_cast<std::uint8_t>(parts[i]);
  }
  for (std::size_t i = 0; i < last_bytes; ++i) {
    address.bytes[3 - i] = static_cast<std::uint8_t>(parts.back() >> (8 * i));
  }
  return address;
}

bool looks_like_ipv4(std::string_view host) {
  host = without_last_dot(host);
  const std::string_view last = host.substr(host.rfind('.') + 1);  // npos + 1 is 0: the whole.
  if (last.empty()) return false;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return std::all_of(last.begin(), last.end(), is_digit) || parse_part(last).has_value();
}

bool IpRange::contains(const IpAddress& other) const {
  if (other.v6 != address.v6) return false;
  for (int bit = 0; bit < bits; bit += 8) {
    const auto index = static_cast<std::size_t>(bit / 8);
    const int here = std::min(8, bits - bit);
    const int mask = (0xff << (8 - here)) & 0xff;
    if (((address.bytes[index] ^ other.bytes[index]) & mask) != 0) return false;
  }
  return true;
}

std::optional<IpRange> parse_ip_range(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto address = parse_ip(text.substr(0, slash));
  if (!address) return std::nullopt;
  const int most = address->v6 ? 128 : 32;
  IpRange range{*address, most};
  if (slash == std::string_view::npos) return range;
  const std::string_view bits = text.substr(slash + 1);
  const auto [end, error] = std::from_chars(bits.data(), bits.data() + bits.size(), range.bits);
  if (bits.empty() || error != std::errc() || end != bits.data() + bits.size()) return std::nullopt;
  if (range.bits < 0 || range.bits > most) return std::nullopt;
  for (int bit = range.bits; bit < most; ++bit) {
    if ((address->bytes[static_cast<std::size_t>(bit / 8)] & (0x80 >> (bit % 8))) != 0) return std::nullopt;
  }
  return range;
}

}  // namespace bide::server
