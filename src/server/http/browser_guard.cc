#include "server/http/browser_guard.h"

#include <algorithm>
#include <utility>

#include "core/quote.h"
#include "core/text.h"

namespace bide::server {

namespace {

// "name:80" -> "name", "[::1]:80" -> "[::1]".
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

// Digits and dots only, or in brackets: what no DNS can point elsewhere.
bool is_address(std::string_view host) {
  if (host.starts_with('[')) return host.ends_with(']');
  return !host.empty() && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool changes_something(Method method) {
  return method != Method::kGet && method != Method::kHead && method != Method::kOptions;
}

wire::Problem cross_site(std::string_view from) {
  return {.status = 403,
          .code = "cross_site",
          .detail = "a web page of another site (" + core::quoted(from) + ") may not change anything here"};
}

}  // namespace

BrowserGuard::BrowserGuard(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {
  for (std::string& host : hosts_) host = core::lower_case(host);
}

bool BrowserGuard::is_ours(std::string_view host) const {
  std::string name = core::lower_case(without_port(host));
  if (name.ends_with('.')) name.pop_back();
  if (is_address(name) || name == "localhost" || name.ends_with(".localhost")) return true;
  return std::any_of(hosts_.begin(), hosts_.end(), [&](const std::string& ours) {
    return ours.starts_with('.') ? name.ends_with(ours) : name == ours;
  });
}

std::optional<wire::Problem> BrowserGuard::check(const Request& request) const {
  // No browser reaches a Unix socket.
  if (request.peer == "unix") return std::nullopt;
  const std::string_view host = request.field("host");
  // HTTP/1.0 without Host: no browser either.
  if (!host.empty() && request.field("authorization").empty() && !is_ours(host)) {
    return wire::Problem{.status = 403,
                         .code = "host_not_allowed",
                         .detail = "the name " + core::quoted(host) +
                                   " is not one of this server's: name it with --host or under 'hosts' in the "
                                   "configuration, or show a token"};
  }
  if (!changes_something(request.method)) return std::nullopt;
  if (const std::string_view site = request.field("sec-fetch-site"); !site.empty()) {
    if (site == "same-origin" || site == "none") return std::nullopt;
    return cross_site(site);
  }
  if (const std::string_view origin = request.field("origin"); !origin.empty()) {
    const std::size_t scheme = origin.find("://");
    if (scheme == std::string_view::npos || !is_same_text(origin.substr(scheme + 3), host)) return cross_site(origin);
  }
  return std::nullopt;
}

}  // namespace bide::server
