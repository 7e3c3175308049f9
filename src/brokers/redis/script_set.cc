#include "brokers/redis/script_set.h"

#include <utility>

namespace bide::brokers::redis {

namespace {

// In the order of Script.
const std::array kTexts = {
    &kCancelScript, &kClientLeasesScript, &kDroppedBodiesScript, &kEndScript,        &kEnqueueScript,  &kExtendScript, &kFindScript,
    &kForgetScript, &kGrantScript,        &kKeepAliveScript,     &kListScript,       &kOverdueScript,  &kPauseScript,
    &kPurgeScript,  &kQueuesScript,       &kReplayScript,        &kRescheduleScript, &kSaveBodyScript, &kSweepBodiesScript,
};
static_assert(kTexts.size() == static_cast<std::size_t>(Script::kCount));

std::string text_of(std::size_t script, bool bodies_apart) {
  return std::string("local bodies_apart = ") + (bodies_apart ? "true\n" : "false\n") + std::string(kStoredJobScript) +
         std::string(*kTexts[script]);
}

}  // namespace

Result<ScriptSet> ScriptSet::load(Connection& connection, bool bodies_apart) {
  ScriptSet set;
  set.bodies_apart_ = bodies_apart;
  for (std::size_t i = 0; i < kTexts.size(); ++i) connection.append({"SCRIPT", "LOAD", text_of(i, bodies_apart)});
  for (std::string& digest : set.digests_) {
    Result<Reply> reply = connection.next_reply();
    if (!reply) return reply.error();
    if (reply->is_error()) return error_of(*reply);
    digest = std::move(reply->text);
  }
  return set;
}

Result<Reply> ScriptSet::run(Connection& connection, Script script, const std::string& prefix,
                             const std::vector<std::string_view>& arguments) const {
  const auto index = static_cast<std::size_t>(script);
  std::vector<std::string_view> command = {"EVALSHA", digests_[index], "1", prefix};
  command.insert(command.end(), arguments.begin(), arguments.end());
  connection.append(command);
  Result<Reply> reply = connection.next_reply();
  if (!reply) return reply;
  if (reply->error_code() == "NOSCRIPT") {
    const std::string text = text_of(index, bodies_apart_);
    command[0] = "EVAL";
    command[1] = text;
    return connection.run(command);
  }
  if (reply->is_error()) return error_of(*reply);
  return reply;
}

}  // namespace bide::brokers::redis
