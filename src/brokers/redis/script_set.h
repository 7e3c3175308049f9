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
  kDroppedBodies,
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
  kSweepBodies,
  kCount,
};

// Constant once loaded, and then safe to share between threads.
class ScriptSet {
 public:
  // Hands all of them to the server, which answers with their digests. `bodies_apart`: bodies are in a database, and scripts are
  // given references to them.
  static Result<ScriptSet> load(Connection& connection, bool bodies_apart);

  // Runs one. A server that has forgotten it (it was restarted, or SCRIPT FLUSH) gets its text again.
  //
  // The errors of Connection::run().
  Result<Reply> run(Connection& connection, Script script, const std::string& prefix,
                    const std::vector<std::string_view>& arguments) const;

 private:
  bool bodies_apart_ = false;
  std::array<std::string, static_cast<std::size_t>(Script::kCount)> digests_;
};

}  // namespace bide::brokers::redis
