#include "brokers/open_broker.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "brokers/database/database_broker.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/compat/foreign_dialect.h"
#include "brokers/rabbitmq/rabbitmq_broker.h"
#include "brokers/redis/doctor.h"
#include "brokers/redis/redis_store.h"
#include "brokers/redis/redis_url.h"
#include "brokers/remote/remote_broker.h"
#include "brokers/remote/remote_url.h"
#include "brokers/shared/shared_store.h"
#include "brokers/sql/doctor.h"
#include "brokers/sql/sql_body_store.h"
#include "brokers/sql/sql_settings.h"
#include "brokers/sql/sql_store.h"
#include "core/did_you_mean.h"
#include "core/duration.h"
#include "core/quote.h"
#include "core/url_escape.h"
#include "engine/options.h"
#include "outbox/outbox_broker.h"

namespace bide::brokers {

namespace {

using engine::Durability;
using engine::EngineOptions;

Error invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// What may follow the directory of an embedded store as name=value.

Status set_durability(EngineOptions& options, std::string_view value) {
  if (value == "fsync") options.durability = Durability::kFsync;
  else if (value == "os") options.durability = Durability::kOs;
  else if (value == "none") options.durability = Durability::kNone;
  else return invalid("invalid durability " + core::quoted(value) + "; allowed is fsync, os or none");
  return {};
}

template <Milliseconds EngineOptions::*field>
Status set_duration(EngineOptions& options, std::string_view value) {
  Result<Milliseconds> duration = core::parse_duration(value);
  if (!duration) return duration.error();
  options.*field = *duration;
  return {};
}

template <std::uint64_t EngineOptions::*field>
Status set_number(EngineOptions& options, std::string_view value) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) {
    return invalid("invalid number " + core::quoted(value) + "; allowed are whole numbers from 0");
  }
  options.*field = number;
  return {};
}

struct Setting {
  std::string_view name;
  Status (*set)(EngineOptions&, std::string_view);
};

constexpr std::array kSettings = {
    Setting{"durability", set_durability},
    Setting{"result_retention", set_duration<&EngineOptions::result_retention>},
    Setting{"done_limit", set_number<&EngineOptions::done_limit>},
    Setting{"done_bytes", set_number<&EngineOptions::done_bytes>},
    Setting{"id_retention", set_duration<&EngineOptions::id_retention>},
    Setting{"id_bytes", set_number<&EngineOptions::id_bytes>},
    Setting{"dead_retention", set_duration<&EngineOptions::dead_retention>},
    Setting{"max_jobs", set_number<&EngineOptions::max_jobs>},
};

Status apply_setting(EngineOptions& options, std::string_view text) {
  const std::string_view name = text.substr(0, text.find('='));
  const auto known = std::find_if(kSettings.begin(), kSettings.end(), [&](const Setting& s) { return s.name == name; });
  if (known == kSettings.end()) {
    std::vector<std::string_view> names;
    std::string list;
    for (const Setting& setting : kSettings) {
      names.push_back(setting.name);
      list += (list.empty() ? "" : ", ") + std::string(setting.name);
    }
    return invalid("unknown setting " + core::quoted(name) + " in the URL; known are " + list +
                   core::did_you_mean(name, names));
  }
  Result<std::string> value = core::unescape_url(name.size() < text.size() ? text.substr(name.size() + 1) : std::string_view());
  if (!value) return value.error();
  if (Status set = known->set(options, *value); !set) {
    return Error{set.error().code, std::string(name) + ": " + set.error().message};
  }
  return {};
}

