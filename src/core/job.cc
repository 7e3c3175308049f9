#include "bide/job.h"

#include "bide/backup.h"
#include "bide/schedule.h"

namespace bide {

std::string_view to_string(AfterDeath what) {
  switch (what) {
    case AfterDeath::kHold:
      return "hold";
    case AfterDeath::kCancel:
      return "cancel";
    case AfterDeath::kRun:
      return "run";
  }
  return "unknown";
}

std::string_view to_string(OnConflict what) {
  switch (what) {
    case OnConflict::kRefuse:
      return "refuse";
    case OnConflict::kExisting:
      return "existing";
    case OnConflict::kReplace:
      return "replace";
  }
  return "unknown";
}

std::string_view to_string(Missed what) {
  switch (what) {
    case Missed::kSkip:
      return "skip";
    case Missed::kOnce:
      return "once";
    case Missed::kAll:
      return "all";
  }
  return "unknown";
}

std::string_view to_string(Overlap what) {
  switch (what) {
    case Overlap::kAllow:
      return "allow";
    case Overlap::kSkip:
      return "skip";
    case Overlap::kQueue:
      return "queue";
  }
  return "unknown";
}

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
    case JobState::kWaiting:
      return "waiting";
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

std::string_view to_string(BackupState state) {
  switch (state) {
    case BackupState::kNone:
      return "none";
    case BackupState::kCopying:
      return "copying";
    case BackupState::kChecking:
      return "checking";
    case BackupState::kDone:
      return "done";
    case BackupState::kFailed:
      return "failed";
  }
  return "unknown";
}

}  // namespace bide
