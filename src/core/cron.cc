#include "core/cron.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>
#include <vector>

#include "core/did_you_mean.h"
#include "core/number_text.h"
#include "core/quote.h"
#include "core/text.h"

namespace bide::core {
namespace {

using std::chrono::days;
using std::chrono::local_days;
using std::chrono::seconds;

constexpr std::array<std::string_view, 12> kMonthNames = {"January",   "February", "March",    "April",
                                                          "May",       "June",     "July",     "August",
                                                          "September", "October",  "November", "December"};
constexpr std::array<std::string_view, 7> kWeekdayNames = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                           "Thursday", "Friday", "Saturday"};

struct CronField {
  std::string_view name;
  int least;
  int most;
  std::span<const std::string_view> names = {};  // Of the values from `least` on.
};
constexpr std::array<CronField, 6> kCronFields = {{{"second", 0, 59},
                                                   {"minute", 0, 59},
                                                   {"hour", 0, 23},
                                                   {"day of the month", 1, 31},
                                                   {"month", 1, 12, kMonthNames},
                                                   {"weekday", 0, 7, kWeekdayNames}}};

struct CronMacro {
  std::string_view name;
  std::string_view expression;
};
constexpr std::array<CronMacro, 7> kCronMacros = {{{"@hourly", "0 * * * *"},
                                                   {"@daily", "0 0 * * *"},
                                                   {"@midnight", "0 0 * * *"},
                                                   {"@weekly", "0 0 * * 0"},
                                                   {"@monthly", "0 0 1 * *"},
                                                   {"@yearly", "0 0 1 1 *"},
                                                   {"@annually", "0 0 1 1 *"}}};

constexpr std::uint64_t kAllDays = ((std::uint64_t{1} << 31) - 1) << 1;
constexpr std::uint64_t kAllWeekdays = (1u << 7) - 1;
constexpr std::uint64_t kAllMonths = ((1u << 12) - 1) << 1;
constexpr std::uint64_t kAllHours = (1u << 24) - 1;
constexpr std::uint64_t kAllOfSixty = (std::uint64_t{1} << 60) - 1;

bool has(std::uint64_t set, unsigned value) { return (set >> value & 1) != 0; }

// The smallest member that is not below `from`; -1: there is none.
int member_from(std::uint64_t set, int from) {
  const std::uint64_t rest = from > 63 ? 0 : set >> from << from;
  return rest == 0 ? -1 : std::countr_zero(rest);
}

// The largest member that is not above `until`; -1: there is none.
int member_until(std::uint64_t set, int until) {
  const std::uint64_t rest = until < 0 ? 0 : until >= 63 ? set : set & ((std::uint64_t{2} << until) - 1);
  return 63 - std::countl_zero(rest);
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators, bool keep_empty) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end != 0 || keep_empty) parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

Error cron_refusal(std::string_view text, const std::string& why) {
  return {ErrorCode::kInvalidArgument, "invalid cron expression " + quoted(text) + ": " + why};
}

Error field_refusal(const CronField& field, std::string_view part, const std::string& why) {
  return {ErrorCode::kInvalidArgument, "the " + std::string(field.name) + " " + quoted(part) + " " + why};
}

std::string allowed_values(const CronField& field) {
  std::string text = "; allowed: " + std::to_string(field.least) + " to " + std::to_string(field.most);
  if (!field.names.empty()) {
    text +=
        " and " + lower_case(field.names.front().substr(0, 3)) + " to " + lower_case(field.names.back().substr(0, 3));
  }
  return text;
}

Result<int> parse_value(const CronField& field, std::string_view text) {
  const auto number = parse_integer<int>(text);
  if (number && *number >= field.least && *number <= field.most) return *number;
  for (std::size_t i = 0; !number && i < field.names.size(); ++i) {
    if (lower_case(text) == lower_case(field.names[i].substr(0, 3))) return field.least + static_cast<int>(i);
  }
  return field_refusal(field, text, (number ? "is out of range" : "is not known") + allowed_values(field));
}

