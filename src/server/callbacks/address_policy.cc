#include "server/callbacks/address_policy.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "core/number_text.h"
#include "core/quote.h"
#include "http_client/http_client.h"

namespace bide::server {

namespace {

constexpr std::pair<std::string_view, AddressPolicy::Mode> kModes[] = {
    {"off", AddressPolicy::Mode::kOff},
    {"allow-list", AddressPolicy::Mode::kAllowList},
    {"public-only", AddressPolicy::Mode::kPublicOnly},
};

// Never names of public hosts.
constexpr std::string_view kLocalSuffixes[] = {".localhost", ".local", ".localdomain",
                                               ".internal",  ".lan",   ".home.arpa"};

bool is_local_name(std::string_view host) {
  if (host.find('.') == std::string_view::npos) return true;
  return std::any_of(std::begin(kLocalSuffixes), std::end(kLocalSuffixes),
                     [&](std::string_view suffix) { return host.ends_with(suffix); });
}

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
      entry.port = core::parse_integer<std::uint16_t>(port);
      if (!entry.port || *entry.port == 0) return std::nullopt;
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

// An exact name before a wildcard: it allows more.
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
  const bool exact_name = entry != nullptr && !entry->name.starts_with('.');
  if (const auto rule = find_address_rule(address)) {
    if (exact_name && !rule->never) return {};
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

namespace {

bool is_unspecified(const IpAddress& address) {
  return std::all_of(address.bytes.begin(), address.bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

bool is_loopback(const IpAddress& address) {
  const auto rule = find_address_rule(address);
  return rule && rule->name == "loopback";
}

bool is_of_this_machine(const IpAddress& address) {
  if (is_unspecified(address) || is_loopback(address)) return true;
  const auto all = http_client::local_addresses();
  return std::any_of(all.begin(), all.end(), [&](const http_client::HttpAddress& each) {
    return IpAddress{each.family == http_client::HttpAddress::Family::kIpv6, each.bytes} == address;
  });
}

}  // namespace

void OwnListeners::set(const std::vector<ListenAddress>& addresses) {
  std::lock_guard lock(mutex_);
  listeners_.clear();
  for (const ListenAddress& each : addresses) {
    if (each.is_unix() || each.port == 0) continue;
    if (const auto address = parse_ip(each.host)) listeners_.emplace_back(unwrapped(*address), each.port);
  }
}

bool OwnListeners::has(const IpAddress& given, std::uint16_t port) const {
  const IpAddress address = unwrapped(given);
  std::lock_guard lock(mutex_);
  return std::any_of(listeners_.begin(), listeners_.end(), [&](const auto& listener) {
    if (listener.second != port) return false;
    // Connecting to the unspecified address reaches loopback.
    if (is_unspecified(address)) return is_unspecified(listener.first) || is_loopback(listener.first);
    return listener.first == address || (is_unspecified(listener.first) && is_of_this_machine(address));
  });
}

bool OwnListeners::has(std::string_view text) const {
  const auto parsed = parse_callback_url(text);
  const auto* url = std::get_if<CallbackUrl>(&parsed);
  if (url == nullptr) return false;
  if (url->address) return has(*url->address, url->port);
  if (url->host != "localhost" && !url->host.ends_with(".localhost")) return false;
  return has(*parse_ip("127.0.0.1"), url->port) || has(*parse_ip("::1"), url->port);
}

}  // namespace bide::server
