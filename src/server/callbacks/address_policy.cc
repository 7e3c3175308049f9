#include "server/callbacks/address_policy.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/quote.h"
#include "server/callbacks/address_rules.h"

namespace bide::server {

namespace {

constexpr std::pair<std::string_view, AddressPolicy::Mode> kModes[] = {
    {"off", AddressPolicy::Mode::kOff},
    {"allow-list", AddressPolicy::Mode::kAllowList},
    {"public-only", AddressPolicy::Mode::kPublicOnly},
};

// Names that lead nowhere outside, or to this very machine.
constexpr std::string_view kLocalSuffixes[] = {".localhost", ".local", ".localdomain",
                                               ".internal",  ".lan",   ".home.arpa"};

bool is_local_name(std::string_view host) {
  if (host.find('.') == std::string_view::npos) return true;
  return std::any_of(std::begin(kLocalSuffixes), std::end(kLocalSuffixes),
                     [&](std::string_view suffix) { return host.ends_with(suffix); });
}

// "an IPv4 address in an IPv6 one" when that is how it was hidden.
std::string described(const IpAddress& address) {
  const IpAddress inner = unwrapped(address);
  if (inner == address) return address.to_string();
  return address.to_string() + ", which is " + inner.to_string() + ",";
}

}  // namespace

std::string_view to_string(AddressPolicy::Mode mode) {
  for (const auto& [name, value] : kModes) {
    if (value == mode) return name;
  }
  return "off";
}

Result<AddressPolicy> AddressPolicy::make(std::string_view mode, const std::vector<std::string>& allow,
                                          std::vector<std::uint16_t> ports) {
  AddressPolicy policy;
  const auto known =
      std::find_if(std::begin(kModes), std::end(kModes), [&](const auto& row) { return row.first == mode; });
  if (known == std::end(kModes)) {
    return Error{ErrorCode::kInvalidArgument, "invalid callback policy " + core::quoted(mode) +
                                                  "; 'off', 'allow-list' and 'public-only' are policies"};
  }
  policy.mode_ = known->second;
  policy.ports_ = std::move(ports);
  for (const std::string& text : allow) {
    auto entry = parse_entry(text);
    if (!entry) {
      return Error{ErrorCode::kInvalidArgument,
                   "invalid entry " + core::quoted(text) +
                       " in the callback allow-list; a host, *.domain, an address or a range such as 10.0.0.0/8, "
                       "each with or without a port (host:9000, host:*)"};
    }
    policy.entries_.push_back(std::move(*entry));
  }
  if (policy.mode_ == Mode::kAllowList && policy.entries_.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "the callback policy is 'allow-list' but the list is empty; name hosts in it, or say 'off'"};
  }
  return policy;
}

std::optional<AddressPolicy::Entry> AddressPolicy::parse_entry(std::string_view text) {
  Entry entry;
  std::string_view host = text;
  std::string unbracketed;
  const std::size_t colon = text.rfind(':');
  const std::size_t bracket = text.rfind(']');
  const bool bare_v6 = bracket == std::string_view::npos && text.find(':') != colon;
  if (colon != std::string_view::npos && !bare_v6 && (bracket == std::string_view::npos || colon > bracket)) {
    const std::string_view port = text.substr(colon + 1);
    host = text.substr(0, colon);
    if (port == "*") {
      entry.any_port = true;
    } else {
      std::uint16_t number = 0;
      const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
      if (port.empty() || error != std::errc() || end != port.data() + port.size() || number == 0) return std::nullopt;
      entry.port = number;
    }
  }
  if (host.starts_with('[')) {
    if (bracket == std::string_view::npos) return std::nullopt;
    unbracketed = std::string(host.substr(1, bracket - 1)) + std::string(host.substr(bracket + 1));
    host = unbracketed;
  }
  entry.range = parse_ip_range(host);
  if (entry.range) return entry;
  const bool wildcard = host.starts_with("*.");
  if (wildcard) host.remove_prefix(2);
  const auto parsed = parse_callback_url("http://" + std::string(host) + "/");
  const auto* url = std::get_if<CallbackUrl>(&parsed);
  if (url == nullptr || url->address || host.find_first_of("/?#") != std::string_view::npos) return std::nullopt;
  entry.name = (wildcard ? "." : "") + url->host;
  return entry;
}

