#include "core/schedule_rules.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "core/time_text.h"
#include "support/zone_table.h"

namespace bide::core {
namespace {

using namespace std::chrono_literals;

const Time kNow = parse_time("2026-11-19T10:00:00Z").value_or(Time());

Schedule good_schedule() {
  return {.name = "report", .cron = "30 7 * * mon-fri", .zone = "Europe/Berlin", .job = {.kind = "report"}};
}

std::string problem_of(const std::function<void(Schedule&)>& change) {
  TimeZones zones(support::zone_table());
  Schedule schedule = good_schedule();
  change(schedule);
  const auto problem = find_problem(schedule, kNow, &zones);
  return problem ? problem->field + ": " + problem->message : "";
}

TEST(ScheduleRules, WhatIsWrongIsNamedWithItsField) {
  EXPECT_EQ(problem_of([](Schedule&) {}), "");
  EXPECT_EQ(problem_of([](Schedule& s) { s.name = ""; }),
            "name: name is missing; give the schedule one, such as nightly-report");
  EXPECT_EQ(problem_of([](Schedule& s) { s.cron = ""; }),
            "cron: neither cron nor every is given; say when it is due, such as 30 7 * * mon-fri or 15m");
  EXPECT_EQ(problem_of([](Schedule& s) { s.every = 15min; }),
            "every: both cron '30 7 * * mon-fri' and every 15m are given; give one of them");
  EXPECT_EQ(problem_of([](Schedule& s) { s.zone = "Europe/Berln"; }),
            "zone: unknown time zone 'Europe/Berln'; did you mean 'Europe/Berlin'?");
  EXPECT_EQ(problem_of([](Schedule& s) { s.cron = "", s.every = 999ms; }),
            "every: every 999ms is out of range; allowed: 1s to 36500d");
  EXPECT_EQ(problem_of([](Schedule& s) { s.jitter = 25h; }), "jitter: jitter 25h is out of range; allowed: 0 to 24h");
  EXPECT_EQ(problem_of([](Schedule& s) { s.job.kind = ""; }),
            "job.kind: kind is missing; give the name of the handler, such as send_email");
  EXPECT_EQ(problem_of([](Schedule& s) { s.job.delay = 1s; }),
            "job.delay: delay is given for the job of a schedule; when it is due the schedule says, leave it out");
  const auto field_of = [](const std::function<void(Schedule&)>& change) {
    const std::string problem = problem_of(change);
    return problem.substr(0, problem.find(':'));
  };
  EXPECT_EQ(field_of([](Schedule& s) { s.name = "a b"; }), "name");
  EXPECT_EQ(field_of([](Schedule& s) { s.owner = "a b"; }), "owner");
  EXPECT_EQ(field_of([](Schedule& s) { s.cron = "x"; }), "cron");
  EXPECT_EQ(field_of([](Schedule& s) { s.anchor = kNow; }), "anchor");
  EXPECT_EQ(field_of([](Schedule& s) { s.cron = "", s.every = 1h, s.anchor = kNow + std::chrono::hours(24 * 40'000); }),
            "anchor");
  EXPECT_EQ(field_of([](Schedule& s) { s.most_missed = 0; }), "most_missed");
  EXPECT_EQ(field_of([](Schedule& s) { s.jitter = -1ms; }), "jitter");
  EXPECT_EQ(field_of([](Schedule& s) { s.job.id = occurrence_id("a", 1, kNow); }), "job.id");
  EXPECT_EQ(field_of([](Schedule& s) { s.job.due = kNow; }), "job.due");
  EXPECT_EQ(field_of([](Schedule& s) { s.job.expires = kNow; }), "job.expires");
  EXPECT_EQ(field_of([](Schedule& s) { s.job.body.assign(kScheduledBodyBytes + 1, 'x'); }), "job.body");
  EXPECT_EQ(field_of([](Schedule& s) {
              s.job.headers = {{"a", std::string(Limits::kHeaderBytes - 10, 'x')}};
            }),
            "job.headers");
}

TEST(ScheduleRules, APeriodCountsFromItsAnchor) {
  TimeZones zones(support::zone_table());
  const auto due_times = [&](std::optional<Time> anchor, Time put) {
    return *DueTimes::of({.name = "a", .every = 15min, .anchor = anchor, .job = {.kind = "k"}}, put, zones);
  };
  EXPECT_EQ(due_times({}, kNow).next(kNow), kNow + 15min);
  EXPECT_EQ(due_times(kNow - 100h - 1min, kNow).next(kNow), kNow + 14min);
  EXPECT_EQ(due_times(kNow + 1h, kNow).next(kNow), kNow + 1h);
  EXPECT_EQ(due_times(kNow + 1h, kNow).next(kNow + 1h), kNow + 75min);
  EXPECT_EQ(due_times(kNow, kNow).newest(kNow, kNow + 1h, 2), (std::vector<Time>{kNow + 45min, kNow + 1h}));
  EXPECT_EQ(due_times(kNow, kNow).newest(kNow, kNow + 20min, 9), (std::vector<Time>{kNow + 15min}));
  EXPECT_EQ(due_times(kNow + 1h, kNow).newest(kNow, kNow + 1h, 9), (std::vector<Time>{kNow + 1h}));
  EXPECT_EQ(due_times(kNow + 1h, kNow).newest(kNow, kNow + 59min, 9), std::vector<Time>());
}

TEST(ScheduleRules, TheIdOfAnOccurrenceFollowsFromNameVersionAndDueTime) {
  std::set<JobId> ids;
  for (const char* name : {"a", "b", "ab"}) {
    for (std::uint32_t version = 1; version <= 100; ++version) {
      for (const Time due : {kNow, kNow + 1ms, kNow + 1s}) ids.insert(occurrence_id(name, version, due));
    }
  }
  EXPECT_EQ(ids.size(), 900u);
  EXPECT_EQ(occurrence_id("a", 1, kNow), occurrence_id("a", 1, kNow));
  EXPECT_EQ(occurrence_id("a", 1, kNow).to_string()[14], '8');
  EXPECT_LT(occurrence_id("z", 9, kNow), occurrence_id("a", 1, kNow + 1ms));
}

TEST(ScheduleRules, JitterFollowsFromTheIdAndFillsItsRange) {
  Milliseconds least = 1h, most = 0h;
  for (int i = 0; i < 1000; ++i) {
    const JobId id = occurrence_id("a", 1, kNow + std::chrono::seconds(i));
    EXPECT_EQ(jitter_of(id, 0ms), 0ms);
    EXPECT_EQ(jitter_of(id, 60s), jitter_of(id, 60s));
    least = std::min(least, jitter_of(id, 60s)), most = std::max(most, jitter_of(id, 60s));
  }
  EXPECT_GE(least, 0ms);
  EXPECT_LE(most, 60s);
  EXPECT_LT(least, 5s);
  EXPECT_GT(most, 55s);
}

TEST(ScheduleRules, AnOccurrenceSaysForWhatItWasMade) {
  Schedule schedule = good_schedule();
  schedule.job.headers = {{"tenant", "7"}};
  schedule.jitter = 10s;
  const Job job = scheduled_job(schedule, 3, kNow);
  EXPECT_EQ(job.id, occurrence_id("report", 3, kNow));
  EXPECT_EQ(job.due, kNow + jitter_of(job.id, 10s));
  EXPECT_EQ(job.headers,
            (Headers{{"tenant", "7"}, {"bide-schedule", "report"}, {"bide-schedule-due", "2026-11-19T10:00:00.000Z"}}));
  EXPECT_TRUE(scheduled_job(schedule, 3, {}).id.is_nil());
}

}  // namespace
}  // namespace bide::core