Result<std::uint64_t> parse_part(const CronField& field, std::string_view part) {
  const std::size_t slash = part.find('/');
  const std::string_view range = part.substr(0, slash);
  int first = field.least;
  int last = field.name == "weekday" ? 6 : field.most;
  if (range != "*") {
    const std::size_t dash = range.find('-');
    const auto begin = parse_value(field, range.substr(0, dash));
    if (!begin) return begin.error();
    first = last = *begin;
    if (dash != std::string_view::npos) {
      const auto end = parse_value(field, range.substr(dash + 1));
      if (!end) return end.error();
      last = *end;
      // A week may be written from any day to Sunday.
      if (field.name == "weekday" && last == 0 && first != 0) last = 7;
      if (last < first)
        return field_refusal(field, range, "goes backwards; write two ranges with a comma between them");
    } else if (slash != std::string_view::npos) {
      return field_refusal(field, part,
                           "has a step without a range; write " + std::string(range) + "-" +
                               std::to_string(last = field.most) + std::string(part.substr(slash)));
    }
  }
  int step = 1;
  if (slash != std::string_view::npos) {
    const auto given = parse_integer<int>(part.substr(slash + 1));
    if (!given || *given < 1 || *given > field.most) {
      return field_refusal(field, part, "has an impossible step; allowed: 1 to " + std::to_string(field.most));
    }
    step = *given;
  }
  std::uint64_t set = 0;
  for (int value = first; value <= last; value += step)
    set |= std::uint64_t{1} << (field.name == "weekday" ? value % 7 : value);
  return set;
}

Result<std::uint64_t> parse_field(const CronField& field, std::string_view text) {
  std::uint64_t set = 0;
  for (const std::string_view part : split(text, ",", true)) {
    if (part.empty()) return field_refusal(field, text, "has an empty part");
    const auto values = parse_part(field, part);
    if (!values) return values.error();
    set |= *values;
  }
  return set;
}

Result<std::string_view> macro_expression(std::string_view text) {
  std::vector<std::string_view> names;
  for (const CronMacro& macro : kCronMacros) {
    if (lower_case(text) == macro.name) return macro.expression;
    names.push_back(macro.name);
  }
  if (text == "@reboot")
    return cron_refusal(text, "there is no start to run it at; enqueue the job where your program starts");
  if (text.starts_with("@every")) return cron_refusal(text, "a period is given as `every`, such as 15m, without cron");
  return cron_refusal(text,
                      "it is no name for a time; allowed: @hourly, @daily, @midnight, @weekly, @monthly, @yearly" +
                          did_you_mean(text, names));
}

}  // namespace

Result<Cron> Cron::parse(std::string_view text) {
  const std::string_view given = trimmed(text);
  std::string_view expression = given;
  if (given.starts_with('@')) {
    const auto macro = macro_expression(given);
    if (!macro) return macro.error();
    expression = *macro;
  }
  const std::vector<std::string_view> fields = split(expression, " \t", false);
  if (fields.size() != 5 && fields.size() != 6) {
    return cron_refusal(text,
                        "it has " + std::to_string(fields.size()) + (fields.size() == 1 ? " field" : " fields") +
                            "; write minute, hour, day of the month, month and weekday, with seconds first if wanted");
  }
  Cron cron;
  std::uint64_t* const sets[] = {&cron.seconds_, &cron.minutes_, &cron.hours_,
                                 &cron.days_,    &cron.months_,  &cron.weekdays_};
  const std::size_t skipped = kCronFields.size() - fields.size();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto set = parse_field(kCronFields[skipped + i], fields[i]);
    if (!set) return cron_refusal(text, set.error().message);
    *sets[skipped + i] = *set;
  }
  cron.both_days_ = fields[fields.size() - 3].starts_with('*') || fields.back().starts_with('*');
  if (!cron.both_days_) return cron;

  // A leap year that begins on each weekday comes within 28 years or, around 2100, 40: only days that no year has never
  // match.
  for (unsigned month = 1; month <= 12; ++month) {
    const auto last =
        static_cast<unsigned>((std::chrono::year(2024) / std::chrono::month(month) / std::chrono::last).day());
    if (has(cron.months_, month) && (cron.days_ & ((std::uint64_t{2} << last) - 1)) != 0) return cron;
  }
  return cron_refusal(text,
                      "it would never be due: there is no such day in " +
                          std::string(std::has_single_bit(cron.months_)
                                          ? kMonthNames[static_cast<std::size_t>(std::countr_zero(cron.months_) - 1)]
                                          : "these months"));
}

