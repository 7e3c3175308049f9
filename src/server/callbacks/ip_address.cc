#include "server/callbacks/ip_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <vector>

#include "core/number_text.h"
#include "core/text.h"

namespace bide::server {

namespace {

std::optional<std::uint64_t> parse_part(std::string_view text) {
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    base = text[1] == 'x' || text[1] == 'X' ? 16 : 8;
    text.remove_prefix(base == 16 ? 2 : 1);
    if (text.empty()) return 0;  // "0x" is zero to some resolvers.
  }
  return core::parse_integer<std::uint64_t>(text, base);
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
  return std::all_of(last.begin(), last.end(), core::is_digit) || parse_part(last).has_value();
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
  const auto bits = core::parse_integer<int>(text.substr(slash + 1));
  if (!bits || *bits < 0 || *bits > most) return std::nullopt;
  range.bits = *bits;
  for (int bit = range.bits; bit < most; ++bit) {
    if ((address->bytes[static_cast<std::size_t>(bit / 8)] & (0x80 >> (bit % 8))) != 0) return std::nullopt;
  }
  return range;
}

namespace {

struct Row {
  std::string_view range;
  AddressRule rule;
};

// The first match counts.
constexpr Row kRows[] = {
    {"0.0.0.0/8", {"unspecified address", true}},
    {"10.0.0.0/8", {"private network"}},
    {"100.100.100.200/32", {"cloud metadata", true}},
    {"100.64.0.0/10", {"carrier-grade NAT"}},
    {"127.0.0.0/8", {"loopback"}},
    {"168.63.129.16/32", {"cloud metadata", true}},
    {"169.254.0.0/16", {"link-local", true}},
    {"172.16.0.0/12", {"private network"}},
    {"192.0.0.192/32", {"cloud metadata", true}},
    {"192.0.0.0/24", {"protocol assignments"}},
    {"192.0.2.0/24", {"documentation"}},
    {"192.88.99.0/24", {"6to4 relay"}},
    {"192.168.0.0/16", {"private network"}},
    {"198.18.0.0/15", {"benchmarking"}},
    {"198.51.100.0/24", {"documentation"}},
    {"203.0.113.0/24", {"documentation"}},
    {"224.0.0.0/4", {"multicast", true}},
    {"255.255.255.255/32", {"broadcast", true}},
    {"240.0.0.0/4", {"reserved", true}},

    {"::/128", {"unspecified address", true}},
    {"::1/128", {"loopback"}},
    {"64:ff9b:1::/48", {"local NAT64"}},
    {"100::/64", {"discard-only", true}},
    {"2001::/32", {"Teredo"}},
    {"2001:db8::/32", {"documentation"}},
    {"2001::/23", {"protocol assignments"}},
    {"3fff::/20", {"documentation"}},
    {"5f00::/16", {"segment routing"}},
    {"fd00:ec2::254/128", {"cloud metadata", true}},
    {"fd20:ce::254/128", {"cloud metadata", true}},
    {"fc00::/7", {"unique local address"}},
    {"fe80::/10", {"link-local", true}},
    {"fec0::/10", {"site-local"}},
    {"ff00::/8", {"multicast", true}},
};

struct Entry {
  IpRange range;
  AddressRule rule;
};

const std::vector<Entry>& table() {
  static const std::vector<Entry> entries = [] {
    std::vector<Entry> made;
    for (const Row& row : kRows) made.push_back({*parse_ip_range(row.range), row.rule});
    return made;
  }();
  return entries;
}

bool within(const IpAddress& address, std::string_view range) { return parse_ip_range(range)->contains(address); }

IpAddress ipv4_at(const IpAddress& address, std::size_t offset) {
  IpAddress inner;
  std::copy_n(address.bytes.begin() + static_cast<std::ptrdiff_t>(offset), 4, inner.bytes.begin());
  return inner;
}

// Without ::1 and ::, which are in the same range.
bool is_compatible(const IpAddress& address) {
  return within(address, "::/96") && (address.bytes[12] | address.bytes[13] | address.bytes[14]) != 0;
}

bool is_isatap(const IpAddress& address) {
  return (address.bytes[8] & 0xfc) == 0 && address.bytes[9] == 0 && address.bytes[10] == 0x5e &&
         address.bytes[11] == 0xfe;
}

}  // namespace

IpAddress unwrapped(const IpAddress& address) {
  if (!address.v6) return address;
  if (within(address, "::ffff:0:0/96") || within(address, "::ffff:0:0:0/96") || is_compatible(address) ||
      within(address, "64:ff9b::/96")) {
    return ipv4_at(address, 12);
  }
  if (within(address, "2002::/16")) return ipv4_at(address, 2);
  // Any interface identifier may look like ISATAP: it counts only where the embedded address is not public.
  if (is_isatap(address) && find_address_rule(ipv4_at(address, 12))) return ipv4_at(address, 12);
  return address;
}

std::optional<AddressRule> find_address_rule(const IpAddress& address) {
  for (const Entry& entry : table()) {
    if (entry.range.contains(address)) return entry.rule;
  }
  if (const IpAddress inner = unwrapped(address); inner != address) return find_address_rule(inner);
  // The only range from which addresses are assigned.
  if (address.v6 && !within(address, "2000::/3")) return AddressRule{"unassigned", true};
  return std::nullopt;
}

}  // namespace bide::server
