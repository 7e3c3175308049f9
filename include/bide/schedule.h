// Schedule: a job that is made again and again. Each occurrence is an ordinary job, whose id follows from the schedule, its
// version and the due time: exactly one, however many processes, restarts or failovers there are.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job.h"

namespace bide {

// What becomes of occurrences that were due while nobody was there.
enum class Missed : std::uint8_t { kSkip, kOnce, kAll };

// What happens when the job of the last occurrence lives on.
enum class Overlap : std::uint8_t {
  kAllow,
  kSkip,
  kQueue,  // The next one is made when the last has ended.
};

struct Schedule {
  std::string name = {};  // As of a queue.
  std::string owner = {};  // Two programs that use one name by mistake have different ones. Empty: anybody's.

  // When: one of both. Cron has five fields, or six with seconds first; or @hourly, @daily and so on.
  std::string cron = {};
  std::string zone = "UTC";  // Of the tz database; for cron.
  Milliseconds every{0};
  std::optional<Time> anchor = {};  // Occurrences are whole multiples of `every` from here. Nothing: from when it was put.

  Job job = {};  // Without id, delay and due.

  Missed missed = Missed::kOnce;
  std::uint32_t most_missed = 100;  // With kAll: the newest of these.
  Overlap overlap = Overlap::kAllow;
  Milliseconds jitter{0};  // Each occurrence is late by a part of this, which follows from its id.
};

struct PutSchedule {
  bool created = false;
  bool changed = false;  // Neither: it was the same.
  std::optional<Time> next = {};
};

// What became of one due time.
struct Occurrence {
  Time due = {};
  JobId job = {};          // Nil: none was made.
  std::string note = {};   // Why none was made; otherwise empty.
  std::optional<JobState> state = {};  // Of the job, while it is known.
};

struct ScheduleInfo {
  static constexpr std::size_t kOccurrences = 20;

  Schedule schedule = {};
  std::uint32_t version = 1;  // Grows with each change of when it is due.
  bool paused = false;
  std::optional<Time> next = {};
  std::vector<Occurrence> last = {};  // Newest first, at most kOccurrences.
};

std::string_view to_string(Missed what);
std::string_view to_string(Overlap what);

}  // namespace bide
