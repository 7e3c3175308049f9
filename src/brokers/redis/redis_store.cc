#include "brokers/redis/redis_store.h"

#include <charconv>
#include <utility>

#include "brokers/redis/bodies_apart_session.h"
#include "brokers/redis/redis_session.h"
#include "platform/random.h"

namespace bide::brokers::redis {

namespace {

constexpr std::string_view kFormat = "1";
constexpr std::string_view kApartFormat = "2";  // Bodies are in a database.

std::int64_t number_in(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// 5.0: scripts are replicated by what they did, and may look at the clock.
Status check_version(std::string_view info) {
  const std::string_view version = info_value(info, "redis_version");
  if (number_in(version) >= 5) return {};
  return Error{ErrorCode::kUnsupported, "the server is Redis " + std::string(version) + "; 5.0 or later is needed"};
}

// Keys without a time to live are safe from the volatile policies; jobs have none.
Status check_eviction(std::string_view info) {
  const std::string_view policy = info_value(info, "maxmemory_policy");
  if (!policy.starts_with("allkeys") || number_in(info_value(info, "maxmemory")) == 0) return {};
  return Error{ErrorCode::kUnsupported,
               "the server may drop jobs when its memory is full: maxmemory-policy is " + std::string(policy) +
                   "; set it to noeviction (CONFIG SET maxmemory-policy noeviction), or give jobs a server of their own"};
}

Status check_role(std::string_view info) {
  if (info_value(info, "role") != "slave") return {};
  return Error{ErrorCode::kUnavailable, "the server is a replica; jobs need the master"};
}

}  // namespace

std::string_view info_value(std::string_view info, std::string_view name) {
  for (std::size_t at = 0; at < info.size();) {
    const std::size_t end = std::min(info.find('\n', at), info.size());
    std::string_view line = info.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') return line.substr(name.size() + 1);
    at = end + 1;
  }
  return {};
}

Result<Host> find_server(const Settings& settings) {
  if (settings.master.empty()) return settings.hosts.front();
  std::string problems;
  for (const Host& sentinel : settings.hosts) {
    auto connection = Connection::open(sentinel, {.password = settings.sentinel_password}, settings.patience);
    Result<Reply> reply = connection ? (*connection)->run({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", settings.master})
                                     : Result<Reply>(connection.error());
    if (reply && reply->items.size() == 2) {
      return Host{reply->items[0].text, static_cast<int>(number_in(reply->items[1].text))};
    }
    problems += "; " + sentinel.to_string() + ": " + (reply ? "knows no such master" : reply.error().message);
  }
  return Error{ErrorCode::kUnavailable, "no sentinel names the master " + settings.master + problems};
}

RedisStore::RedisStore(Settings settings, std::unique_ptr<database::BodyStore> bodies)
    : settings_(std::move(settings)), bodies_(std::move(bodies)) {}

Capabilities RedisStore::capabilities() const {
  Capabilities all;
  all.save_body = true;
  all.carries_past = true;
  return all;
}

Result<std::unique_ptr<Connection>> RedisStore::open_connection() const {
  const Result<Host> host = find_server(settings_);
  if (!host) return host.error();
  return Connection::open(*host, settings_.login, settings_.patience);
}

Status RedisStore::check_server(Connection& connection) {
  const Result<Reply> reply = connection.run({"INFO"});
  if (!reply) return reply.error();
  const std::string& info = reply->text;
  if (info_value(info, "loading") == "1") return Error{ErrorCode::kUnavailable, "the server is still loading its data"};
  for (const auto check : {check_version, check_role, check_eviction}) {
    if (Status status = check(info); !status) {
      return Error{status.error().code, "Redis at " + connection.host().to_string() + ": " + status.error().message};
    }
  }
  if (settings_.fsync) {
    const Result<Reply> known = connection.run({"COMMAND", "INFO", "WAITAOF"});
    if (!known) return known.error();
    if (known->at(0).is_nil()) {
      return Error{ErrorCode::kUnsupported, "fsync=yes needs WAITAOF, which Redis has since 7.2; this server is " +
                                                std::string(info_value(info, "redis_version")) +
                                                ": set appendfsync to always instead"};
    }
  }
  if (Status checked = check_format(connection); !checked) return checked;
  // A server that was just started, or took over, has not heard of anybody yet.
  const Result<Reply> time = connection.run({"TIME"});
  if (!time) return time.error();
  const std::int64_t now_ms = number_in(time->at(0).text) * 1000 + number_in(time->at(1).text) / 1000;
  const std::lock_guard lock(mutex_);
  const std::string run(info_value(info, "run_id"));
  if (run != server_run_) {
    const std::int64_t started_ms = now_ms - number_in(info_value(info, "uptime_in_seconds")) * 1000;
    server_since_ms_ = server_run_.empty() ? started_ms : now_ms;
    server_run_ = run;
  }
  return {};
}

Status RedisStore::check_format(Connection& connection) {
  const std::string key = "{" + settings_.prefix + "}:format";
  const std::string_view wanted = bodies_ ? kApartFormat : kFormat;
  connection.append({"SET", key, wanted, "NX"});
  connection.append({"GET", key});
  const Result<Reply> set = connection.next_reply();
  if (!set) return set.error();
  if (set->is_error() && set->error_code() != "OOM") return error_of(*set);
  const Result<Reply> format = connection.next_reply();
  if (!format) return format.error();
  if (format->is_error()) return error_of(*format);
  if (format->is_nil() || format->text == wanted) return {};
  const std::string jobs = "the jobs under the prefix " + settings_.prefix;
  if (format->text == kApartFormat) {
    return Error{ErrorCode::kInvalidArgument, jobs + " have their bodies in a database: name it, as in redis://host?bodies=mysql://user@host/database"};
  }
  if (format->text == kFormat) {
    return Error{ErrorCode::kInvalidArgument, jobs + " have their bodies in Redis: leave out bodies=, or choose another prefix= and bring them over with bide move"};
  }
  return Error{ErrorCode::kNewerVersion, jobs + " were written by a newer bide (format " + format->text + "): upgrade this one"};
}

Result<database::BodySet> RedisStore::find_body_set(Connection& connection) {
  const std::string key = "{" + settings_.prefix + "}:bodies";
  Result<Reply> found = connection.run({"GET", key});
  if (!found) return found.error();
  database::BodySet set = number_in(found->text);
  {
    const std::lock_guard lock(mutex_);
    if (set != 0 && set == known_set_) return set;
  }
  auto session = bodies_->connect();
  if (!session) return session.error();
  if (set == 0) {
    // Known to the database first: whoever reads it in Redis finds it there. One that loses the race is left, and empty.
    platform::SystemRandom random;
    const auto fresh = static_cast<database::BodySet>(random.next() >> 1 | 1);
    if (Status added = (*session)->add_set(fresh); !added) return added.error();
    if (const Result<Reply> set_it = connection.run({"SET", key, std::to_string(fresh), "NX"}); !set_it) return set_it.error();
    found = connection.run({"GET", key});
    if (!found) return found.error();
    set = number_in(found->text);
  }
  const Result<bool> there = (*session)->has_set(set);
  if (!there) return there.error();
  if (!*there) {
    return Error{ErrorCode::kInvalidArgument, "the bodies of the jobs under the prefix " + settings_.prefix + " are not in " +
                                                  bodies_->place() + ": name the database that they were written to"};
  }
  const std::lock_guard lock(mutex_);
  known_set_ = set;
  return set;
}

Result<std::unique_ptr<database::Session>> RedisStore::connect() {
  Result<std::unique_ptr<Connection>> connection = open_connection();
  if (!connection) return connection.error();
  if (Status checked = check_server(**connection); !checked) return checked.error();
  std::optional<ScriptSet> scripts;
  std::int64_t since_ms = 0;
  {
    const std::lock_guard lock(mutex_);
    scripts = scripts_;
    since_ms = server_since_ms_;
  }
  if (!scripts) {
    Result<ScriptSet> loaded = ScriptSet::load(**connection, bodies_ != nullptr);
    if (!loaded) return loaded.error();
    scripts = std::move(*loaded);
    const std::lock_guard lock(mutex_);
    scripts_ = scripts;
  }
  if (bodies_) {
    const Result<database::BodySet> set = find_body_set(**connection);
    if (!set) return set.error();
    return std::unique_ptr<database::Session>(std::make_unique<BodiesApartSession>(
        settings_, std::move(*scripts), std::move(*connection), since_ms, *bodies_, *set));
  }
  return std::unique_ptr<database::Session>(
      std::make_unique<RedisSession>(settings_, std::move(*scripts), std::move(*connection), since_ms));
}

}  // namespace bide::brokers::redis
