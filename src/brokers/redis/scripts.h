// The scripts of scripts/, compiled in. Each says in its first lines what it is given and what it answers. A script is sent
// with kStoredJobScript in front of it.

#pragma once

#include <string_view>

namespace bide::brokers::redis {

extern const std::string_view kStoredJobScript;
extern const std::string_view kCancelScript;
extern const std::string_view kClientLeasesScript;
extern const std::string_view kDroppedBodiesScript;
extern const std::string_view kEndScript;
extern const std::string_view kEnqueueScript;
extern const std::string_view kExtendScript;
extern const std::string_view kFindScript;
extern const std::string_view kForgetScript;
extern const std::string_view kGrantScript;
extern const std::string_view kKeepAliveScript;
extern const std::string_view kListScript;
extern const std::string_view kOverdueScript;
extern const std::string_view kPauseScript;
extern const std::string_view kPurgeScript;
extern const std::string_view kQueuesScript;
extern const std::string_view kReplayScript;
extern const std::string_view kRescheduleScript;
extern const std::string_view kSaveBodyScript;
extern const std::string_view kSweepBodiesScript;

}  // namespace bide::brokers::redis
