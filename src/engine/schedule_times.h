// ScheduleTimes: when each schedule has something to do. It follows from the schedules, the time zones and the clock, and is not
// written down.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/schedule_rules.h"
#include "core/time_zones.h"
#include "engine/schedules.h"

namespace bide::engine {

class ScheduleTimes {
 public:
  explicit ScheduleTimes(core::ZoneData zones) : zones_(std::move(zones)) {}

  core::TimeZones& zones() { return zones_; }

  // After each change of the schedule. `something_waits`: an occurrence of it can be made at once. Time zones that have changed
  // are noticed here: what was announced before still comes as it was announced.
  void set(const KnownSchedule& known, std::int64_t now_ms, bool something_waits);
  void forget(const std::string& name);
  // It is looked at in the next step.
  void hasten(const std::string& name) { put(name, 0); }

  // When the first schedule has something to do, and which.
  const std::pair<std::int64_t, std::string>* first() const { return order_.empty() ? nullptr : &*order_.begin(); }

  struct Next {
    std::int64_t look_ms = 0;  // Its place in the order; it may be there for another reason than being due.
    std::optional<core::DueTimes> times;
    std::optional<Time> due;
    std::string why_not;  // There is none because of this.
  };
  const Next* find(const std::string& name) const {
    const auto found = next_.find(name);
    return found == next_.end() ? nullptr : &found->second;
  }

 private:
  void put(const std::string& name, std::int64_t look_ms);

  core::TimeZones zones_;
  std::map<std::string, Next> next_;
  std::set<std::pair<std::int64_t, std::string>> order_;
};

// A clock that is further behind than this was wrong before: its schedules go on from the time that it shows now.
inline constexpr std::int64_t kWrongClockMs = 24 * 60 * 60 * 1000;

}  // namespace bide::engine
