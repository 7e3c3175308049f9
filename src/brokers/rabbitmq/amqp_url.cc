#include "brokers/rabbitmq/amqp_url.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/duration.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "core/url_escape.h"

namespace bide::brokers::rabbitmq {

namespace {

using namespace std::chrono_literals;
using core::quoted;

constexpr std::size_t kPrefixBytes = 64;  // With the longest queue name still within AMQP's 255 bytes.

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

Result<bool> yes_or_no(std::string_view text) {
  if (text == "yes" || text == "true" || text == "on") return true;
  if (text == "no" || text == "false" || text == "off") return false;
  return invalid("invalid value " + quoted(text) + "; allowed is yes or no");
}

// ---- Options: name=value behind the question mark.

template <class T>
Status set_number(T& field, const std::string& value, std::uint64_t least, std::uint64_t most) {
  const Result<std::uint64_t> number = whole_number(value, least, most);
  if (!number) return number.error();
  field = static_cast<T>(*number);
  return {};
}

Status set_flag(bool& field, const std::string& value) {
  const Result<bool> flag = yes_or_no(value);
  if (!flag) return flag.error();
  field = *flag;
  return {};
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

Status set_prefix(Settings& settings, const std::string& value) {
  if (!core::is_name(value) || value.size() > kPrefixBytes) {
    return invalid("invalid name " + quoted(value) +
                   "; allowed: 1 to 64 of A-Z a-z 0-9 _ - . : and neither a dot nor a "
                   "colon at the start");
  }
  settings.prefix = value;
  return {};
}

Status set_queue_type(Settings& settings, const std::string& value) {
  if (value == "quorum")
    settings.queue_type = QueueType::kQuorum;
  else if (value == "classic")
    settings.queue_type = QueueType::kClassic;
  else
    return invalid("invalid queue type " + quoted(value) + "; allowed is quorum or classic");
  return {};
}

Status set_radix(Settings& settings, const std::string& value) {
  for (const int radix : {4, 16, 64, 256}) {
    if (value == std::to_string(radix)) return settings.delay.radix = radix, Status();
  }
  return invalid("invalid radix " + quoted(value) + "; allowed is 4, 16, 64 or 256");
}

// A plain number is significant digits, a duration is a unit.
Status set_precision(Settings& settings, const std::string& value) {
  if (value.find_first_not_of("0123456789") == std::string::npos && !value.empty()) {
    const Result<std::uint64_t> digits = whole_number(value, 0, 19);
    if (!digits) return digits.error();
    settings.delay.digits = static_cast<int>(*digits);
    return {};
  }
  const Result<Milliseconds> unit = core::parse_duration(value);
  if (!unit || *unit < Milliseconds(1) || *unit > std::chrono::hours(24)) {
    return invalid("invalid precision " + quoted(value) +
                   "; allowed: significant digits such as 3, or a unit from 1ms to 1d such as 16ms");
  }
  settings.delay.unit = *unit;
  return {};
}

Status set_compat(Settings& settings, const std::string& value) {
  if (value != "sneakers" && value != "async-worker" && value != "comq") {
    return invalid("invalid mode " + quoted(value) + "; allowed is sneakers, async-worker or comq");
  }
  settings.compat = value;
  return {};
}

struct Option {
  std::string_view name;
  Status (*set)(Settings&, const std::string&);
  bool tls_only = false;
};

constexpr Milliseconds kTenYears = std::chrono::hours(24 * 3650);

constexpr std::array kOptions = {
    Option{"prefix", set_prefix},
    Option{"queue_type", set_queue_type},
    Option{"radix", set_radix},
    Option{"precision", set_precision},
    Option{"worker_wait", [](Settings& s, const std::string& v) { return set_duration(s.delay.worker_wait, v, 0ms, 256ms); }},
    Option{"max_length", [](Settings& s, const std::string& v) { return set_number(s.max_length, v, 0, 1'000'000'000'000); }},
    Option{"delivery_limit", [](Settings& s, const std::string& v) { return set_number(s.delivery_limit, v, 4, 1'000'000'000); }},
    Option{"dead_retention", [](Settings& s, const std::string& v) { return set_duration(s.dead_retention, v, 0ms, kTenYears); }},
    Option{"declare", [](Settings& s, const std::string& v) { return set_flag(s.declare, v); }},
    Option{"cancel", [](Settings& s, const std::string& v) { return set_flag(s.notices, v); }},
    Option{"cancel_memory", [](Settings& s, const std::string& v) { return set_duration(s.notice_retention, v, 1h, 10 * kTenYears); }},
    Option{"heartbeat", [](Settings& s, const std::string& v) { return set_duration(s.heartbeat, v, 1s, 10min); }},
    Option{"patience", [](Settings& s, const std::string& v) { return set_duration(s.patience, v, 100ms, 1h); }},
    Option{"consumer_timeout", [](Settings& s, const std::string& v) { return set_duration(s.consumer_timeout, v, 1s, kTenYears); }},
    Option{"window", [](Settings& s, const std::string& v) { return set_number(s.window, v, 1, 65535); }},
    Option{"max_message_size", [](Settings& s, const std::string& v) { return set_number(s.max_message_size, v, 1, 536'870'912); }},
    Option{"compat", set_compat},
    Option{"ca", [](Settings& s, const std::string& v) { return s.tls.ca = v, Status(); }, true},
    Option{"cert", [](Settings& s, const std::string& v) { return s.tls.certificate = v, Status(); }, true},
    Option{"key", [](Settings& s, const std::string& v) { return s.tls.key = v, Status(); }, true},
    Option{"verify", [](Settings& s, const std::string& v) { return set_flag(s.tls.verify, v); }, true},
};

// Understood by the modes for other systems only, which check the values.
constexpr std::array<std::string_view, 15> kCompatOptions = {
    "namespace", "exchange",     "retry_exchange", "retry_error_exchange", "retry_requeue_exchange", "retry_routing_key",
    "durable",   "retry_max",    "retry_timeout",  "retry_max_times",      "steps",                  "error_format",
    "queues",    "kind",         "dead"};

Status apply_option(Settings& settings, std::string_view name, std::string_view escaped) {
  const Result<std::string> value = core::unescape_url(escaped);
  if (!value) return value.error();
  const auto known = std::find_if(kOptions.begin(), kOptions.end(), [&](const Option& o) { return o.name == name; });
  if (known == kOptions.end()) {
    if (std::find(kCompatOptions.begin(), kCompatOptions.end(), name) != kCompatOptions.end()) {
      settings.compat_options.emplace_back(name, *value);
      return {};
    }
    std::vector<std::string_view> names;
    for (const Option& option : kOptions) names.push_back(option.name);
    return core::unknown_url_option(name, names);
  }
  if (known->tls_only && !settings.tls.enabled) {
    return invalid(std::string(name) + ": only with amqps, not with amqp");
  }
  if (Status set = known->set(settings, *value); !set) {
    return Error{set.error().code, std::string(name) + ": " + set.error().message};
  }
  return {};
}

// ---- The place: //[user[:password]@]host[:port][,host[:port]...][/vhost]

// The text itself is never repeated: a password with an unescaped @ or / would be in it.
Result<Host> parse_host(std::string_view text, int usual_port) {
  std::string_view name = text;
  std::string_view port;
  if (!text.empty() && text.front() == '[') {  // IPv6.
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return invalid("invalid host in the URL: [ without ]");
    name = text.substr(1, end - 1);
    if (end + 1 < text.size()) {
      if (text[end + 1] != ':') return invalid("invalid host in the URL: only a port may follow ]");
      port = text.substr(end + 2);
      if (port.empty()) return invalid("the URL has a colon without a port");
    }
  } else if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    name = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (port.empty()) return invalid("the URL has a colon without a port");
  }
  Result<std::string> plain = core::unescape_url(name);
  if (!plain) return plain.error();
  if (plain->empty()) return invalid("the URL names no host; an example is amqp://user@host:5672/vhost");
  Host host{std::move(*plain), usual_port};
  if (!port.empty()) {
    const Result<std::uint64_t> number = whole_number(port, 1, 65535);
    if (!number) return invalid("invalid port in the URL; allowed are 1 to 65535");
    host.port = static_cast<int>(*number);
  }
  return host;
}

Status parse_place(Settings& settings, std::string_view place, int usual_port) {
  if (!place.starts_with("//")) return invalid("the scheme is followed by //, as in amqp://user@host:5672/vhost");
  place.remove_prefix(2);
  const std::size_t slash = place.find('/');
  std::string_view authority = place.substr(0, slash);
  if (slash != std::string_view::npos && slash + 1 < place.size()) {
    const std::string_view path = place.substr(slash + 1);
    if (path != "/" && path.find('/') != std::string_view::npos) {
      return invalid("the virtual host in the URL has a slash; write it as %2F");
    }
    Result<std::string> vhost = core::unescape_url(path);
    if (!vhost) return vhost.error();
    settings.vhost = std::move(*vhost);
  }
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    const std::string_view credentials = authority.substr(0, at);
    authority.remove_prefix(at + 1);
    const std::size_t colon = credentials.find(':');
    Result<std::string> user = core::unescape_url(credentials.substr(0, colon));
    if (!user) return user.error();
    settings.user = std::move(*user);
    settings.password.clear();
    if (colon != std::string_view::npos) {
      Result<std::string> password = core::unescape_url(credentials.substr(colon + 1));
      if (!password) return password.error();
      settings.password = std::move(*password);
    }
  }
  settings.hosts.clear();
  while (true) {
    const std::size_t comma = std::min(authority.find(','), authority.size());
    Result<Host> host = parse_host(authority.substr(0, comma), usual_port);
    if (!host) return host.error();
    settings.hosts.push_back(std::move(*host));
    if (comma == authority.size()) return {};
    authority.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<Settings> parse_amqp_url(std::string_view rest, bool tls) {
  Settings settings;
  settings.tls.enabled = tls;
  if (Status place = parse_place(settings, rest.substr(0, rest.find('?')), tls ? 5671 : 5672); !place)
    return place.error();
  const Status applied = core::apply_url_options(
      core::query_of(rest), [&](auto name, auto value) { return apply_option(settings, name, value); });
  if (!applied) return applied.error();
  if (settings.compat.empty() && !settings.compat_options.empty()) {
    return invalid(settings.compat_options.front().first +
                   ": only together with compat=sneakers, async-worker or comq");
  }
  return settings;
}

std::string place_of(const Settings& settings) {
  std::string text;
  for (const Host& host : settings.hosts) {
    text += (text.empty() ? "" : ", ") + host.name + ":" + std::to_string(host.port);
  }
  return text + ", virtual host " + settings.vhost;
}

}  // namespace bide::brokers::rabbitmq