// rest = directory [ "?" setting { "&" setting } ]
Result<EngineOptions> parse_engine(std::string_view rest) {
  if (rest.starts_with("//") && !rest.starts_with("///")) {
    return invalid("a bide: URL names a directory of this machine, such as bide:./data or bide:/var/lib/bide; after bide: " +
                   std::string("there are no two slashes with a host"));
  }
  const std::size_t question = rest.find('?');
  Result<std::string> directory = core::unescape_url(rest.substr(0, question));
  if (!directory) return directory.error();
  if (directory->empty()) return invalid("the URL names no directory; an example is bide:./data");

  EngineOptions options;
  options.directory = std::move(*directory);
  std::set<std::string_view> given;
  std::string_view settings = question == std::string_view::npos ? std::string_view() : rest.substr(question + 1);
  while (!settings.empty()) {
    const std::size_t end = std::min(settings.find('&'), settings.size());
    const std::string_view setting = settings.substr(0, end);
    if (Status applied = apply_setting(options, setting); !applied) return applied.error();
    const std::string_view name = setting.substr(0, setting.find('='));
    if (!given.insert(name).second) return invalid("the setting " + core::quoted(name) + " is in the URL twice");
    settings.remove_prefix(std::min(end + 1, settings.size()));
  }
  return options;
}

Result<OpenedBroker> open_engine(std::string_view rest, const OpenOptions& wanted) {
  Result<EngineOptions> options = parse_engine(rest);
  if (!options) return options.error();
  options->on_commit = wanted.on_commit;
  options->on_damage = wanted.on_damage;
  auto opened = shared::SharedStore::open(std::move(*options));
  if (!opened) return opened.error();
  const std::shared_ptr<shared::SharedStore> store = std::move(*opened);
  return OpenedBroker{store, store};
}

template <bool tls>
Result<OpenedBroker> open_rabbitmq(std::string_view rest, const OpenOptions&) {
  const Result<rabbitmq::Settings> settings = rabbitmq::parse_amqp_url(rest, tls);
  if (!settings) return settings.error();
  std::unique_ptr<rabbitmq::Dialect> dialect;
  if (!settings->compat.empty()) {
    auto other_system = rabbitmq::compat::ForeignDialect::open(*settings);
    if (!other_system) return other_system.error();
    dialect = std::move(*other_system);
  }
  auto opened = rabbitmq::RabbitmqBroker::open(*settings, std::move(dialect));
  if (!opened) return opened.error();
  const std::shared_ptr<rabbitmq::RabbitmqBroker> broker = std::move(*opened);
  return OpenedBroker{broker, broker};
}

// Where the bodies of jobs on Redis are.
Result<sql::SqlSettings> parse_bodies(std::string_view url) {
  const std::string_view scheme = url.substr(0, url.find(':'));
  const bool is_postgres = scheme == "postgres" || scheme == "postgresql";
  if (!is_postgres && scheme != "mysql" && scheme != "mariadb") {
    return invalid("the URL of a database is needed, such as mysql://user:password@host:3306/database or postgres://...");
  }
  return sql::parse_sql_url(is_postgres ? sql::Dialect::kPostgres : sql::Dialect::kMysql,
                            url.substr(std::min(scheme.size() + 1, url.size())));
}

template <bool sentinel>
Result<OpenedBroker> open_redis(std::string_view rest, const OpenOptions&) {
  Result<redis::Settings> settings = redis::parse_redis_url(rest, sentinel);
  if (!settings) return settings.error();
  const database::KeepingOptions keeping{
      .client_timeout = settings->client_timeout,
      .retention = {.done = settings->result_retention, .dead = settings->dead_retention}};
  std::unique_ptr<database::BodyStore> bodies;
  if (!settings->bodies.empty()) {
    const Result<sql::SqlSettings> place = parse_bodies(settings->bodies);
    if (!place) return Error{place.error().code, "bodies: " + place.error().message};
    bodies = std::make_unique<sql::SqlBodyStore>(*place);
  }
  auto opened = database::DatabaseBroker::open(std::make_unique<redis::RedisStore>(std::move(*settings), std::move(bodies)), keeping);
  if (!opened) return opened.error();
  return OpenedBroker{*opened, *opened};
}

Result<std::vector<ServerFinding>> server_findings(const Result<std::vector<database::Finding>>& findings) {
  if (!findings) return findings.error();
  std::vector<ServerFinding> all;
  for (const database::Finding& finding : *findings) all.push_back({finding.ok, finding.what, finding.advice});
  return all;
}

