#include "brokers/redis/redis_url.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/duration.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "core/url_escape.h"

namespace bide::brokers::redis {

namespace {

using namespace std::chrono_literals;
using core::quoted;

constexpr Milliseconds kTenYears = std::chrono::hours(24 * 3650);

Error invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

Result<std::uint64_t> whole_number(std::string_view text, std::uint64_t least, std::uint64_t most) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > most) {
    return invalid("invalid number " + quoted(text) + "; allowed are whole numbers from " + std::to_string(least) +
                   " to " + std::to_string(most));
  }
  return number;
}

// ---- Options: name=value behind the question mark.

template <auto field>
Status set_number(Settings& settings, const std::string& value, std::uint64_t most) {
  const Result<std::uint64_t> number = whole_number(value, 0, most);
  if (!number) return number.error();
  settings.*field = static_cast<std::remove_reference_t<decltype(settings.*field)>>(*number);
  return {};
}

template <auto field>
Status set_duration(Settings& settings, const std::string& value, Milliseconds least, Milliseconds most) {
  const Result<Milliseconds> duration = core::parse_duration(value);
  if (!duration) return duration.error();
  if (*duration < least || *duration > most) {
    return invalid("invalid duration " + quoted(value) + "; allowed: " + core::format_duration(least) + " to " +
                   core::format_duration(most));
  }
  settings.*field = *duration;
  return {};
}

Status set_prefix(Settings& settings, const std::string& value) {
  if (!core::is_name(value)) return invalid("invalid name " + quoted(value) + std::string(core::kNameRule));
  settings.prefix = value;
  return {};
}

Status set_fsync(Settings& settings, const std::string& value) {
  if (value != "yes" && value != "no") return invalid("invalid value " + quoted(value) + "; allowed is yes or no");
  settings.fsync = value == "yes";
  return {};
}

struct Option {
  std::string_view name;
  Status (*set)(Settings&, const std::string&);
};

