#include "server/http/request_head.h"

#include <algorithm>
#include <utility>

#include "core/quote.h"
#include "core/text.h"
#include "core/url_escape.h"
#include "server/http/request.h"

namespace bide::server {

namespace {

wire::Problem invalid(std::string detail) {
  return {.status = 400, .code = "invalid_target", .detail = std::move(detail)};
}

bool is_alphanumeric(char c) {
  const char lower = core::lower_case(c);
  return core::is_digit(c) || (lower >= 'a' && lower <= 'z');
}

// Of "http://host/path" both; what has no scheme is a path.
std::pair<std::string_view, std::string_view> authority_and_path(std::string_view text) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!is_same_text(text.substr(0, scheme.size()), scheme)) continue;
    text.remove_prefix(scheme.size());
    const std::size_t path = std::min(text.find_first_of("/?"), text.size());
    return {text.substr(0, path), path == text.size() ? std::string_view("/") : text.substr(path)};
  }
  return {{}, text};
}

}  // namespace

bool is_host(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_alphanumeric(c) || std::string_view("-._~:[]%").find(c) != std::string_view::npos;
  });
}

bool percent_decode(std::string_view text, bool plus_is_space, std::string& out) {
  if (text.find('\0') != std::string_view::npos) return false;
  std::string spaced(text);
  if (plus_is_space) std::replace(spaced.begin(), spaced.end(), '+', ' ');
  Result<std::string> plain = core::unescape_url(spaced);
  if (!plain) return false;
  out = std::move(*plain);
  return true;
}

std::variant<Target, wire::Problem> parse_target(std::string_view text) {
  const auto visible = [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7f; };
  if (!std::all_of(text.begin(), text.end(), visible)) return invalid("the request target holds a space or control character");
  if (text == "*") return Target{.path = "*"};
  const auto [authority, path_and_query] = authority_and_path(text);
  // A user or nothing before the path: not the name of a server.
  if (path_and_query.data() != text.data() && !is_host(authority)) {
    return invalid("the request target " + core::quoted(text) + " names no host");
  }
  text = path_and_query;
  const std::size_t mark = text.find('?');
  Target target{.authority = std::string(authority), .path = std::string(text.substr(0, mark))};
  if (target.path.empty()) target.path = "/";
  if (target.path.front() != '/') {
    return invalid("the request target must be a path that begins with /, not " + core::quoted(text));
  }
  std::string decoded;
  if (!percent_decode(target.path, false, decoded)) {
    return invalid("the path " + core::quoted(target.path) + " has a % that is not followed by two hexadecimal digits, or %00");
  }
  if (mark == std::string_view::npos) return target;

  for (std::string_view rest = text.substr(mark + 1); !rest.empty();) {
    const std::size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    std::string name;
    std::string value;
    if (!percent_decode(pair.substr(0, equals), true, name) ||
        !percent_decode(pair.substr(std::min(equals + 1, pair.size())), true, value)) {
      return invalid("the query parameter " + core::quoted(pair) +
                     " has a % that is not followed by two hexadecimal digits, or %00");
    }
    const auto [at, is_new] = target.query.emplace(std::move(name), std::move(value));
    if (!is_new) {
      return wire::Problem{.status = 400,
                           .code = "duplicate_parameter",
                           .detail = "the query parameter " + core::quoted(at->first) + " is given twice",
                           .field = at->first};
    }
  }
  return target;
}

}  // namespace bide::server
