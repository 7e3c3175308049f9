#include "server/callbacks/callback_url.h"

#include <algorithm>

#include "core/number_text.h"
#include "core/quote.h"
#include "core/text.h"

namespace bide::server {

namespace {

bool is_host_name(std::string_view host) {
  if (host.empty() || host.size() > 253) return false;
  std::size_t label = 0;
  for (const char c : host) {
    if (c == '.') {
      if (label == 0) return false;
      label = 0;
      continue;
    }
    const bool fine = (c >= 'a' && c <= 'z') || core::is_digit(c) || c == '-' || c == '_';
    if (!fine || ++label > 63) return false;
  }
  return label > 0;
}

// Not allowed in a URL, or understood differently by different parsers.
bool is_forbidden(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte <= 0x20 || byte >= 0x7f || std::string_view("\"<>\\^`{|}").find(c) != std::string_view::npos;
}

std::optional<UrlProblem> read_host(std::string_view text, CallbackUrl& url) {
  if (text.starts_with('[')) {
    url.host = core::lower_case(text.substr(1, text.size() - 2));
    url.address = parse_ip(url.host);
    if (!url.address || !url.address->v6) {
      return UrlProblem{"host", core::quoted(text) + " is not an IPv6 address; a zone is not allowed"};
    }
    url.host = url.address->to_string();
    return std::nullopt;
  }
  url.host = core::lower_case(text);
  if (url.host.size() > 1 && url.host.ends_with('.')) url.host.pop_back();
  if (looks_like_ipv4(url.host)) {
    url.address = parse_ip(url.host);
    url.unusual_number = !url.address;
    if (!url.address) url.address = parse_loose_ipv4(url.host);
    if (!url.address) return UrlProblem{"host", core::quoted(text) + " is neither a name nor an address"};
    url.host = url.address->to_string();
    return std::nullopt;
  }
  if (!is_host_name(url.host)) {
    return UrlProblem{"host", core::quoted(text) + " is not a host name; letters, digits, '-' and '.' are allowed, "
                                                   "other names in their xn-- form"};
  }
  return std::nullopt;
}

std::optional<UrlProblem> read_port(std::string_view text, CallbackUrl& url) {
  url.port = url.https ? 443 : 80;
  if (text.empty()) return std::nullopt;
  url.port = core::parse_integer<std::uint16_t>(text).value_or(0);
  if (url.port != 0) return std::nullopt;
  return UrlProblem{"port", core::quoted(text) + " is not a port; 1 to 65535 are"};
}

}  // namespace

std::variant<CallbackUrl, UrlProblem> parse_callback_url(std::string_view text) {
  if (text.empty()) return UrlProblem{"url", "the URL is empty"};
  if (text.size() > CallbackUrl::kMostBytes) {
    return UrlProblem{"url", "the URL has " + std::to_string(text.size()) + " bytes; at most " +
                                 std::to_string(CallbackUrl::kMostBytes) + " are allowed"};
  }
  const std::size_t colon = text.find(':');
  CallbackUrl url;
  const std::string scheme = colon == std::string_view::npos ? "" : core::lower_case(text.substr(0, colon));
  url.https = scheme == "https";
  if (!url.https && scheme != "http") {
    return UrlProblem{"scheme", (colon == std::string_view::npos ? "there is no scheme"
                                                                 : "the scheme is " + core::quoted(scheme)) +
                                    "; only http:// and https:// are allowed"};
  }
  text.remove_prefix(colon + 1);
  if (!text.starts_with("//")) return UrlProblem{"url", "after the scheme comes // and a host"};
  text.remove_prefix(2);
  if (const auto bad = std::find_if(text.begin(), text.end(), is_forbidden); bad != text.end()) {
    return UrlProblem{"url", "the character " + core::quoted(std::string_view(&*bad, 1)) +
                                 " is not allowed in a URL; write it percent-encoded"};
  }
  if (text.find('#') != std::string_view::npos) {
    return UrlProblem{"fragment", "a fragment (#) is not allowed: it would never be sent"};
  }

  const std::size_t end = std::min(text.find_first_of("/?"), text.size());
  std::string_view authority = text.substr(0, end);
  const std::string_view target = text.substr(end);
  url.target = target.starts_with('/') ? std::string(target) : "/" + std::string(target);
  if (authority.find('@') != std::string_view::npos) {
    return UrlProblem{"user information", "a name or password before the host is not allowed; deliveries are signed"};
  }
  const std::size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
  if (bracket == std::string_view::npos) return UrlProblem{"host", "the bracket of the host is not closed"};
  const std::size_t host_end = std::min(authority.find(':', bracket), authority.size());
  const std::string_view host = authority.substr(0, host_end);
  if (host.empty()) return UrlProblem{"host", "there is no host"};
  if (bracket != 0 && host.size() != bracket + 1) return UrlProblem{"host", core::quoted(host) + " is not a host"};
  if (auto problem = read_host(host, url)) return *problem;
  const std::string_view port = host_end < authority.size() ? authority.substr(host_end + 1) : std::string_view();
  if (auto problem = read_port(port, url)) return *problem;
  return url;
}

std::string CallbackUrl::host_key() const {
  const bool brackets = address && address->v6;
  return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

// Under a suffix of two labels (co.uk) unrelated names count together; the limit is not a small one.
std::string CallbackUrl::site() const {
  if (address) return host;
  const std::size_t last = host.rfind('.');
  const std::size_t before = last == std::string::npos || last == 0 ? std::string::npos : host.rfind('.', last - 1);
  return before == std::string::npos ? host : host.substr(before + 1);
}

std::string CallbackUrl::whole() const { return (https ? "https://" : "http://") + host_key() + target; }

std::string CallbackUrl::shown() const {
  const std::size_t query = target.find('?');
  return (https ? "https://" : "http://") + host_key() +
         (query == std::string::npos ? target : target.substr(0, query) + "?***");
}

}  // namespace bide::server