bool AddressPolicy::is_usual_port(std::uint16_t port) const {
  return std::find(ports_.begin(), ports_.end(), port) != ports_.end();
}

bool AddressPolicy::admits_port(const Entry& entry, std::uint16_t port) const {
  if (entry.any_port) return true;
  return entry.port ? *entry.port == port : is_usual_port(port);
}

bool AddressPolicy::lists_address(const IpAddress& address, std::uint16_t port) const {
  const IpAddress inner = unwrapped(address);
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.range && (entry.range->contains(address) || entry.range->contains(inner)) && admits_port(entry, port);
  });
}

// A whole name before a wildcard, since it allows more.
const AddressPolicy::Entry* AddressPolicy::find_name(std::string_view host, std::uint16_t port) const {
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.name.empty() || !admits_port(entry, port)) continue;
    if (entry.name == host) return &entry;
    if (entry.name.starts_with('.') && host.size() > entry.name.size() && host.ends_with(entry.name)) found = &entry;
  }
  return found;
}

Error AddressPolicy::blocked(std::string_view rule, const std::string& reason) const {
  return Error{ErrorCode::kInvalidArgument,
               "callback address blocked (rule: " + std::string(rule) + "): " + reason + "; the policy is '" +
                   std::string(to_string(mode_)) + "'"};
}

Status AddressPolicy::check(std::string_view text) const {
  const auto parsed = parse_callback_url(text);
  if (const auto* problem = std::get_if<UrlProblem>(&parsed)) return blocked(problem->rule, problem->text);
  return check(std::get<CallbackUrl>(parsed));
}

Status AddressPolicy::check(const CallbackUrl& url) const {
  if (mode_ == Mode::kOff)
    return blocked("off", "callbacks are switched off; the operator must choose a callback policy");
  if (url.address) {
    if (lists_address(*url.address, url.port)) return {};
    const auto rule = find_address_rule(*url.address);
    if (rule) return blocked(rule->name, described(*url.address) + " is not a public address");
    if (mode_ == Mode::kAllowList) return blocked("allow-list", url.host_key() + " is not in the callback allow-list");
    if (url.unusual_number) {
      return blocked("numeric form", "write the address as " + url.address->to_string());
    }
  } else {
    if (find_name(url.host, url.port) != nullptr) return {};
    if (mode_ == Mode::kAllowList) return blocked("allow-list", url.host_key() + " is not in the callback allow-list");
    if (is_local_name(url.host)) return blocked("local name", core::quoted(url.host) + " is not a public name");
  }
  if (!is_usual_port(url.port)) {
    return blocked("port", "port " + std::to_string(url.port) + " is not one that callbacks may use");
  }
  return {};
}

Status AddressPolicy::check_address(std::string_view host, const IpAddress& address, std::uint16_t port) const {
  if (mode_ == Mode::kOff) return blocked("off", "callbacks are switched off");
  if (lists_address(address, port)) return {};
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const Entry* entry = find_name(host, port);
  const bool whole_name = entry != nullptr && !entry->name.starts_with('.');
  if (const auto rule = find_address_rule(address)) {
    if (whole_name && !rule->never) return {};
    return blocked(rule->name,
                   core::quoted(host) + " leads to " + described(address) + " which is not a public address");
  }
  if (entry != nullptr) return {};
  if (mode_ == Mode::kAllowList)
    return blocked("allow-list", core::quoted(host) + " is not in the callback allow-list");
  if (!is_usual_port(port))
    return blocked("port", "port " + std::to_string(port) + " is not one that callbacks may use");
  return {};
}

Status check_callback_url(const AddressPolicy& policy, std::string_view url) { return policy.check(url); }

}  // namespace bide::server
