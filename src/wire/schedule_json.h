// Schedules as JSON.
//
//   put       {"cron":"30 7 * * mon-fri","zone":"Europe/Berlin","job":{"kind":"report"},"missed":"once","overlap":"skip"}
//             or {"every":"15m","anchor":"2026-01-01T00:00:00Z","job":{...}}; the name is in the path
//   answer    {"name":"report","created":true,"changed":false,"next":"2026-01-02T06:30:00.000Z"}
//   schedule  what was put, and {"version":1,"paused":false,"next":"...","last":[{"due":"...","job":"...","state":"done"}]}
//   times     {"text":"at 07:30 on ...","times":["2026-01-02T06:30:00.000Z", ...]}
//
// The job is as for enqueuing (wire/job_json.h), without id, delay and due.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/schedule.h"
#include "wire/fields.h"
#include "wire/problem.h"

namespace bide::wire {

// When an expression is next true.
struct ScheduleTimes {
  std::string text = {};  // For people.
  std::vector<Time> times = {};
};

// Its name comes from elsewhere and is in `schedule`. Checked by core's rules, but the zone, which only a broker knows. A job with a callback and without a queue goes to `callback_queue`.
std::optional<Problem> read_schedule(std::string_view body, Time now, std::string_view callback_queue, Schedule& schedule);
std::string schedule_request_json(const Schedule& schedule);

std::string put_schedule_json(std::string_view name, const PutSchedule& put);
Result<PutSchedule> read_put_schedule(std::string_view body);

std::string schedule_json(const ScheduleInfo& info);
std::string schedules_json(const std::vector<ScheduleInfo>& infos);
Result<std::vector<ScheduleInfo>> read_schedules(std::string_view body);

std::string schedule_run_json(std::string_view name, const JobId& job);
Result<JobId> read_schedule_run(std::string_view body);

// ?cron=30 7 * * *&zone=Europe/Berlin or ?every=15m&anchor=...; and limit, which is 5 unless said.
struct TimesRequest {
  Schedule schedule = {};
  std::size_t limit = 5;  // 1 to 1000.
};
std::optional<Problem> read_times_query(const std::map<std::string, std::string>& query, Time now, TimesRequest& request);
std::string schedule_times_json(const ScheduleTimes& times);

}  // namespace bide::wire