bool Cron::matches(local_seconds time) const { return at_or_after(time) == time; }

bool Cron::has_day(std::chrono::year_month_day day, std::chrono::weekday weekday) const {
  const bool of_month = has(days_, static_cast<unsigned>(day.day()));
  const bool of_week = has(weekdays_, weekday.c_encoding());
  return both_days_ ? of_month && of_week : of_month || of_week;
}

std::int64_t Cron::time_from(std::int64_t of_day) const {
  const int first_hour = static_cast<int>(of_day / 3600);
  const int first_minute = static_cast<int>(of_day / 60);
  for (int hour = member_from(hours_, first_hour); hour >= 0; hour = member_from(hours_, hour + 1)) {
    for (int minute = member_from(minutes_, hour == first_hour ? first_minute % 60 : 0); minute >= 0;
         minute = member_from(minutes_, minute + 1)) {
      const bool is_first = hour * 60 + minute == first_minute;
      const int second = member_from(seconds_, is_first ? static_cast<int>(of_day % 60) : 0);
      if (second >= 0) return hour * 3600 + minute * 60 + second;
    }
  }
  return -1;
}

std::int64_t Cron::time_until(std::int64_t of_day) const {
  const int last_hour = static_cast<int>(of_day / 3600);
  const int last_minute = static_cast<int>(of_day / 60);
  for (int hour = member_until(hours_, last_hour); hour >= 0; hour = member_until(hours_, hour - 1)) {
    for (int minute = member_until(minutes_, hour == last_hour ? last_minute % 60 : 59); minute >= 0;
         minute = member_until(minutes_, minute - 1)) {
      const bool is_last = hour * 60 + minute == last_minute;
      const int second = member_until(seconds_, is_last ? static_cast<int>(of_day % 60) : 59);
      if (second >= 0) return hour * 3600 + minute * 60 + second;
    }
  }
  return -1;
}

local_seconds Cron::at_or_after(local_seconds time) const {
  local_days day = std::chrono::floor<days>(time);
  std::int64_t from = (time - day).count();
  while (true) {
    const std::chrono::year_month_day date(day);
    const bool in_month = has(months_, static_cast<unsigned>(date.month()));
    const std::int64_t found = in_month && has_day(date, std::chrono::weekday(day)) ? time_from(from) : -1;
    if (found >= 0) return day + seconds(found);
    day = in_month ? day + days(1) : local_days(date.year() / date.month() / std::chrono::last) + days(1);
    from = 0;
  }
}

local_seconds Cron::at_or_before(local_seconds time) const {
  local_days day = std::chrono::floor<days>(time);
  std::int64_t until = (time - day).count();
  while (true) {
    const std::chrono::year_month_day date(day);
    const bool in_month = has(months_, static_cast<unsigned>(date.month()));
    const std::int64_t found = in_month && has_day(date, std::chrono::weekday(day)) ? time_until(until) : -1;
    if (found >= 0) return day + seconds(found);
    day = (in_month ? day : local_days(date.year() / date.month() / 1)) - days(1);
    until = 24 * 60 * 60 - 1;
  }
}

Time Cron::next(const TimeZone& zone, Time after) const {
  return zone.first_at(at_or_after(zone.not_yet_shown(std::chrono::floor<seconds>(after))));
}

