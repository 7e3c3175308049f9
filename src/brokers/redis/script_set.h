// ScriptSet: the scripts as a server knows them: by their digests.

#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "brokers/redis/connection.h"
#include "brokers/redis/scripts.h"

namespace bide::brokers::redis {

enum class Script : std::size_t {
  kCancel,
  kClientLeases,
  kEnd,
  kEnqueue,
  kExtend,
  kFind,
  kForget,
  kGrant,
  kKeepAlive,
  kList,
  kOverdue,
  kPause,
  kPurge,
  kQueues,
  kReplay,
  kReschedule,
  kSaveBody,
  kCount,
};

// Constant once loaded, and then safe to share between threads.
class ScriptSet {
 public:
  // Hands all of them to the server, which answers with their digests.
  static Result<ScriptSet> load(Connection& connection);

  // Runs one. A server that has forgotten it (it was restarted, or SCRIPT FLUSH) gets its text again.
  //
  // The errors of Connection::run().
  Result<Reply> run(Connection& connection, Script script, const std::string& prefix,
                    const std::vector<std::string_view>& arguments) const;

 private:
  std::array<std::string, static_cast<std::size_t>(Script::kCount)> digests_;
};

}  // namespace bide::brokers::redis
