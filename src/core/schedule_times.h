// What people ask about a schedule: when it is due, in words and as times.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bide/result.h"
#include "bide/schedule.h"
#include "core/time_zones.h"

namespace bide::core {

// "at 07:30, on Monday to Friday (Europe/Berlin)", "every 15m". Of an expression that is not valid: the expression.
std::string describe(const Schedule& schedule);

// The next so many times. `next`: the first of them, where a broker has said so. The errors of DueTimes::of().
Result<std::vector<Time>> next_times(const Schedule& schedule, std::optional<Time> next, Time now, std::size_t count,
                                     TimeZones& zones);

// As a clock in that zone shows it: "Mon 2026-03-30 07:30:00". kInvalidArgument: there is no such zone.
Result<std::string> local_text(Time time, const std::string& zone, TimeZones& zones);

}  // namespace bide::core
