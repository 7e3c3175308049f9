// RedisStore: jobs in a Redis server. Every step is one script, so that no crash falls between two halves of it; what is
// stored, and under which keys, is described in scripts/stored_job.lua.

#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "brokers/database/body_store.h"
#include "brokers/database/job_store.h"
#include "brokers/redis/redis_url.h"
#include "brokers/redis/script_set.h"

namespace bide::brokers::redis {

class RedisStore : public database::JobStore {
 public:
  // `bodies`: where they are, if not in Redis.
  explicit RedisStore(Settings settings, std::unique_ptr<database::BodyStore> bodies = nullptr);

  // kUnavailable: not reachable, still loading, a replica. kPermissionDenied. kNewerVersion: written by a newer bide.
  // kUnsupported: the server is too old, has no WAITAOF where it is asked for, or may evict jobs. kInvalidArgument: bodies are
  // not where the URL says.
  Result<std::unique_ptr<database::Session>> connect() override;
  Capabilities capabilities() const override;

 private:
  Result<std::unique_ptr<Connection>> open_connection() const;
  Status check_server(Connection& connection);
  Status check_format(Connection& connection);
  // Whose bodies ours are; the first one to ask makes it so.
  Result<database::BodySet> find_body_set(Connection& connection);

  const Settings settings_;
  const std::unique_ptr<database::BodyStore> bodies_;

  std::mutex mutex_;  // Guards everything below.
  std::optional<ScriptSet> scripts_;
  database::BodySet known_set_ = 0;  // Was found in the database, too.
  std::string server_run_;         // The server's own name for its run; another one: it was restarted or replaced.
  std::int64_t server_since_ms_ = 0;  // Since when that one can have heard of anybody, by its clock.
};

// The master that the sentinels name; the server itself where there are none.
Result<Host> find_server(const Settings& settings);

// The value of a line "name:value" of INFO; empty when there is none.
std::string_view info_value(std::string_view info, std::string_view name);

}  // namespace bide::brokers::redis
