#include "server/callbacks/address_rules.h"

#include <algorithm>
#include <vector>

namespace bide::server {

namespace {

struct Row {
  std::string_view range;
  AddressRule rule;
};

// The first that matches counts.
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

// ::1 and :: lie in the range of the compatible ones, but are addresses of their own.
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
  // Only where what is wrapped is worth hiding: elsewhere these bits are just bits, and the prefix decides.
  if (is_isatap(address) && find_address_rule(ipv4_at(address, 12))) return ipv4_at(address, 12);
  return address;
}

std::optional<AddressRule> find_address_rule(const IpAddress& address) {
  for (const Entry& entry : table()) {
    if (entry.range.contains(address)) return entry.rule;
  }
  if (const IpAddress inner = unwrapped(address); inner != address) return find_address_rule(inner);
  // All that was ever given to anybody.
  if (address.v6 && !within(address, "2000::/3")) return AddressRule{"unassigned", true};
  return std::nullopt;
}

}  // namespace bide::server
