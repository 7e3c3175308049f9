#include "cli/waiting.h"

#include <chrono>
#include <cstdio>
#include <string>

#include "cli/failure.h"
#include "cli/job_text.h"
#include "core/duration.h"

namespace bide::cli {

Milliseconds timeout_of(const Invocation& call) {
  return call.duration(kTimeoutFlag.name).value_or(std::chrono::minutes(1));
}

int wait_and_print(const Client& client, JobId id, Milliseconds timeout, bool json, const Warnings* warnings) {
  const auto info = client.wait_for(id, timeout);
  if (!info && info.error().code == ErrorCode::kUnavailable) {
    throw Failure{kTryAgain, "job " + id.to_string() + " was neither done nor dead after " +
                                 core::format_duration(timeout) + "; `bide job explain " + id.to_string() + "` says why"};
  }
  if (!info) {
    const std::string enqueued = warnings == nullptr ? "" : "job " + id.to_string() + " is enqueued, but ";
    throw Failure{exit_code_of(info.error().code),
                  enqueued + "waiting for " + (warnings == nullptr ? "job " + id.to_string() : "it") +
                      " failed: " + info.error().message,
                  std::string(to_string(info.error().code))};
  }
  if (json) {
    JsonObject object = to_json(*info);
    if (warnings != nullptr) object.add("warnings", warnings->to_json());
    std::puts(object.text().c_str());
  } else if (info->state == JobState::kDead) {
    const std::string error = info->history.empty() ? "" : ": " + info->history.back().text;
    tell("job " + id.to_string() + " is dead, " +
         std::string(to_string(info->dead_reason.value_or(DeadReason::kRejected))) + error);
  } else {
    print_result(info->result);
  }
  return info->state == JobState::kDead ? kJobFailed : kOk;
}

}  // namespace bide::cli
