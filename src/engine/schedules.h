// Schedules: what is known of each schedule, as the records say it. When it is due next follows from that; see
// schedule_times.h.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>

#include "engine/journal/schedule_records.h"

namespace bide::engine {

inline constexpr std::size_t kMostSchedules = 10'000;
inline constexpr std::size_t kMostWaiting = 100;  // Occurrences of a schedule that wait for the job before them.

struct KnownSchedule {
  journal::ScheduleRecord record;
  JobId last_job;                         // The newest that was made.
  std::deque<journal::Decision> waiting;  // Of kind kWaits, oldest first.
  std::deque<journal::Decision> last;     // Newest first, at most ScheduleInfo::kOccurrences.
};

class Schedules {
 public:
  using ByName = std::map<std::string, KnownSchedule, std::less<>>;

  void apply(const journal::ScheduleRecord& record);
  // Nothing when there is no such schedule: a repaired journal may have lost it.
  void apply(const journal::DecisionsRecord& record);

  const ByName& all() const { return by_name_; }
  const KnownSchedule* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &found->second;
  }

  // The block of the snapshot: all schedules, one behind the other.
  void encode(core::Encoder& out) const;
  bool decode(core::Decoder& in);  // False: it does not make sense.

 private:
  ByName by_name_;
};

}  // namespace bide::engine
