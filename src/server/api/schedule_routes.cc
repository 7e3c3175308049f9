// Schedules: jobs that are made again and again.

#include <utility>

#include "core/quote.h"
#include "core/schedule_times.h"
#include "platform/zone_files.h"
#include "server/api/api_state.h"
#include "server/api/caller_inspector.h"
#include "wire/filter_query.h"
#include "wire/schedule_json.h"

namespace bide::server {

namespace {

void list_schedules(const State& state, const Request& request, Reply reply) {
  inspector_for(state, request.caller)
      ->schedules(answer_with<std::vector<ScheduleInfo>>(state, share(std::move(reply)), &wire::schedules_json));
}

// The one that is named, or not_found.
template <class Then>
void with_schedule(const State& state, const Request& request, Reply reply, Then then) {
  inspector_for(state, request.caller)
      ->schedules([state, name = request.captured.at("name"), then = std::move(then),
                   reply = share(std::move(reply))](const Result<std::vector<ScheduleInfo>>& infos) {
        if (!infos) return refuse(*reply, state->problem_of(infos.error()));
        for (const ScheduleInfo& info : *infos) {
          if (info.schedule.name == name) return then(info, *reply);
        }
        refuse(*reply, wire::make_problem("not_found", "there is no schedule " + core::quoted(name)));
      });
}

void show_schedule(const State& state, const Request& request, Reply reply) {
  with_schedule(state, request, std::move(reply), [](const ScheduleInfo& info, Reply& answer) {
    answer.send(json_response(200, wire::schedule_json(info)));
  });
}

void put_schedule(const State& state, const Request& request, Reply reply) {
  const std::string name = request.captured.at("name");
  Schedule schedule{.name = name};
  auto problem = wire::read_schedule(request.body, state->now(), state->options.callback_queue, schedule);
  // What is checked of a job that is enqueued.
  if (!problem) problem = find_queue_problem(request.caller, schedule.job);
  if (!problem && state->options.find_callback_problem) problem = state->options.find_callback_problem(schedule.job);
  if (problem) return refuse(reply, *problem);
  inspector_for(state, request.caller)
      ->put_schedule(std::move(schedule),
                     answer_with<PutSchedule>(state, share(std::move(reply)), [name](const PutSchedule& put) {
                       return wire::put_schedule_json(name, put);
                     }));
}

core::TimeZones system_zones() {
  return core::TimeZones(
      {.read = platform::read_zone_file, .version = platform::zone_file_version, .names = platform::zone_file_names});
}

void answer_times(const State& state, const Schedule& schedule, std::optional<Time> next, std::size_t limit, Reply& reply) {
  core::TimeZones zones = system_zones();
  auto times = core::next_times(schedule, next, state->now(), limit, zones);
  // All else was checked before.
  if (!times) return refuse(reply, wire::make_problem("unknown_zone", times.error().message, "zone"));
  reply.send(json_response(200, wire::schedule_times_json({core::describe(schedule), std::move(*times)})));
}

void show_times(const State& state, const Request& request, Reply reply) {
  std::size_t limit = wire::TimesRequest().limit;
  if (const auto found = request.query.find("limit"); found != request.query.end()) {
    if (const auto problem = wire::take_limit(found->second, limit)) return refuse(reply, *problem);
  }
  with_schedule(state, request, std::move(reply), [state, limit](const ScheduleInfo& info, Reply& answer) {
    answer_times(state, info.schedule, info.next, limit, answer);
  });
}

void explain_times(const State& state, const Request& request, Reply reply) {
  wire::TimesRequest wanted;
  if (const auto problem = wire::read_times_query(request.query, state->now(), wanted)) return refuse(reply, *problem);
  answer_times(state, wanted.schedule, std::nullopt, wanted.limit, reply);
}

// Of what was done to the schedule: its name and this.
auto done_json(const std::string& name, std::string_view what, bool value) {
  return [=] { return wire::object_text([&](wire::JsonWriter& out) { out.field("name", name).field(what, value); }); };
}

void remove_schedule(const State& state, const Request& request, Reply reply) {
  const std::string& name = request.captured.at("name");
  inspector_for(state, request.caller)
      ->remove_schedule(name, answer_with<void>(state, share(std::move(reply)), done_json(name, "removed", true)));
}

void set_schedule_paused(const State& state, const Request& request, Reply reply, bool paused) {
  const std::string& name = request.captured.at("name");
  inspector_for(state, request.caller)
      ->pause_schedule(name, paused,
                       answer_with<void>(state, share(std::move(reply)), done_json(name, "paused", paused)));
}

void run_schedule(const State& state, const Request& request, Reply reply) {
  const std::string& name = request.captured.at("name");
  inspector_for(state, request.caller)
      ->run_schedule(name, answer_with<JobId>(state, share(std::move(reply)), [name](const JobId& job) {
                       return wire::schedule_run_json(name, job);
                     }));
}

}  // namespace

void add_schedule_routes(const State& state, Routes& routes) {
  constexpr RouteChecks kInspector{.inspector = true};
  constexpr std::string_view kPattern = "/v1/schedules/{name}";
  add_route(state, routes,
            {.pattern = "/v1/schedules", .scope = Scope::kRead, .summary = "All schedules", .keeps_to_queues = true,
             .operation = {.id = "listSchedules", .answers = {{200, "Schedules"}}}},
            &list_schedules, kInspector);
  add_route(state, routes,
            {.pattern = kPattern, .scope = Scope::kRead,
             .summary = "A schedule, when it is due next, and what became of its last occurrences",
             .keeps_to_queues = true, .operation = {.id = "getSchedule", .answers = {{200, "Schedule"}}}},
            &show_schedule, kInspector);
  add_route(state, routes,
            {.method = Method::kPut, .pattern = kPattern, .scope = Scope::kWrite,
             .summary = "Make a schedule, or change it where it is different", .keeps_to_queues = true,
             .operation = {.id = "putSchedule", .request = "ScheduleRequest", .answers = {{200, "SchedulePut"}}}},
            &put_schedule, kInspector);
  add_route(state, routes,
            {.method = Method::kDelete, .pattern = kPattern, .scope = Scope::kWrite,
             .summary = "Remove a schedule; jobs that it has made stay", .keeps_to_queues = true,
             .operation = {.id = "removeSchedule", .answers = {{200, "ScheduleRemoved"}}}},
            &remove_schedule, kInspector);
  for (const bool paused : {true, false}) {
    add_route(state, routes,
              {.method = Method::kPost,
               .pattern = paused ? "/v1/schedules/{name}/pause" : "/v1/schedules/{name}/resume",
               .scope = Scope::kWrite,
               .summary = paused ? "Let a schedule make no jobs" : "Let a paused schedule make jobs again",
               .keeps_to_queues = true,
               .body_bytes = kSmallBody,
               .operation = {.id = paused ? "pauseSchedule" : "resumeSchedule", .answers = {{200, "SchedulePaused"}}}},
              [paused](const State& s, const Request& request, Reply reply) {
                set_schedule_paused(s, request, std::move(reply), paused);
              },
              kInspector);
  }
  add_route(state, routes,
            {.method = Method::kPost, .pattern = "/v1/schedules/{name}/run", .scope = Scope::kWrite,
             .summary = "A job of a schedule now, beside its occurrences", .keeps_to_queues = true,
             .body_bytes = kSmallBody, .operation = {.id = "runSchedule", .answers = {{200, "ScheduleRun"}}}},
            &run_schedule, kInspector);
  add_route(state, routes,
            {.pattern = "/v1/schedules/{name}/times", .scope = Scope::kRead, .summary = "When a schedule is due next",
             .keeps_to_queues = true,
             .operation = {.id = "getScheduleTimes", .answers = {{200, "ScheduleTimes"}}, .query = {"limit"}}},
            &show_times, kInspector);
  add_route(state, routes,
            {.pattern = "/v1/schedule-times", .scope = Scope::kRead,
             .summary = "What a cron expression says, and when it is true next", .keeps_to_queues = true,
             .operation = {.id = "explainSchedule", .answers = {{200, "ScheduleTimes"}},
                           .query = {"cron", "zone", "every", "anchor", "limit"}}},
            &explain_times);
}

}  // namespace bide::server
