#include "brokers/remote/remote_url.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "core/duration.h"
#include "core/quote.h"
#include "core/url_escape.h"

namespace bide::brokers::remote {

namespace {

using core::quoted;

constexpr std::size_t kTokenBytes = 1024;
constexpr std::size_t kMostInABatch = 10'000;

Error invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// The token itself is never repeated.
Status check_token(std::string_view token, const std::string& from) {
  const bool printable = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (!token.empty() && token.size() <= kTokenBytes && printable) return {};
  return invalid(from + " holds no token; expected is one line such as `bide token create` prints");
}

Status set_token_file(RemoteSettings& settings, const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    const int why = errno;
    return Error{why == EACCES ? ErrorCode::kPermissionDenied : ErrorCode::kNotFound,
                 "cannot read the token file " + quoted(path) + ": " + std::strerror(why)};
  }
  std::string line;
  std::getline(file, line);
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  if (Status checked = check_token(line, "the token file " + quoted(path)); !checked) return checked;
  settings.token = std::move(line);
  return {};
}

Status set_ca(RemoteSettings& settings, const std::string& path) {
  if (!settings.base.starts_with("https:")) return invalid("only with https, not with http");
  settings.ca = path;
  return {};
}

Status set_patience(RemoteSettings& settings, const std::string& value) {
  const Result<Milliseconds> patience = core::parse_duration(value);
  if (!patience) return patience.error();
  if (*patience > std::chrono::hours(1)) return invalid("invalid duration " + quoted(value) + "; allowed: 0 to 1h");
  settings.patience = *patience;
  return {};
}

Status set_batch(RemoteSettings& settings, const std::string& value) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 1 || number > kMostInABatch) {
    return invalid("invalid number " + quoted(value) + "; allowed are whole numbers from 1 to " +
                   std::to_string(kMostInABatch));
  }
  settings.batch = number;
  return {};
}

struct Option {
  std::string_view name;
  Status (*set)(RemoteSettings&, const std::string&);
};

constexpr std::array kOptions = {Option{"token_file", set_token_file}, Option{"ca", set_ca}, Option{"batch", set_batch},
                                 Option{"patience", set_patience}};

Status apply_option(RemoteSettings& settings, std::string_view name, std::string_view escaped) {
  if (name == "token") {
    return invalid("a token is not given in the URL, which others can see; use token_file=FILE or set BIDE_TOKEN");
  }
  const auto known = std::find_if(kOptions.begin(), kOptions.end(), [&](const Option& o) { return o.name == name; });
  if (known == kOptions.end()) {
    std::vector<std::string_view> names;
    for (const Option& option : kOptions) names.push_back(option.name);
    return core::unknown_url_option(name, names);
  }
  const Result<std::string> value = core::unescape_url(escaped);
  if (!value) return value.error();
  if (Status set = known->set(settings, *value); !set) {
    return Error{set.error().code, std::string(name) + ": " + set.error().message};
  }
  return {};
}

Status check_port(std::string_view port) {
  int number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error == std::errc() && end == port.data() + port.size() && number >= 1 && number <= 65535) return {};
  return invalid("invalid port in the URL; allowed are 1 to 65535");
}

// place = "//" host [ ":" port ] [ path ]
Status set_base(RemoteSettings& settings, std::string_view scheme, std::string_view place) {
  const std::string example = "; an example is " + std::string(scheme) + "://127.0.0.1:7070";
  if (!place.starts_with("//")) return invalid("the scheme is followed by //" + example);
  place.remove_prefix(2);
  while (place.ends_with('/')) place.remove_suffix(1);
  const std::string_view authority = place.substr(0, place.find('/'));
  if (authority.find('@') != std::string_view::npos) {
    return invalid("a bide server takes no name and password in the URL; use token_file=FILE or set BIDE_TOKEN");
  }
  const std::size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
  if (bracket == std::string_view::npos) return invalid("invalid host in the URL: [ without ]");
  const std::size_t colon = authority.find(':', bracket);
  if (authority.empty() || colon == 0) return invalid("the URL names no host" + example);
  if (colon != std::string_view::npos) {
    if (Status checked = check_port(authority.substr(colon + 1)); !checked) return checked;
  }
  const bool printable = std::all_of(place.begin(), place.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (!printable || place.find('#') != std::string_view::npos) return invalid("invalid character in the URL");
  settings.base = std::string(scheme) + "://" + std::string(place);
  return {};
}

}  // namespace

Result<RemoteSettings> parse_remote_url(std::string_view scheme, std::string_view rest,
                                        std::string_view environment_token) {
  RemoteSettings settings;
  std::string_view place = rest.substr(0, rest.find('?'));
  if (scheme == "http+unix") {
    if (place.starts_with("///")) place.remove_prefix(2);
    Result<std::string> path = core::unescape_url(place);
    if (!path) return path.error();
    if (!path->starts_with('/'))
      return invalid("http+unix: is followed by the path of a socket, as in http+unix:/run/bide.sock");
    settings.unix_socket = std::move(*path);
    settings.base = "http://localhost";
  } else if (Status set = set_base(settings, scheme, place); !set) {
    return set.error();
  }
  const Status applied = core::apply_url_options(
      core::query_of(rest), [&](auto name, auto value) { return apply_option(settings, name, value); });
  if (!applied) return applied.error();
  if (settings.token.empty() && !environment_token.empty()) {
    if (Status checked = check_token(environment_token, "BIDE_TOKEN"); !checked) return checked.error();
    settings.token = environment_token;
  }
  return settings;
}

}  // namespace bide::brokers::remote
