#include "bide/job.h"

namespace bide {

std::string_view to_string(JobState state) {
  switch (state) {
    case JobState::kScheduled:
      return "scheduled";
    case JobState::kReady:
      return "ready";
    case JobState::kRunning:
      return "running";
    case JobState::kDone:
      return "done";
    case JobState::kDead:
      return "dead";
  }
  return "unknown";
}

std::string_view to_string(Fault fault) {
  switch (fault) {
    case Fault::kFailed:
      return "failed";
    case Fault::kTimedOut:
      return "timed_out";
    case Fault::kLost:
      return "lost";
    case Fault::kCrashed:
      return "crashed";
  }
  return "unknown";
}

std::string_view to_string(DeadReason reason) {
  switch (reason) {
    case DeadReason::kExhausted:
      return "exhausted";
    case DeadReason::kRejected:
      return "rejected";
    case DeadReason::kExpired:
      return "expired";
    case DeadReason::kPoison:
      return "poison";
    case DeadReason::kDamaged:
      return "damaged";
  }
  return "unknown";
}

}  // namespace bide
