#include "core/schedule_times.h"

#include <array>
#include <chrono>
#include <cstdio>

#include "core/cron.h"
#include "core/duration.h"
#include "core/schedule_rules.h"

namespace bide::core {

std::string describe(const Schedule& schedule) {
  if (schedule.cron.empty()) return "every " + format_duration(schedule.every);
  const auto cron = Cron::parse(schedule.cron);
  return (cron ? cron->describe() : schedule.cron) + " (" + schedule.zone + ")";
}

Result<std::vector<Time>> next_times(const Schedule& schedule, std::optional<Time> next, Time now, std::size_t count,
                                     TimeZones& zones) {
  const auto due = DueTimes::of(schedule, next.value_or(now), zones);
  if (!due) return due.error();
  std::vector<Time> times;
  times.reserve(count);
  Time last = next ? *next - Milliseconds(1) : now;
  while (times.size() < count) times.push_back(last = due->next(last));
  return times;
}

Result<std::string> local_text(Time time, const std::string& zone, TimeZones& zones) {
  static constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  const auto found = zones.find(zone);
  if (!found) return found.error();
  const auto local = (*found)->local(std::chrono::floor<std::chrono::seconds>(time));
  const auto day = std::chrono::floor<std::chrono::days>(local);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(local - day);
  char text[64];
  std::snprintf(text, sizeof text, "%s %04d-%02u-%02u %02d:%02d:%02d", kDays[std::chrono::weekday(day).c_encoding()],
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return std::string(text);
}

}  // namespace bide::core