template <bool sentinel>
Result<std::vector<ServerFinding>> examine_redis(std::string_view rest) {
  const Result<redis::Settings> settings = redis::parse_redis_url(rest, sentinel);
  if (!settings) return settings.error();
  return server_findings(redis::examine_server(*settings));
}

template <sql::Dialect dialect>
Result<std::vector<ServerFinding>> examine_sql(std::string_view rest) {
  const Result<sql::SqlSettings> settings = sql::parse_sql_url(dialect, rest);
  if (!settings) return settings.error();
  return server_findings(sql::examine_server(*settings));
}

Result<OpenedBroker> open_redis_tls(std::string_view, const OpenOptions&) {
  return Error{ErrorCode::kUnsupported,
               "the Redis client library has no TLS; let stunnel (or another TLS proxy) on this machine connect to the "
               "server, and name its port: redis://127.0.0.1:6379"};
}

Result<OpenedBroker> open_remote(std::string_view scheme, std::string_view rest) {
  const char* const token = std::getenv("BIDE_TOKEN");
  Result<remote::RemoteSettings> settings = remote::parse_remote_url(scheme, rest, token != nullptr ? token : "");
  if (!settings) return settings.error();
  auto opened = remote::RemoteBroker::open(std::move(*settings));
  if (!opened) return opened.error();
  return OpenedBroker{*opened, *opened};
}
Result<OpenedBroker> open_http(std::string_view rest, const OpenOptions&) { return open_remote("http", rest); }
Result<OpenedBroker> open_https(std::string_view rest, const OpenOptions&) { return open_remote("https", rest); }
Result<OpenedBroker> open_http_unix(std::string_view rest, const OpenOptions&) { return open_remote("http+unix", rest); }

template <sql::Dialect dialect>
Result<OpenedBroker> open_sql(std::string_view rest, const OpenOptions&) {
  Result<sql::SqlSettings> settings = sql::parse_sql_url(dialect, rest);
  if (!settings) return settings.error();
  const database::KeepingOptions keeping{
      .client_timeout = settings->client_timeout,
      .retention = {.done = settings->result_retention, .dead = settings->dead_retention}};
  auto opened = database::DatabaseBroker::open(std::make_unique<sql::SqlStore>(std::move(*settings)), keeping);
  if (!opened) return opened.error();
  return OpenedBroker{*opened, *opened};
}

struct Scheme {
  std::string_view name;
  Result<OpenedBroker> (*open)(std::string_view rest, const OpenOptions& wanted);
  Result<std::vector<ServerFinding>> (*examine)(std::string_view rest) = nullptr;
};

constexpr std::array kSchemes = {
    Scheme{"bide", open_engine},
    Scheme{"amqp", open_rabbitmq<false>},
    Scheme{"amqps", open_rabbitmq<true>},
    Scheme{"http", open_http},
    Scheme{"https", open_https},
    Scheme{"http+unix", open_http_unix},
    Scheme{"redis", open_redis<false>, examine_redis<false>},
    Scheme{"redis+sentinel", open_redis<true>, examine_redis<true>},
    Scheme{"rediss", open_redis_tls},
    Scheme{"postgres", open_sql<sql::Dialect::kPostgres>, examine_sql<sql::Dialect::kPostgres>},
    Scheme{"postgresql", open_sql<sql::Dialect::kPostgres>, examine_sql<sql::Dialect::kPostgres>},
    Scheme{"mysql", open_sql<sql::Dialect::kMysql>, examine_sql<sql::Dialect::kMysql>},
    Scheme{"mariadb", open_sql<sql::Dialect::kMysql>, examine_sql<sql::Dialect::kMysql>},
};

}  // namespace

Result<EngineOptions> parse_engine_url(std::string_view url) {
  constexpr std::string_view kScheme = "bide:";
  if (!url.starts_with(kScheme)) return invalid("not the URL of a data directory; an example is bide:./data");
  return parse_engine(url.substr(kScheme.size()));
}

