#include "server/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "core/did_you_mean.h"
#include "core/duration.h"
#include "core/quote.h"
#include "platform/disk.h"

#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace bide::server {
namespace {

Error invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// What the address policy is made of, once all of it is known.
struct PolicyWords {
  std::string mode = "off";
  std::vector<std::string> allow = {};
  std::vector<std::uint16_t> ports = {80, 443, 8080, 8443};
  const toml::node* mode_node = nullptr;  // Where a mistake is shown.
  const toml::node* allow_node = nullptr;
};

struct Draft {
  ServerOptions made;
  PolicyWords policy;
};

std::string_view type_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number with a point";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::none:
      return "nothing";
    default:
      return "a date or time";
  }
}

Error expected(std::string_view what, const toml::node& node) {
  return invalid("expected " + std::string(what) + ", not " + std::string(type_of(node)));
}

// --- values

Status take(std::string& into, const toml::node& node) {
  const auto* const text = node.as_string();
  if (text == nullptr) return expected("a string", node);
  if (text->get().find('\0') != std::string::npos) return invalid("a string without zero bytes is wanted");
  into = text->get();
  return {};
}

Status take(bool& into, const toml::node& node) {
  const auto* const flag = node.as_boolean();
  if (flag == nullptr) return expected("true or false", node);
  into = flag->get();
  return {};
}

Status take(Milliseconds& into, const toml::node& node) {
  const auto* const text = node.as_string();
  if (text == nullptr) return expected("a duration such as \"30s\" or \"500ms\"", node);
  const Result<Milliseconds> duration = core::parse_duration(text->get());
  if (!duration) return duration.error();
  into = *duration;
  return {};
}

Status take(std::vector<std::string>& into, const toml::node& node) {
  const auto* const array = node.as_array();
  if (array == nullptr) return expected("an array of strings", node);
  std::vector<std::string> texts;
  for (const toml::node& each : *array) {
    if (Status taken = take(texts.emplace_back(), each); !taken) return expected("an array of strings", each);
  }
  into = std::move(texts);
  return {};
}

template <std::integral T>
Status take_whole(T& into, const toml::node& node, std::int64_t lowest, std::int64_t highest) {
  const std::string what = "a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest);
  const auto* const number = node.as_integer();
  if (number == nullptr) return expected(what, node);
  if (number->get() < lowest || number->get() > highest) {
    return invalid("expected " + what + ", not " + std::to_string(number->get()));
  }
  into = static_cast<T>(number->get());
  return {};
}

template <std::integral T>
Status take_size(T& into, const toml::node& node, std::uint64_t lowest, std::uint64_t highest) {
  std::uint64_t size = 0;
  if (const auto* const text = node.as_string(); text != nullptr) {
    const Result<std::uint64_t> parsed = parse_size(text->get());
    if (!parsed) return parsed.error();
    size = *parsed;
  } else if (const auto* const number = node.as_integer(); number != nullptr && number->get() >= 0) {
    size = static_cast<std::uint64_t>(number->get());
  } else {
    return expected("bytes, as a number or as text such as \"16MiB\"", node);
  }
  if (size < lowest || size > highest) {
    return invalid("expected " + std::to_string(lowest) + " to " + std::to_string(highest) + " bytes, not " +
                   std::to_string(size));
  }
  into = static_cast<T>(size);
  return {};
}

template <class T, std::size_t N>
Status take_word(T& into, const toml::node& node, const std::array<std::pair<std::string_view, T>, N>& words) {
  const auto* const text = node.as_string();
  std::string allowed;
  std::vector<std::string_view> names;
  for (const auto& [name, value] : words) {
    if (text != nullptr && text->get() == name) {
      into = value;
      return {};
    }
    allowed += (allowed.empty() ? "\"" : ", \"") + std::string(name) + "\"";
    names.push_back(name);
  }
  if (text == nullptr) return expected("one of " + allowed, node);
  return invalid("expected one of " + allowed + ", not " + core::quoted(text->get()) +
                 core::did_you_mean(text->get(), names));
}

constexpr std::array<std::pair<std::string_view, LogFormat>, 3> kFormats = {
    {{"auto", LogFormat::kAuto}, {"text", LogFormat::kText}, {"json", LogFormat::kJson}}};