constexpr std::array kOptions = {
    Option{"prefix", set_prefix},
    Option{"patience", [](Settings& s, const std::string& v) { return set_duration<&Settings::patience>(s, v, 100ms, 1h); }},
    Option{"client_timeout", [](Settings& s, const std::string& v) { return set_duration<&Settings::client_timeout>(s, v, 200ms, 1h); }},
    Option{"result_retention", [](Settings& s, const std::string& v) { return set_duration<&Settings::result_retention>(s, v, 0ms, kTenYears); }},
    Option{"done_limit", [](Settings& s, const std::string& v) { return set_number<&Settings::done_limit>(s, v, 1'000'000'000); }},
    Option{"dead_retention", [](Settings& s, const std::string& v) { return set_duration<&Settings::dead_retention>(s, v, 0ms, kTenYears); }},
    Option{"bodies", [](Settings& s, const std::string& v) { return s.bodies = v, Status(); }},
    Option{"body_retention", [](Settings& s, const std::string& v) { return set_duration<&Settings::body_retention>(s, v, 100ms, 24h); }},
    Option{"orphan_age", [](Settings& s, const std::string& v) { return set_duration<&Settings::orphan_age>(s, v, 1s, kTenYears); }},
    Option{"replicas", [](Settings& s, const std::string& v) { return set_number<&Settings::replicas>(s, v, 100); }},
    Option{"fsync", set_fsync},
    Option{"sentinel_password", [](Settings& s, const std::string& v) { return s.sentinel_password = v, Status(); }},
};

Status apply_option(Settings& settings, std::string_view name, std::string_view escaped) {
  const Result<std::string> value = core::unescape_url(escaped);
  if (!value) return value.error();
  const auto known = std::find_if(kOptions.begin(), kOptions.end(), [&](const Option& o) { return o.name == name; });
  if (known == kOptions.end()) {
    std::vector<std::string_view> names;
    for (const Option& option : kOptions) names.push_back(option.name);
    return core::unknown_url_option(name, names);
  }
  if (Status set = known->set(settings, *value); !set) {
    return Error{set.error().code, std::string(name) + ": " + set.error().message};
  }
  return {};
}

// ---- The place: //[[user]:password@]host[:port][,host[:port]...][/master][/database]

// The text itself is never repeated: a password with an unescaped @ or / would be in it.
Result<Host> parse_host(std::string_view text, int usual_port) {
  std::string_view name = text;
  std::string_view port;
  std::size_t colon = text.find(':');
  if (!text.empty() && text.front() == '[') {  // IPv6.
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return invalid("invalid host in the URL: [ without ]");
    name = text.substr(1, end - 1);
    colon = end + 1 < text.size() ? end + 1 : std::string_view::npos;
    if (colon != std::string_view::npos && text[colon] != ':') {
      return invalid("invalid host in the URL: only a port may follow ]");
    }
  } else if (colon != std::string_view::npos) {
    name = text.substr(0, colon);
  }
  if (colon != std::string_view::npos) {
    port = text.substr(colon + 1);
    if (port.empty()) return invalid("the URL has a colon without a port");
  }
  Result<std::string> plain = core::unescape_url(name);
  if (!plain) return plain.error();
  if (plain->empty()) return invalid("the URL names no host; an example is redis://:password@host:6379/0");
  Host host{std::move(*plain), usual_port};
  if (!port.empty()) {
    const Result<std::uint64_t> number = whole_number(port, 1, 65535);
    if (!number) return invalid("invalid port in the URL; allowed are 1 to 65535");
    host.port = static_cast<int>(*number);
  }
  return host;
}

Status parse_login(Login& login, std::string_view credentials) {
  const std::size_t colon = credentials.find(':');
  if (colon == std::string_view::npos) {
    return invalid("the URL has a user without a password; a password alone is written as redis://:password@host");
  }
  Result<std::string> user = core::unescape_url(credentials.substr(0, colon));
  if (!user) return user.error();
  Result<std::string> password = core::unescape_url(credentials.substr(colon + 1));
  if (!password) return password.error();
  login.user = std::move(*user);
  login.password = std::move(*password);
  return {};
}

Status parse_path(Settings& settings, std::string_view path, bool sentinel) {
  if (sentinel) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    Result<std::string> master = core::unescape_url(path.substr(0, slash));
    if (!master) return master.error();
    if (master->empty()) {
      return invalid("the URL names no master; an example is redis+sentinel://host1,host2/mymaster");
    }
    settings.master = std::move(*master);
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  if (path.empty()) return {};
  const Result<std::uint64_t> database = whole_number(path, 0, 1'000'000);
  if (!database) return invalid("invalid database in the URL; allowed are whole numbers from 0, as in redis://host/0");
  settings.login.database = static_cast<int>(*database);
  return {};
}

Status parse_place(Settings& settings, std::string_view place, bool sentinel) {
  if (!place.starts_with("//")) return invalid("the scheme is followed by //, as in redis://:password@host:6379/0");
  place.remove_prefix(2);
  const std::size_t slash = place.find('/');
  std::string_view authority = place.substr(0, slash);
  const std::string_view path = slash == std::string_view::npos ? std::string_view() : place.substr(slash + 1);
  if (Status parsed = parse_path(settings, path, sentinel); !parsed) return parsed;
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    if (Status parsed = parse_login(settings.login, authority.substr(0, at)); !parsed) return parsed;
    authority.remove_prefix(at + 1);
  }
  if (!sentinel && authority.find(',') != std::string_view::npos) {
    return invalid("the URL names several hosts; sentinels are named by redis+sentinel://host1,host2/mymaster");
  }
  settings.hosts.clear();
  while (true) {
    const std::size_t comma = std::min(authority.find(','), authority.size());
    Result<Host> host = parse_host(authority.substr(0, comma), sentinel ? 26379 : 6379);
    if (!host) return host.error();
    settings.hosts.push_back(std::move(*host));
    if (comma == authority.size()) return {};
    authority.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<Settings> parse_redis_url(std::string_view rest, bool sentinel) {
  Settings settings;
  if (Status place = parse_place(settings, rest.substr(0, rest.find('?')), sentinel); !place) return place.error();
  const Status applied = core::apply_url_options(
      core::query_of(rest), [&](auto name, auto value) { return apply_option(settings, name, value); });
  if (!applied) return applied.error();
  return settings;
}

std::string place_of(const Settings& settings) {
  std::string text = settings.master.empty() ? "" : "master " + settings.master + " of ";
  for (const Host& host : settings.hosts) text += (&host == &settings.hosts.front() ? "" : ", ") + host.to_string();
  return text + ", database " + std::to_string(settings.login.database) + ", prefix " + settings.prefix;
}

}  // namespace bide::brokers::redis
