// What a schedule must be to be accepted, when it is due, and which jobs its occurrences are.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job.h"
#include "bide/result.h"
#include "bide/schedule.h"
#include "core/cron.h"
#include "core/time_zones.h"

namespace bide::core {

inline constexpr Milliseconds kShortestPeriod = std::chrono::seconds(1);
inline constexpr Milliseconds kLongestJitter = std::chrono::hours(24);
inline constexpr std::uint32_t kMostMissed = 10'000;
inline constexpr std::size_t kScheduledBodyBytes = 64 * 1024;  // Bodies of schedules are kept in memory.

// What the job of an occurrence carries besides its own headers: for whom and for when it was made.
inline constexpr std::string_view kScheduleHeader = "bide-schedule";
inline constexpr std::string_view kScheduleDueHeader = "bide-schedule-due";

struct ScheduleProblem {
  std::string_view code;  // Stable, for programs: missing_field, invalid_cron, unknown_zone ...
  std::string field;      // As in Schedule; of the job with "job." before it.
  std::string message;    // One line for people.
};

// The first thing wrong with the schedule. Without `zones` the zone is not looked for.
std::optional<ScheduleProblem> find_problem(const Schedule& schedule, Time now, TimeZones* zones = nullptr);

// kInvalidArgument with the message of find_problem(), which names the field.
Status check_schedule(const Schedule& schedule, Time now, TimeZones* zones = nullptr);

// Both are due at the same times.
bool same_when(const Schedule& a, const Schedule& b);

// When a schedule is due.
class DueTimes {
 public:
  // `put`: when it was put; its anchor if it has none of its own. The errors of Cron::parse() and TimeZones::find().
  static Result<DueTimes> of(const Schedule& schedule, Time put, TimeZones& zones);

  // The first one strictly after this moment.
  Time next(Time after) const;
  // The newest of those after the first moment up to and including the second, at most so many; oldest first.
  std::vector<Time> newest(Time after, Time until, std::size_t most) const;

 private:
  std::optional<Cron> cron_ = {};
  std::shared_ptr<const TimeZone> zone_ = {};
  Milliseconds every_{0};
  Time anchor_ = {};
};

// What is due and not decided yet.
struct DueOccurrence {
  Time due;
  bool is_dropped = false;  // Missed, and not to be made up for.
};
inline constexpr Milliseconds kMissedAfter = std::chrono::minutes(1);
// Oldest first, those after `decided` up to and including `now`. What is more than a minute late was missed: Schedule::missed
// says which of it is to be made up for; of the others the newest are in the list.
std::vector<DueOccurrence> due_occurrences(const Schedule& schedule, const DueTimes& times, Time decided, Time now);

// The job of an occurrence, due with its jitter. Nothing: it was run by hand, and gets its id from the broker.
Job scheduled_job(const Schedule& schedule, std::uint32_t version, std::optional<Time> due);

// The id of the job that a schedule makes for a due time. Of version 8: no caller of a server gives such ids.
JobId occurrence_id(std::string_view name, std::uint32_t version, Time due);
// How late an occurrence is, which follows from its id: from 0 to `most`.
Milliseconds jitter_of(const JobId& occurrence, Milliseconds most);

}  // namespace bide::core