constexpr std::array<std::pair<std::string_view, LogLevel>, 4> kLevels = {{{"debug", LogLevel::kDebug},
                                                                           {"info", LogLevel::kInfo},
                                                                           {"warning", LogLevel::kWarning},
                                                                           {"error", LogLevel::kError}}};

Status take_ports(Draft& draft, const toml::node& node) {
  const auto* const array = node.as_array();
  if (array == nullptr) return expected("an array of port numbers", node);
  draft.policy.ports.clear();
  for (const toml::node& each : *array) {
    if (Status taken = take_whole(draft.policy.ports.emplace_back(), each, 1, 65'535); !taken) return taken;
  }
  return {};
}

Status take_secrets_by_host(Draft& draft, const toml::node& node) {
  const auto* const table = node.as_table();
  if (table == nullptr) return expected("a table of hosts and their secrets", node);
  for (const auto& [host, secrets] : *table) {
    if (Status taken = take(draft.made.callbacks.secrets_by_host[std::string(host.str())], secrets); !taken)
      return taken;
  }
  return {};
}

// --- keys

struct Key {
  std::string_view section;  // Empty: above all sections.
  std::string_view name;
  Status (*take)(Draft&, const toml::node&);
};

constexpr std::int64_t kMany = 1'000'000;
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kTiB = std::uint64_t{1} << 40;

using D = Draft;
using N = const toml::node;

const std::array kKeys = std::to_array<Key>({
    {"", "url", [](D& d, N& n) { return take(d.made.url, n); }},
    {"", "listen", [](D& d, N& n) { return take(d.made.listen, n); }},
    {"", "hosts", [](D& d, N& n) { return take(d.made.hosts, n); }},
    {"", "threads", [](D& d, N& n) { return take_whole(d.made.threads, n, 1, 256); }},
    {"", "backup_directory", [](D& d, N& n) { return take(d.made.backup_directory, n); }},
    {"", "grace", [](D& d, N& n) { return take(d.made.grace, n); }},

    {"tls", "certificate", [](D& d, N& n) { return take(d.made.tls.certificate, n); }},
    {"tls", "key", [](D& d, N& n) { return take(d.made.tls.key, n); }},

    {"auth", "token_file", [](D& d, N& n) { return take(d.made.token_file, n); }},
    {"auth", "local_without_token", [](D& d, N& n) { return take(d.made.local_without_token, n); }},

    {"limits", "head_bytes", [](D& d, N& n) { return take_size(d.made.limits.head_bytes, n, 1024, kMiB); }},
    {"limits", "fields", [](D& d, N& n) { return take_whole(d.made.limits.fields, n, 1, 10'000); }},
    {"limits", "target_bytes", [](D& d, N& n) { return take_size(d.made.limits.target_bytes, n, 64, kMiB); }},
    {"limits", "body_bytes", [](D& d, N& n) { return take_size(d.made.limits.body_bytes, n, 1024, kTiB); }},
    {"limits", "held_bytes", [](D& d, N& n) { return take_size(d.made.limits.held_bytes, n, kMiB, kTiB); }},
    {"limits", "stream_bytes", [](D& d, N& n) { return take_size(d.made.limits.stream_bytes, n, 1024, kTiB); }},
    {"limits", "connections", [](D& d, N& n) { return take_whole(d.made.limits.connections, n, 1, kMany); }},
    {"limits", "idle_timeout", [](D& d, N& n) { return take(d.made.limits.idle_timeout, n); }},
    {"limits", "head_timeout", [](D& d, N& n) { return take(d.made.limits.head_timeout, n); }},
    {"limits", "transfer_timeout", [](D& d, N& n) { return take(d.made.limits.transfer_timeout, n); }},
    {"limits", "slowest_rate", [](D& d, N& n) { return take_size(d.made.limits.slowest_rate, n, 1, kTiB); }},

    {"log", "format", [](D& d, N& n) { return take_word(d.made.log.format, n, kFormats); }},
    {"log", "level", [](D& d, N& n) { return take_word(d.made.log.level, n, kLevels); }},

    {"callbacks", "policy", [](D& d, N& n) { return d.policy.mode_node = &n, take(d.policy.mode, n); }},
    {"callbacks", "allow", [](D& d, N& n) { return d.policy.allow_node = &n, take(d.policy.allow, n); }},
    {"callbacks", "ports", take_ports},
    {"callbacks", "queues", [](D& d, N& n) { return take(d.made.callbacks.queues, n); }},
    {"callbacks", "secrets", [](D& d, N& n) { return take(d.made.callbacks.secrets, n); }},
    {"callbacks", "secrets_by_host", take_secrets_by_host},
    {"callbacks", "concurrency", [](D& d, N& n) { return take_whole(d.made.callbacks.concurrency, n, 1, 10'000); }},
    {"callbacks", "per_host", [](D& d, N& n) { return take_whole(d.made.callbacks.per_host, n, 1, 10'000); }},
    {"callbacks", "per_address", [](D& d, N& n) { return take_whole(d.made.callbacks.per_address, n, 1, 10'000); }},
    {"callbacks", "accepted", [](D& d, N& n) { return take_whole(d.made.callbacks.accepted, n, 1, kMany); }},
    {"callbacks", "hosts", [](D& d, N& n) { return take_whole(d.made.callbacks.hosts, n, 1, kMany); }},
    {"callbacks", "connect_within", [](D& d, N& n) { return take(d.made.callbacks.connect_within, n); }},
    {"callbacks", "answer_within", [](D& d, N& n) { return take(d.made.callbacks.answer_within, n); }},
    {"callbacks", "answer_limit", [](D& d, N& n) { return take_size(d.made.callbacks.answer_limit, n, 0, 16 * kMiB); }},
    {"callbacks", "longest_retry_after", [](D& d, N& n) { return take(d.made.callbacks.longest_retry_after, n); }},
    {"callbacks", "lease", [](D& d, N& n) { return take(d.made.callbacks.lease, n); }},
    {"callbacks", "failures_to_open",
     [](D& d, N& n) { return take_whole(d.made.callbacks.failures_to_open, n, 1, 1'000); }},
    {"callbacks", "shortest_pause", [](D& d, N& n) { return take(d.made.callbacks.shortest_pause, n); }},
    {"callbacks", "longest_pause", [](D& d, N& n) { return take(d.made.callbacks.longest_pause, n); }},
    {"callbacks", "log_entries", [](D& d, N& n) { return take_whole(d.made.callbacks.log_entries, n, 0, kMany); }},
    {"callbacks", "log_bytes", [](D& d, N& n) { return take_size(d.made.callbacks.log_bytes, n, 0, kTiB); }},
});

std::string full_name(std::string_view section, std::string_view key) {
  return section.empty() ? std::string(key) : std::string(section) + "." + std::string(key);
}

bool is_section(std::string_view name) {
  return std::any_of(kKeys.begin(), kKeys.end(),
                     [&](const Key& key) { return !key.section.empty() && key.section == name; });
}

// The names that are allowed within a section; in none, the sections are among them.
std::vector<std::string_view> names_in(std::string_view section) {
  std::vector<std::string_view> names;
  for (const Key& key : kKeys) {
    const std::string_view name = key.section == section ? key.name
                                  : section.empty()      ? key.section
                                                         : std::string_view();
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

class Reader {
 public:
  explicit Reader(std::string_view path) : path_(path) {}

  Result<ServerOptions> read(const toml::table& table) {
    if (Status taken = take_section("", table); !taken) return taken.error();
    if (Status checked = check(table); !checked) return checked.error();
    return std::move(draft_.made);
  }

  Error at(const toml::source_region& where, const std::string& message) const {
    return invalid(path_ + ":" + std::to_string(where.begin.line) + ":" + std::to_string(where.begin.column) + ": " +
                   message);
  }

 private:
  Status take_section(std::string_view section, const toml::table& table) {
    for (const auto& [key, node] : table) {
      if (section.empty() && is_section(key.str())) {
        if (!node.is_table())
          return at(node.source(), std::string(key.str()) + ": " + expected("a section", node).message);
        if (Status taken = take_section(key.str(), *node.as_table()); !taken) return taken;
      } else if (Status taken = take_key(section, key, node); !taken) {
        return taken;
      }
    }
    return {};
  }

  Status take_key(std::string_view section, const toml::key& key, const toml::node& node) {
    const auto known = std::find_if(kKeys.begin(), kKeys.end(),
                                    [&](const Key& each) { return each.section == section && each.name == key.str(); });
    if (known == kKeys.end()) {
      const std::string where = section.empty() ? "" : " in [" + std::string(section) + "]";
      return at(key.source(), "unknown key " + core::quoted(key.str()) + where + hint(section, key.str()));
    }
    if (const Status taken = known->take(draft_, node); !taken) {
      return at(node.source(), full_name(section, known->name) + ": " + taken.error().message);
    }
    return {};
  }

  // The nearest name, or the section in which a key of this name belongs, or all there are.
  static std::string hint(std::string_view section, std::string_view given) {
    const std::vector<std::string_view> names = names_in(section);
    if (const std::string near = core::did_you_mean(given, names); !near.empty()) return near;
    for (const Key& key : kKeys) {
      if (key.name == given)
        return key.section.empty() ? "; it belongs above all sections"
                                   : "; it belongs in [" + std::string(key.section) + "]";
    }
    std::string list;
    for (const std::string_view name : names) list.append(list.empty() ? "" : ", ").append(name);
    return "; known are " + list;
  }

  // What only shows when all is known.
  Status check(const toml::table& table) {
    const ServerOptions& server = draft_.made;
    if (server.tls.certificate.empty() != server.tls.key.empty()) {
      const bool key_missing = server.tls.key.empty();
      return at(table["tls"].node()->source(), key_missing ? "tls.key is missing: a certificate needs its key"
                                                           : "tls.certificate is missing: the key needs one");
    }
    if (server.listen.empty()) return at(table["listen"].node()->source(), "listen: expected at least one address");
    const PolicyWords& words = draft_.policy;
    Result<AddressPolicy> policy = AddressPolicy::make(words.mode, words.allow, words.ports);
    if (!policy) {
      // It is the mode that is wrong when it would be wrong with any list, or when there is no list.
      const bool with_any_list = AddressPolicy::make(words.mode, {"localhost"}, words.ports).has_value();
      const bool in_list = with_any_list && words.allow_node != nullptr;
      return at((in_list ? words.allow_node : words.mode_node)->source(),
                std::string(in_list ? "callbacks.allow: " : "callbacks.policy: ") + policy.error().message);
    }
    draft_.made.callbacks.policy = std::move(*policy);
    if (const toml::node* const node = table["callbacks"].node(); node != nullptr) {
      if (const Status valid = validate(draft_.made.callbacks); !valid) {
        return at(node->source(), "callbacks: " + valid.error().message);
      }
    }
    return {};
  }

  const std::string path_;
  Draft draft_;
};

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, int>, 5> kUnits = {
      {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}}};
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const auto& [name, shift] : kUnits) {
    if (error != std::errc() || unit != name) continue;
    if (number > std::numeric_limits<std::uint64_t>::max() >> shift) break;
    return number << shift;
  }
  return invalid("invalid size " + core::quoted(text) + "; allowed are whole numbers with B, KiB, MiB or GiB: 64KiB");
}

Result<ServerOptions> parse_configuration(std::string_view text, std::string_view path) {
  Reader reader(path);
  try {
    const toml::table table = toml::parse(text);
    return reader.read(table);
  } catch (const toml::parse_error& error) {
    return reader.at(error.source(), core::printable(error.description()));
  }
}

Result<ServerOptions> read_configuration(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  // A directory can be opened, but not read.
  if (!file || file.peek() == std::char_traits<char>::eof()) {
    const int why = file.is_open() && file.eof() && errno == 0 ? 0 : errno;
    if (!file.is_open() || why != 0) return platform::system_error(why == 0 ? EIO : why, "read", path);
    return parse_configuration("", path);
  }
  text << file.rdbuf();
  if (file.bad()) return platform::system_error(EIO, "read", path);
  return parse_configuration(std::move(text).str(), path);
}

}  // namespace bide::server
