// Cron: the times that a cron expression stands for.
//
//   expression = [ seconds ] minutes hours days-of-month months weekdays  |  "@" name
//   field      = part { "," part }
//   part       = ( "*" | value | value "-" value ) [ "/" step ]     a step needs "*" or a range
//   name       = hourly | daily | midnight | weekly | monthly | yearly | annually
//
// Months and weekdays also by the first three letters of their English names; weekday 7 is Sunday, as 0 is. As in Vixie
// cron: when both days of the month and weekdays are restricted, a day that is in either of them counts, unless one of
// the two begins with *, as in */2: then it must be in both.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job.h"
#include "bide/result.h"
#include "core/time_zone.h"

namespace bide::core {

class Cron {
 public:
  // kInvalidArgument: `invalid cron expression '...'` and the reason, also when there is no such day in any year.
  static Result<Cron> parse(std::string_view text);

  // The first time of day at or after this one. There always is one within 41 years.
  local_seconds at_or_after(local_seconds time) const;
  local_seconds at_or_before(local_seconds time) const;
  bool matches(local_seconds time) const;
  // When it is due next, strictly after this moment. By TimeZone's rule each time that matches is due once: one that
  // does not exist at the first moment that does, one that comes twice at the first.
  Time next(const TimeZone& zone, Time after) const;
  // The newest of those after the first moment up to and including the second, at most so many; oldest first.
  std::vector<Time> newest(const TimeZone& zone, Time after, Time until, std::size_t most) const;

  // In words: "at 07:30, on Monday to Friday".
  std::string describe() const;

 private:
  // The first and the last time of a day from and until this one, in seconds; -1: there is none.
  std::int64_t time_from(std::int64_t of_day) const;
  std::int64_t time_until(std::int64_t of_day) const;
  bool has_day(std::chrono::year_month_day day, std::chrono::weekday weekday) const;
  std::string describe_times() const;
  std::string describe_days() const;

  // One bit for each value that is in the field.
  std::uint64_t seconds_ = 1;
  std::uint64_t minutes_ = 0;
  std::uint64_t hours_ = 0;
  std::uint64_t days_ = 0;
  std::uint64_t months_ = 0;
  std::uint64_t weekdays_ = 0;  // 0 to 6; 0 is Sunday.
  bool both_days_ = true;       // A day of the month or the weekday begins with *: both must match.
};

}  // namespace bide::core
