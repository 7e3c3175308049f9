#include "brokers/sql/sql_settings.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/duration.h"
#include "core/number_text.h"
#include "core/quote.h"
#include "core/url_escape.h"

namespace bide::brokers::sql {
namespace {

using namespace std::chrono_literals;
using core::quoted;

constexpr std::size_t kSchemaBytes = 40;  // With the longest name of a table still within PostgreSQL's 63 bytes.
constexpr Milliseconds kTenYears = std::chrono::hours(24 * 3650);

Error invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

std::string example_of(Dialect dialect) {
  return dialect == Dialect::kPostgres ? "postgres://user@host:5432/database" : "mysql://user@host:3306/database";
}

Status set_duration(Milliseconds& field, const std::string& value, Milliseconds least, Milliseconds most) {
  const Result<Milliseconds> duration = core::parse_duration(value);
  if (!duration) return duration.error();
  if (*duration < least || *duration > most) {
    return invalid("invalid duration " + quoted(value) + "; allowed: " + core::format_duration(least) + " to " +
                   core::format_duration(most));
  }
  field = *duration;
  return {};
}

Status set_schema(SqlSettings& settings, const std::string& value) {
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  if (value.empty() || value.size() > kSchemaBytes || !std::all_of(value.begin(), value.end(), allowed) ||
      (value[0] >= '0' && value[0] <= '9')) {
    return invalid("invalid name " + quoted(value) + "; allowed: 1 to 40 of a-z 0-9 _ and no digit at the start");
  }
  settings.schema = value;
  return {};
}

Status set_flag(bool& field, const std::string& value) {
  if (value != "yes" && value != "no") return invalid("invalid value " + quoted(value) + "; allowed is yes or no");
  field = value == "yes";
  return {};
}

Status set_pooled(SqlSettings& settings, const std::string& value) {
  if (settings.dialect != Dialect::kPostgres) return invalid("only with postgres");
  if (value != "session" && value != "transaction") {
    return invalid("invalid mode " + quoted(value) + "; allowed is session or transaction");
  }
  settings.is_pooled = value == "transaction";
  return {};
}

Status set_tls(SqlSettings& settings, const std::string& value) {
  constexpr std::array<std::string_view, 5> kModes = {"disable", "prefer", "require", "verify-ca", "verify-full"};
  if (std::find(kModes.begin(), kModes.end(), value) == kModes.end()) {
    return invalid("invalid mode " + quoted(value) + "; allowed is disable, prefer, require, verify-ca or verify-full");
  }
  settings.tls = value;
  return {};
}

struct Option {
  std::string_view name;
  Status (*set)(SqlSettings&, const std::string&);
};

constexpr std::array kOptions = {
    Option{"schema", set_schema},
    Option{"prefix", set_schema},
    Option{"schema_changes", [](SqlSettings& s, const std::string& v) { return set_flag(s.creates_schema, v); }},
    Option{"socket", [](SqlSettings& s, const std::string& v) { return s.socket = v, Status(); }},
    Option{"pool_mode", set_pooled},
    Option{"longest_wait", [](SqlSettings& s, const std::string& v) { return set_duration(s.longest_wait, v, 10ms, 1h); }},
    Option{"patience", [](SqlSettings& s, const std::string& v) { return set_duration(s.patience, v, 1s, 24h); }},
    Option{"sslmode", set_tls},
    Option{"sslrootcert", [](SqlSettings& s, const std::string& v) { return s.tls_ca = v, Status(); }},
    Option{"sslcert", [](SqlSettings& s, const std::string& v) { return s.tls_certificate = v, Status(); }},
    Option{"sslkey", [](SqlSettings& s, const std::string& v) { return s.tls_key = v, Status(); }},
    Option{"client_timeout", [](SqlSettings& s, const std::string& v) { return set_duration(s.client_timeout, v, 200ms, 1h); }},
    Option{"result_retention", [](SqlSettings& s, const std::string& v) { return set_duration(s.result_retention, v, 0ms, kTenYears); }},
    Option{"dead_retention", [](SqlSettings& s, const std::string& v) { return set_duration(s.dead_retention, v, 0ms, kTenYears); }},
};

Status apply_option(SqlSettings& settings, std::string_view name, std::string_view escaped) {
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

// //[user[:password]@][host[:port]]/database. The text is never repeated: a password with an unescaped @ or / would be in it.
Status parse_place(SqlSettings& settings, std::string_view place) {
  const std::string example = example_of(settings.dialect);
  if (!place.starts_with("//")) return invalid("the scheme is followed by //, as in " + example);
  place.remove_prefix(2);
  const std::size_t slash = place.find('/');
  std::string_view authority = place.substr(0, slash);
  const auto take = [](std::string& into, std::string_view escaped) -> Status {
    Result<std::string> plain = core::unescape_url(escaped);
    if (!plain) return plain.error();
    into = std::move(*plain);
    return {};
  };
  if (slash == std::string_view::npos || slash + 1 == place.size()) return invalid("the URL names no database; an example is " + example);
  if (Status taken = take(settings.database, place.substr(slash + 1)); !taken) return taken;
  if (settings.database.find('/') != std::string::npos) return invalid("the database in the URL has a slash; an example is " + example);
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    const std::string_view credentials = authority.substr(0, at);
    authority.remove_prefix(at + 1);
    const std::size_t colon = credentials.find(':');
    if (Status taken = take(settings.user, credentials.substr(0, colon)); !taken) return taken;
    if (colon != std::string_view::npos) {
      if (Status taken = take(settings.password, credentials.substr(colon + 1)); !taken) return taken;
    }
  }
  std::string_view port;
  if (authority.starts_with('[')) {  // IPv6.
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return invalid("invalid host in the URL: [ without ]");
    if (end + 1 < authority.size() && authority[end + 1] == ':') port = authority.substr(end + 2);
    authority = authority.substr(1, end - 1);
  } else if (const std::size_t colon = authority.find(':'); colon != std::string_view::npos) {
    port = authority.substr(colon + 1);
    authority = authority.substr(0, colon);
  }
  if (!authority.empty()) {
    if (Status taken = take(settings.host, authority); !taken) return taken;
  }
  if (!port.empty()) {
    const auto number = core::parse_integer<int>(port);
    if (!number || *number < 1 || *number > 65535) return invalid("invalid port in the URL; allowed are 1 to 65535");
    settings.port = *number;
  }
  return {};
}

}  // namespace

Result<SqlSettings> parse_sql_url(Dialect dialect, std::string_view rest) {
  SqlSettings settings;
  settings.dialect = dialect;
  settings.port = dialect == Dialect::kPostgres ? 5432 : 3306;
  if (Status place = parse_place(settings, rest.substr(0, rest.find('?'))); !place) return place.error();
  const Status applied = core::apply_url_options(
      core::query_of(rest), [&](auto name, auto value) { return apply_option(settings, name, value); });
  if (!applied) return applied.error();
  // A lock is held over several transactions while the tables are made.
  if (settings.is_pooled) settings.creates_schema = false;
  return settings;
}

std::string place_of(const SqlSettings& settings) {
  const std::string server = settings.dialect == Dialect::kPostgres ? "PostgreSQL" : "MariaDB";
  const std::string where = settings.socket.empty() ? settings.host + ":" + std::to_string(settings.port) : settings.socket;
  return server + " at " + where + ", database " + settings.database;
}

}  // namespace bide::brokers::sql
