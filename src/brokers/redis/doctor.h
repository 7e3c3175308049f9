// Doctor: looks at the settings of a Redis server and says what endangers jobs there. Changes nothing.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/result.h"
#include "brokers/database/finding.h"
#include "brokers/redis/redis_url.h"

namespace bide::brokers::redis {

using database::Finding;

// What the server says of itself.
struct ServerFacts {
  std::string info = {};                        // The text of INFO.
  std::optional<std::string> appendfsync = {};  // Nothing: CONFIG is not allowed.
  std::optional<std::string> no_appendfsync_on_rewrite = {};
  std::int64_t clock_ahead_ms = 0;              // Of ours.
};

std::vector<Finding> judge(const ServerFacts& facts, const Settings& settings);

// An error: the server cannot be asked.
Result<std::vector<Finding>> examine_server(const Settings& settings);

}  // namespace bide::brokers::redis