Result<OutboxUrl> parse_outbox_url(std::string_view url) {
  OutboxUrl parsed;
  const std::size_t question = std::min(url.find('?'), url.size());
  parsed.target = url.substr(0, question);
  std::string_view settings = url.substr(std::min(question + 1, url.size()));
  for (char before = '?'; !settings.empty();) {
    const std::string_view setting = settings.substr(0, settings.find('&'));
    settings.remove_prefix(std::min(setting.size() + 1, settings.size()));
    const std::string_view name = setting.substr(0, setting.find('='));
    const std::string_view text = setting.substr(std::min(name.size() + 1, setting.size()));
    if (name == "outbox") {
      const Result<std::string> directory = core::unescape_url(text);
      if (!directory) return directory.error();
      if (directory->empty()) return invalid("outbox: give a directory, such as outbox=./outbox");
      parsed.directory = *directory;
    } else if (name == "outbox_jobs") {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed.max_jobs);
      if (error != std::errc() || end != text.data() + text.size() || parsed.max_jobs == 0) {
        return invalid("outbox_jobs: invalid number " + core::quoted(text) + "; allowed are whole numbers from 1");
      }
    } else if (name == "outbox_use") {
      if (text != "always" && text != "spill") {
        return invalid("outbox_use: invalid value " + core::quoted(text) + "; allowed is always or spill");
      }
      parsed.only_spilled = text == "spill";
    } else {
      parsed.target += std::exchange(before, '&');
      parsed.target += setting;
    }
  }
  if (!parsed.directory.empty() && url.starts_with("bide:")) {
    return invalid("outbox: a store of this machine needs none");
  }
  return parsed;
}

namespace {

Result<OpenedBroker> open_with_outbox(const OutboxUrl& url, const OpenOptions& options) {
  auto opened = outbox::OutboxBroker::open(
      {.directory = url.directory, .max_jobs = url.max_jobs, .target = core::without_secrets(url.target)},
      [target = url.target, options]() -> Result<outbox::Target> {
        auto broker = open_broker(target, options);
        if (!broker) return broker.error();
        return outbox::Target{std::move(broker->broker), std::move(broker->inspector)};
      });
  if (!opened) return opened.error();
  const std::shared_ptr<outbox::OutboxBroker> broker = std::move(*opened);
  if (url.only_spilled) return OpenedBroker{std::make_shared<outbox::BesideOutbox>(broker), broker, broker};
  return OpenedBroker{broker, broker, broker};
}

}  // namespace

Result<OpenedBroker> open_broker(std::string_view url, const OpenOptions& options) {
  const Result<OutboxUrl> with_outbox = parse_outbox_url(url);
  if (!with_outbox) return with_outbox.error();
  if (!with_outbox->directory.empty()) return open_with_outbox(*with_outbox, options);
  const std::size_t colon = url.find(':');
  // Only the scheme is ever repeated: behind it may be a password.
  const std::string_view name = colon == std::string_view::npos ? std::string_view() : url.substr(0, colon);
  for (const Scheme& scheme : kSchemes) {
    if (scheme.name != name) continue;
    Result<OpenedBroker> opened = scheme.open(url.substr(colon + 1), options);
    if (!opened && opened.error().code == ErrorCode::kUnsupported) {
      return Error{ErrorCode::kUnsupported, std::string(name) + ": " + opened.error().message};
    }
    return opened;
  }
  std::vector<std::string_view> names;
  std::string list;
  for (const Scheme& scheme : kSchemes) {
    if (scheme.open == open_redis_tls) continue;
    names.push_back(scheme.name);
    list += (list.empty() ? "" : ", ") + std::string(scheme.name);
  }
  if (colon == std::string_view::npos) {
    return invalid("a broker's URL begins with a scheme and a colon, such as bide:./data; known schemes are " + list);
  }
  return invalid("unknown scheme " + core::quoted(name) + " in the broker's URL; known are " + list +
                 core::did_you_mean(name, names));
}

Result<std::vector<ServerFinding>> examine_server(std::string_view url) {
  const std::size_t colon = std::min(url.find(':'), url.size());
  for (const Scheme& scheme : kSchemes) {
    if (scheme.name == url.substr(0, colon) && scheme.examine != nullptr) return scheme.examine(url.substr(colon + 1));
  }
  return std::vector<ServerFinding>();
}

}  // namespace bide::brokers
