// Settings: what a redis:// or redis+sentinel:// URL says.
//
//   redis://:password@host:6379/0?prefix=shop
//   redis+sentinel://:password@host1:26379,host2,host3/mymaster/0?replicas=1
//
// The second names the sentinels and the master that they watch; the server is asked for at each connection, so that a
// failover is followed. Parts may be escaped with %XX. The password never appears in an error, and nothing here prints it.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job.h"
#include "bide/result.h"
#include "brokers/redis/connection.h"

namespace bide::brokers::redis {

struct Settings {
  // Where.
  std::vector<Host> hosts = {Host{}};  // One server, or the sentinels.
  std::string master = {};             // What the sentinels call it. Empty: no sentinels.
  Login login = {};
  std::string sentinel_password = {};
  Milliseconds patience{10'000};  // How long a call waits for a server that is away.
  Milliseconds client_timeout{5'000};  // A process not heard of for so long has died: its jobs run again.

  // What is kept there.
  std::string prefix = "bide";                 // Of every key: {prefix}:...
  Milliseconds result_retention{3'600'000};    // Done jobs, their ids and results are kept for this long ...
  std::uint64_t done_limit = 100'000;          // ... but at most this many of a queue.
  Milliseconds dead_retention{0};              // 0: dead jobs are kept until they are deleted.

  // Bodies in a database.
  std::string bodies = {};                  // Its URL. Empty: bodies are in Redis. May hold a password.
  Milliseconds body_retention{60'000};      // A body that no job needs any more is kept for so long: Redis may lose its newest data.
  Milliseconds orphan_age{3'600'000};       // A body that has no job after so long was left by a process that died.

  // When a change counts as durable.
  std::uint32_t replicas = 0;  // So many replicas have it, too (WAIT).
  bool fsync = false;          // It has been synced to disk, whatever appendfsync says (WAITAOF, Redis 7.2).
};

// `rest` is everything behind the colon of the scheme.
//
// kInvalidArgument: what is wrong, where, and what is allowed; an unknown option with the nearest known one.
Result<Settings> parse_redis_url(std::string_view rest, bool sentinel);

// "host:6379, database 0, prefix bide": for messages, without credentials.
std::string place_of(const Settings& settings);

}  // namespace bide::brokers::redis
