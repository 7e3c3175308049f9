// TimeZone: which time of day a moment is in a zone of the tz database. Made from the bytes of a TZif file (RFC 9636);
// moments after its last transition follow the rule in its footer, so the future has no end.
//
// At a change of the clock a time of day may be left out, or come twice. first_at() has one answer to both: the first
// moment at which the clock shows that time of day or a later one. So a time that does not exist is the first moment
// that does, and one that comes twice is the first of both.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "bide/result.h"

namespace bide::core {

using std::chrono::local_seconds;
using std::chrono::sys_seconds;

class TimeZone {
 public:
  // kInvalidArgument: these bytes are no TZif file of version 2 or later, or one that counts leap seconds.
  static Result<TimeZone> parse(std::string_view tzif);
  TimeZone() = default;  // UTC.

  local_seconds local(sys_seconds at) const;
  // The first moment at which the clock shows this time of day or a later one.
  sys_seconds first_at(local_seconds time) const;
  // What the clock has not shown yet, up to and including this moment, begins here.
  local_seconds not_yet_shown(sys_seconds at) const;

 private:
  // The clock is ahead of UTC by this from then on.
  struct Offset {
    std::int64_t begin_s = 0;
    std::int32_t ahead_s = 0;
  };
  // A day of each year, and a time of that day: when the clock changes.
  struct YearlyChange {
    enum class Day : std::uint8_t { kWithoutLeapDay, kWithLeapDay, kWeekday };
    Day day = Day::kWithLeapDay;
    int number = 0;  // Of the day in the year. For a weekday: 0 to 6, in this month and week; the fifth is the last.
    int month = 0;
    int week = 0;
    std::int32_t time_s = 7200;

    std::int64_t in_year(int year) const;  // Seconds since 1970 by the clock before the change.
  };
  // The text in the footer, as of the variable TZ of POSIX: CET-1CEST,M3.5.0,M10.5.0/3.
  struct Footer {
    std::int32_t standard_s = 0;
    std::int32_t summer_s = 0;
    std::optional<std::pair<YearlyChange, YearlyChange>> summer = {};  // Its begin and its end.
  };
  struct FooterReader;

  static std::optional<Footer> parse_footer(std::string_view text);
  // The changes around this moment, oldest first; the first one began before `from_s`.
  std::vector<Offset> changes(std::int64_t from_s, std::int64_t until_s) const;

  std::int32_t first_s_ = 0;  // Before all changes.
  std::vector<Offset> known_ = {};
  Footer footer_ = {};
};

}  // namespace bide::core
