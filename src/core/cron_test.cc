#include "core/cron.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "core/time_text.h"
#include "support/zone_table.h"

namespace bide::core {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

Cron cron_of(std::string_view text) {
  const auto cron = Cron::parse(text);
  EXPECT_TRUE(cron) << cron.error().message;
  return cron.value_or(Cron());
}

std::string cron_refused(std::string_view text) {
  const auto cron = Cron::parse(text);
  EXPECT_FALSE(cron) << text;
  return cron ? "" : cron.error().message;
}

TimeZone zone_of(std::string_view rule) {
  const auto zone = TimeZone::parse(support::tzif_of(rule));
  EXPECT_TRUE(zone) << zone.error().message;
  return zone.value_or(TimeZone());
}

Time time_of(std::string_view text) { return parse_time(text).value_or(Time()); }

std::vector<std::string> times_of(std::string_view expression, const TimeZone& zone, std::string_view after,
                                  int count) {
  std::vector<std::string> times;
  Time at = time_of(after);
  for (int i = 0; i < count; ++i) {
    at = cron_of(expression).next(zone, at);
    times.push_back(format_time(at).substr(0, 19));
  }
  return times;
}

using Times = std::vector<std::string>;

TEST(Cron, EachFieldIsObeyed) {
  const TimeZone utc;
  EXPECT_EQ(times_of("30 7 * * mon-fri", utc, "2026-11-19T07:29:59Z", 3),
            (Times{"2026-11-19T07:30:00", "2026-11-20T07:30:00", "2026-11-23T07:30:00"}));
  EXPECT_EQ(times_of("*/20 10-11 1 * *", utc, "2026-01-01T10:15:00Z", 6),
            (Times{"2026-01-01T10:20:00", "2026-01-01T10:40:00", "2026-01-01T11:00:00", "2026-01-01T11:20:00",
                   "2026-01-01T11:40:00", "2026-02-01T10:00:00"}));
  EXPECT_EQ(times_of("15,45 59 23 31 dec *", utc, "2026-12-31T23:59:15Z", 2),
            (Times{"2026-12-31T23:59:45", "2027-12-31T23:59:15"}));
  EXPECT_EQ(times_of("0 0 29 FEB *", utc, "2096-03-01T00:00:00Z", 1), (Times{"2104-02-29T00:00:00"}));
  EXPECT_EQ(times_of("0 0 * * sat-sun", utc, "2026-11-20T00:00:00Z", 3),
            (Times{"2026-11-21T00:00:00", "2026-11-22T00:00:00", "2026-11-28T00:00:00"}));
  EXPECT_EQ(times_of("0 12 * * 7", utc, "2026-11-20T00:00:00Z", 1),
            times_of("0 12 * * 0", utc, "2026-11-20T00:00:00Z", 1));
}

TEST(Cron, NamesStandForExpressions) {
  const TimeZone utc;
  for (const auto& [name, expression] :
       std::vector<std::pair<const char*, const char*>>{{"@hourly", "0 * * * *"},
                                                        {"@daily", "0 0 * * *"},
                                                        {"@midnight", "0 0 * * *"},
                                                        {"@weekly", "0 0 * * sun"},
                                                        {"@monthly", "0 0 1 * *"},
                                                        {"@yearly", "0 0 1 1 *"},
                                                        {"@ANNUALLY", "0 0 1 jan *"}}) {
    EXPECT_EQ(times_of(name, utc, "2026-11-19T00:00:00Z", 5), times_of(expression, utc, "2026-11-19T00:00:00Z", 5))
        << name;
  }
}

TEST(Cron, DaysOfTheMonthAndWeekdaysAreJoinedAsInVixieCron) {
  const TimeZone utc;
  // Either: the 13th, and every Friday.
  EXPECT_EQ(times_of("0 0 13 * fri", utc, "2026-11-01T00:00:00Z", 4),
            (Times{"2026-11-06T00:00:00", "2026-11-13T00:00:00", "2026-11-20T00:00:00", "2026-11-27T00:00:00"}));
  EXPECT_EQ(times_of("0 0 12 * fri", utc, "2026-11-11T00:00:00Z", 2),
            (Times{"2026-11-12T00:00:00", "2026-11-13T00:00:00"}));
  // Both, because one begins with a star: odd days that are Fridays.
  EXPECT_EQ(times_of("0 0 */2 * fri", utc, "2026-11-01T00:00:00Z", 2),
            (Times{"2026-11-13T00:00:00", "2026-11-27T00:00:00"}));
}

TEST(Cron, WhatIsWrongIsNamed) {
  EXPECT_EQ(cron_refused("61 * * * *"),
            "invalid cron expression '61 * * * *': the minute '61' is out of range; allowed: 0 to 59");
  EXPECT_EQ(cron_refused("0 0 * * mo"),
            "invalid cron expression '0 0 * * mo': the weekday 'mo' is not known; allowed: 0 to 7 and sun to sat");
  EXPECT_EQ(cron_refused("0 0 * *"),
            "invalid cron expression '0 0 * *': it has 4 fields; write minute, hour, day of the month, "
            "month and weekday, with seconds first if wanted");
  EXPECT_EQ(cron_refused("5/15 * * * *"),
            "invalid cron expression '5/15 * * * *': the minute '5/15' has a step without a range; "
            "write 5-59/15");
  EXPECT_EQ(cron_refused("*/0 * * * *"),
            "invalid cron expression '*/0 * * * *': the minute '*/0' has an impossible step; allowed: 1 to 59");
  EXPECT_EQ(cron_refused("0 22-2 * * *"),
            "invalid cron expression '0 22-2 * * *': the hour '22-2' goes backwards; write two ranges "
            "with a comma between them");
  EXPECT_EQ(cron_refused("1, * * * *"), "invalid cron expression '1, * * * *': the minute '1,' has an empty part");
  EXPECT_EQ(cron_refused(""),
            "invalid cron expression '': it has 0 fields; write minute, hour, day of the month, month and "
            "weekday, with seconds first if wanted");
  EXPECT_TRUE(cron_refused("@dayly").ends_with("did you mean '@daily'?")) << cron_refused("@dayly");
  EXPECT_TRUE(cron_refused("@every 5m").find("without cron") != std::string::npos);
  for (const char* text :
       {"- * * * *", "1- * * * *", "-1 * * * *", "1/ * * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "+1 * * * *",
        "99999999999 * * * *", "* * * * * * *", "1-2-3 * * * *", "* 1 L * *", "@"}) {
    EXPECT_TRUE(cron_refused(text).starts_with("invalid cron expression '")) << text;
  }
}

TEST(Cron, AnExpressionThatCanNeverBeTrueIsRefused) {
  EXPECT_EQ(cron_refused("0 0 30 2 *"),
            "invalid cron expression '0 0 30 2 *': it would never be due: there is no such day in February");
  EXPECT_EQ(cron_refused("0 0 31 4,6,9,11 *"),
            "invalid cron expression '0 0 31 4,6,9,11 *': it would never be due: there is no such day in these months");
  cron_of("0 0 30 2 mon");  // Or on Mondays.
  cron_of("0 0 29 2 *");
}

TEST(Cron, IsExplainedInWords) {
  EXPECT_EQ(cron_of("30 7 * * mon-fri").describe(), "at 07:30, on Monday to Friday");
  EXPECT_EQ(cron_of("* * * * *").describe(), "every minute");
  EXPECT_EQ(cron_of("*/15 * * * *").describe(), "every 15 minutes");
  EXPECT_EQ(cron_of("*/15 9-17 * * 1-5").describe(), "every 15 minutes in hours 9 to 17, on Monday to Friday");
  EXPECT_EQ(cron_of("@hourly").describe(), "every hour");
  EXPECT_EQ(cron_of("0 */6 * * *").describe(), "every 6 hours");
  EXPECT_EQ(cron_of("@daily").describe(), "at 00:00 every day");
  EXPECT_EQ(cron_of("0 8,20 * * *").describe(), "at 08:00 and 20:00 every day");
  EXPECT_EQ(cron_of("@weekly").describe(), "at 00:00, on Sunday");
  EXPECT_EQ(cron_of("0 3 1,15 * *").describe(), "at 03:00, on days 1 and 15 of the month");
  EXPECT_EQ(cron_of("@yearly").describe(), "at 00:00, on day 1 of the month in January");
  EXPECT_EQ(cron_of("0 0 13 * fri").describe(), "at 00:00, on day 13 of the month and on Friday");
  EXPECT_EQ(cron_of("0 0 */10 * fri").describe(), "at 00:00, on days 1, 11, 21 and 31 of the month if it is Friday");
  EXPECT_EQ(cron_of("0 9 * jun-aug sat,sun").describe(), "at 09:00, on Saturday and Sunday in June to August");
  EXPECT_EQ(cron_of("5,35 * * * *").describe(), "at minutes 5 and 35 of every hour");
  EXPECT_EQ(cron_of("*/10 * * * * *").describe(), "every 10 seconds");
  EXPECT_EQ(cron_of("30 0 12 * * *").describe(), "at 12:00:30 every day");
  EXPECT_EQ(cron_of("0 0 * 2 *").describe(), "at 00:00, every day in February");
}

struct Switch {
  const char* zone;
  std::string_view rule;
  const char* expression;
  const char* after;
  Times due;  // In UTC.
};

// The table in docs/schedules.md. Forward: Berlin 02:00 to 03:00 (01:00 UTC), New York 02:00 to 03:00 (07:00 UTC), Lord
// Howe 02:00 to 02:30 (15:30 UTC). Back: Berlin 03:00 to 02:00 (01:00 UTC), New York 02:00 to 01:00 (06:00 UTC), Lord
// Howe 02:00 to 01:30 (15:00 UTC).
const Switch kSwitches[] = {
    // A time that does not exist is the first moment that does, and the day after as usual.
    {"Berlin", support::kBerlin, "30 2 * * *", "2026-03-28T12:00:00Z", {"2026-03-29T01:00:00", "2026-03-30T00:30:00"}},
    {"New York",
     support::kNewYork,
     "30 2 * * *",
     "2026-03-07T12:00:00Z",
     {"2026-03-08T07:00:00", "2026-03-09T06:30:00"}},
    {"Lord Howe",
     support::kLordHowe,
     "15 2 * * *",
     "2026-10-03T00:00:00Z",
     {"2026-10-03T15:30:00", "2026-10-04T15:15:00"}},
    // Several that do not exist are one moment, together with one that is due then anyway.
    {"Berlin",
     support::kBerlin,
     "*/30 2-3 * * *",
     "2026-03-29T00:00:00Z",
     {"2026-03-29T01:00:00", "2026-03-29T01:30:00"}},
    {"New York",
     support::kNewYork,
     "*/30 2-3 * * *",
     "2026-03-08T06:00:00Z",
     {"2026-03-08T07:00:00", "2026-03-08T07:30:00"}},
    {"Lord Howe",
     support::kLordHowe,
     "*/10 * * * *",
     "2026-10-03T15:25:00Z",
     {"2026-10-03T15:30:00", "2026-10-03T15:40:00"}},
    // One that comes twice is the first of both.
    {"Berlin", support::kBerlin, "30 2 * * *", "2026-10-24T12:00:00Z", {"2026-10-25T00:30:00", "2026-10-26T01:30:00"}},
    {"New York",
     support::kNewYork,
     "30 1 * * *",
     "2026-10-31T12:00:00Z",
     {"2026-11-01T05:30:00", "2026-11-02T06:30:00"}},
    {"Lord Howe",
     support::kLordHowe,
     "45 1 * * *",
     "2026-04-04T00:00:00Z",
     {"2026-04-04T14:45:00", "2026-04-05T15:15:00"}},
    // So what is due each hour pauses for the hour that comes a second time.
    {"Berlin", support::kBerlin, "0 * * * *", "2026-10-24T23:30:00Z", {"2026-10-25T00:00:00", "2026-10-25T02:00:00"}},
    {"New York",
     support::kNewYork,
     "0 * * * *",
     "2026-11-01T04:30:00Z",
     {"2026-11-01T05:00:00", "2026-11-01T07:00:00"}},
    {"Lord Howe",
     support::kLordHowe,
     "*/15 * * * *",
     "2026-04-04T14:40:00Z",
     {"2026-04-04T14:45:00", "2026-04-04T15:30:00"}},
};

TEST(Cron, AtEachChangeOfTheClockEveryTimeIsDueOnce) {
  for (const Switch& one : kSwitches) {
    EXPECT_EQ(times_of(one.expression, zone_of(one.rule), one.after, 2), one.due) << one.zone << ", " << one.expression;
  }
}

std::string random_field(int least, int most) {
  const auto value = [&] { return *rc::gen::inRange(least, most + 1); };
  std::string field;
  const int parts = *rc::gen::inRange(1, 4);
  for (int i = 0; i < parts; ++i) {
    if (i != 0) field += ",";
    const int kind = *rc::gen::inRange(0, 4);
    int first = value(), last = value();
    if (last < first) std::swap(first, last);
    if (kind == 0) field += "*";
    if (kind == 1) field += std::to_string(first);
    if (kind >= 2) field += std::to_string(first) + "-" + std::to_string(last);
    if (kind == 3) field += "/" + std::to_string(*rc::gen::inRange(1, most));
  }
  return field;
}

// Whether it is due at this moment, by looking at this moment only: the rules of both fields and of the clock's changes
// as they are written in the docs.
bool is_due(const Cron& cron, const TimeZone& zone, sys_seconds at) {
  const local_seconds shown = zone.local(at);
  const local_seconds before = zone.local(at - seconds(1));
  if (shown - before > seconds(1)) {
    for (local_seconds time = before + seconds(1); time <= shown; time += seconds(1)) {
      if (cron.matches(time)) return true;
    }
    return false;
  }
  for (sys_seconds earlier = at - hours(2); earlier < at; earlier += minutes(30)) {
    if (zone.local(earlier) == shown) return false;  // It comes for the second time.
  }
  return cron.matches(shown);
}

RC_GTEST_PROP(CronProperty, NextIsStrictlyAfterAndDueAndNothingBetweenIsDue, ()) {
  const auto cron = Cron::parse(random_field(0, 59) + " " + random_field(0, 59) + " " + random_field(0, 23) + " * * *");
  RC_ASSERT(cron.has_value());
  const std::string_view rules[] = {support::kBerlin, support::kNewYork, support::kLordHowe};
  const TimeZone zone = zone_of(rules[*rc::gen::inRange(0, 3)]);
  // Around a change of the clock, most of the time.
  const std::string_view changes[] = {"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2026-03-08T07:00:00Z",
                                      "2026-11-01T06:00:00Z", "2026-10-03T15:30:00Z", "2026-04-04T15:00:00Z"};
  const Time after = time_of(changes[*rc::gen::inRange(0, 6)]) + Milliseconds(*rc::gen::inRange(-9'000'000, 9'000'000));
  const Time next = cron->next(zone, after);
  RC_ASSERT(next > after);
  const auto due = std::chrono::floor<seconds>(next);
  RC_ASSERT(next == due);
  RC_ASSERT(is_due(*cron, zone, due));
  const sys_seconds looked_until = std::min<sys_seconds>(due, std::chrono::floor<seconds>(after) + hours(4));
  for (sys_seconds at = std::chrono::floor<seconds>(after) + seconds(1); at < looked_until; at += seconds(1)) {
    RC_ASSERT(!is_due(*cron, zone, at));
  }
}

RC_GTEST_PROP(CronProperty, TheNewestAreTheLastOfThoseThatNextGives, ()) {
  const std::string expression =
      random_field(0, 59) + " " + random_field(0, 23) + " " + random_field(1, 28) + " * " + random_field(0, 6);
  const auto cron = Cron::parse(expression);
  RC_ASSERT(cron.has_value());
  const TimeZone zone = zone_of(support::kBerlin);
  const Time after = time_of("2026-03-28T22:00:00Z") + Milliseconds(*rc::gen::inRange(0, 40'000'000));
  const Time until = after + Milliseconds(*rc::gen::inRange(0, 100'000'000));
  const auto most = static_cast<std::size_t>(*rc::gen::inRange(1, 20));
  std::vector<Time> all;
  for (Time at = cron->next(zone, after); at <= until; at = cron->next(zone, at)) all.push_back(at);
  const std::size_t left_out = all.size() > most ? all.size() - most : 0;
  RC_ASSERT(cron->newest(zone, after, until, most) ==
            std::vector<Time>(all.begin() + static_cast<std::ptrdiff_t>(left_out), all.end()));
}

RC_GTEST_PROP(CronProperty, EveryDayIsJudgedByItsMonthItsNumberAndItsWeekday, ()) {
  const std::string month_days = random_field(1, 31), months = random_field(1, 12), weekdays = random_field(0, 6);
  const auto cron = Cron::parse("0 0 " + month_days + " " + months + " " + weekdays);
  RC_PRE(cron.has_value());
  // Each field by itself, with the others free.
  const Cron by_day = cron_of("0 0 " + month_days + " * *");
  const Cron by_month = cron_of("0 0 * " + months + " *");
  const Cron by_weekday = cron_of("0 0 * * " + weekdays);
  const bool both = month_days.starts_with("*") || weekdays.starts_with("*");
  const local_seconds begin = std::chrono::local_days(std::chrono::year(*rc::gen::inRange(1970, 2400)) / 1 / 1);
  local_seconds expected = begin;
  for (int day = 0; day < 366; ++day, expected += days(1)) {
    const bool of_day = by_day.matches(expected), of_week = by_weekday.matches(expected);
    RC_ASSERT(cron->matches(expected) ==
              (by_month.matches(expected) && (both ? of_day && of_week : of_day || of_week)));
  }
}

}  // namespace
}  // namespace bide::core