std::vector<Time> Cron::newest(const TimeZone& zone, Time after, Time until, std::size_t most) const {
  std::vector<Time> found;
  local_seconds time = zone.not_yet_shown(std::chrono::floor<seconds>(until));
  while (found.size() < most) {
    time = at_or_before(time - seconds(1));
    const Time at = zone.first_at(time);
    if (at <= after) break;
    // Several times that do not exist are one moment.
    if (found.empty() || found.back() != at) found.push_back(at);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

namespace {

// "1, 2 to 5 and 9", where each member is named by `name`.
template <class Name>
std::string list_members(std::uint64_t set, const Name& name) {
  std::vector<std::string> parts;
  for (int first = member_from(set, 0); first >= 0;) {
    int last = first;
    while (has(set, static_cast<unsigned>(last + 1))) ++last;
    if (last - first < 2) last = first;
    parts.push_back(name(first) + (last == first ? "" : " to " + name(last)));
    first = member_from(set, last + 1);
  }
  std::string text = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) text += (i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

std::string list_numbers(std::uint64_t set) {
  return list_members(set, [](int value) { return std::to_string(value); });
}

// "9" of 9, 12, 15: the members from 0 on are its multiples, and it divides the whole; otherwise 0.
int step_of(std::uint64_t set, int size) {
  const int step = member_from(set, 1);
  if (!has(set, 0) || step < 1 || size % step != 0) return 0;
  for (int value = 0; value < size; ++value) {
    if (has(set, static_cast<unsigned>(value)) != (value % step == 0)) return 0;
  }
  return step;
}

std::string every(int step, const char* unit) {
  return step == 1 ? std::string("every ") + unit : "every " + std::to_string(step) + " " + unit + "s";
}

std::string plural(std::uint64_t set, const char* unit) {
  return std::string(unit) + (std::has_single_bit(set) ? " " : "s ") + list_numbers(set);
}

std::string clock_text(int hour, int minute, int second) {
  const auto two = [](int value) { return (value < 10 ? "0" : "") + std::to_string(value); };
  return two(hour) + ":" + two(minute) + (second == 0 ? "" : ":" + two(second));
}

}  // namespace

std::string Cron::describe_times() const {
  const bool one_second = std::has_single_bit(seconds_);
  const int minute_step = step_of(minutes_, 60);
  const int hour_step = step_of(hours_, 24);
  if (seconds_ == 1 && minutes_ == 1 && hour_step != 0 && hour_step <= 8) return every(hour_step, "hour");
  if (one_second && std::has_single_bit(minutes_) && std::popcount(hours_) <= 4) {
    const int minute = std::countr_zero(minutes_);
    const int second = std::countr_zero(seconds_);
    std::string text;
    for (int hour = member_from(hours_, 0); hour >= 0; hour = member_from(hours_, hour + 1)) {
      text += (text.empty()                        ? "at "
               : member_from(hours_, hour + 1) < 0 ? " and "
                                                   : ", ") +
              clock_text(hour, minute, second);
    }
    return text;
  }
  if (seconds_ == 1) {
    if (minute_step != 0) {
      if (hours_ == kAllHours) return every(minute_step, "minute");
      return every(minute_step, "minute") + " in " + plural(hours_, "hour");
    }
    return "at " + plural(minutes_, "minute") +
           (hours_ == kAllHours ? " of every hour" : " of " + plural(hours_, "hour"));
  }
  const int second_step = step_of(seconds_, 60);
  std::string text = second_step != 0 ? every(second_step, "second") : "at " + plural(seconds_, "second");
  if (minutes_ == kAllOfSixty) {
    text += second_step != 0 ? "" : " of every minute";
  } else {
    text += " of " + plural(minutes_, "minute");
  }
  return hours_ == kAllHours ? text : text + " in " + plural(hours_, "hour");
}

std::string Cron::describe_days() const {
  const auto month = [](int value) { return std::string(kMonthNames[static_cast<std::size_t>(value - 1)]); };
  // The week begins on Monday, so that a weekend is one range.
  const std::uint64_t week = (weekdays_ >> 1) | (weekdays_ & 1) << 6;
  const auto weekday = [](int value) { return std::string(kWeekdayNames[static_cast<std::size_t>(value + 1) % 7]); };
  std::string text;
  const bool all_days = days_ == kAllDays;
  const bool all_weekdays = weekdays_ == kAllWeekdays;
  if (both_days_ ? !all_days : !all_days && !all_weekdays) {
    text = ", on " + plural(days_, "day") + " of the month";
    if (!all_weekdays) text += (both_days_ ? " if it is " : " and on ") + list_members(week, weekday);
  } else if (both_days_ && !all_weekdays) {
    text = ", on " + list_members(week, weekday);
  }
  if (months_ != kAllMonths) text += (text.empty() ? ", every day in " : " in ") + list_members(months_, month);
  return text;
}

std::string Cron::describe() const {
  const std::string days = describe_days();
  const std::string times = describe_times();
  return times + (days.empty() && times.starts_with("at ") && hours_ != kAllHours ? " every day" : days);
}

}  // namespace bide::core
