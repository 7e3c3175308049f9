// The last value of each enumeration whose values are counted from 0: for reading them from bytes and for listing their
// names.

#pragma once

#include "bide/backup.h"
#include "bide/broker.h"
#include "bide/job.h"
#include "bide/result.h"
#include "bide/retry_policy.h"
#include "bide/schedule.h"

namespace bide {

constexpr std::string_view to_string(Pressure::Level level) {
  constexpr std::string_view kNames[] = {"ok", "high", "blocked"};
  return kNames[static_cast<std::size_t>(level)];
}

constexpr std::string_view to_string(Pressure::Cause cause) {
  constexpr std::string_view kNames[] = {"none", "unreachable", "broker", "disk", "memory", "queue_length", "outbox_length"};
  return kNames[static_cast<std::size_t>(cause)];
}

}  // namespace bide

namespace bide::core {

template <class E>
inline constexpr E kLast = E{};
template <>
inline constexpr ErrorCode kLast<ErrorCode> = ErrorCode::kTimedOut;
template <>
inline constexpr RetryPolicy::Shape kLast<RetryPolicy::Shape> = RetryPolicy::Shape::kExponential;
template <>
inline constexpr Fault kLast<Fault> = Fault::kCrashed;
template <>
inline constexpr DeadReason kLast<DeadReason> = DeadReason::kDamaged;
template <>
inline constexpr JobState kLast<JobState> = JobState::kWaiting;
template <>
inline constexpr AfterDeath kLast<AfterDeath> = AfterDeath::kRun;
template <>
inline constexpr OnConflict kLast<OnConflict> = OnConflict::kReplace;
template <>
inline constexpr Missed kLast<Missed> = Missed::kAll;
template <>
inline constexpr Overlap kLast<Overlap> = Overlap::kQueue;
template <>
inline constexpr BackupState kLast<BackupState> = BackupState::kFailed;
template <>
inline constexpr Pressure::Level kLast<Pressure::Level> = Pressure::Level::kBlocked;
template <>
inline constexpr Pressure::Cause kLast<Pressure::Cause> = Pressure::Cause::kOutboxLength;

}  // namespace bide::core
