// bide schedule.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/job_flags.h"
#include "cli/jobs.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "core/did_you_mean.h"
#include "core/duration.h"
#include "core/enums.h"
#include "core/quote.h"
#include "core/schedule_rules.h"
#include "core/schedule_times.h"
#include "core/time_text.h"
#include "platform/zone_files.h"
#include "wire/schedule_json.h"

namespace bide::cli {

namespace {

constexpr Argument kNameArgument = {"NAME", "of the schedule"};
constexpr Flag kCronFlag = {"--cron", "EXPRESSION",
                            "minute, hour, day of the month, month, day of the week, and seconds in front if wanted: "
                            "'30 7 * * mon-fri'; or @hourly, @daily, @weekly, @monthly, @yearly"};
constexpr Flag kZoneFlag = {"--zone", "ZONE", "of the tz database, for --cron: Europe/Berlin; default: UTC"};
constexpr Flag kEveryFlag = {"--every", "DURATION", "or at fixed distances, from 1s: 15m"};
constexpr Flag kAnchorFlag = {"--anchor", "TIME", "with --every: whole multiples from here; default: from when it was put"};
constexpr std::size_t kShownTimes = 5;
constexpr std::int64_t kMostTimes = 1000;

template <class E>
E one_of(const Invocation& call, std::string_view flag, E otherwise) {
  const auto text = call.value(flag);
  if (!text) return otherwise;
  std::vector<std::string_view> names = wire::names_until<core::kLast<E>>();
  const auto found = std::find(names.begin(), names.end(), *text);
  if (found != names.end()) return static_cast<E>(found - names.begin());
  std::string list;
  for (const std::string_view name : names) list += (list.empty() ? "" : ", ") + std::string(name);
  fail_usage(std::string(flag) + ": unknown " + core::quoted(*text) + "; allowed: " + list + core::did_you_mean(*text, names));
}

// When it is due, by the flags above.
Schedule schedule_times_of(const Invocation& call) {
  if (call.has("--cron") == call.has("--every")) fail_usage("give one of --cron EXPRESSION and --every DURATION");
  if (call.has("--zone") && !call.has("--cron")) fail_usage("--zone belongs to --cron; --every does not care for zones");
  if (call.has("--anchor") && !call.has("--every")) fail_usage("--anchor belongs to --every; a cron expression needs none");
  Schedule schedule;
  schedule.cron = call.value_or("--cron", "");
  if (call.has("--cron") && schedule.cron.empty()) fail_usage("--cron: the expression is empty; give one, such as '30 7 * * *'");
  schedule.zone = call.value_or("--zone", schedule.zone);
  schedule.every = call.duration("--every").value_or(schedule.every);
  schedule.anchor = call.time("--anchor");
  return schedule;
}

// The first problem, named after its flag.
void check_flags(const Schedule& schedule, core::TimeZones& zones) {
  const auto problem = core::find_problem(schedule, now(), &zones);
  if (!problem) return;
  std::string_view field = problem->field;
  if (field.starts_with("job.")) field.remove_prefix(4);
  throw Failure{kUsage, (field == "name" ? "NAME" : flag_of(field)) + ": " + problem->message, std::string(problem->code)};
}

core::TimeZones system_zones() {
  return core::TimeZones(
      {.read = platform::read_zone_file, .version = platform::zone_file_version, .names = platform::zone_file_names});
}

std::vector<ScheduleInfo> schedules_of(const Client& client) {
  return ask<std::vector<ScheduleInfo>>([&](auto done) { client.inspector().schedules(std::move(done)); });
}

// Throws Failure with the nearest name.
ScheduleInfo schedule_of(const Client& client, const std::string& name) {
  std::vector<ScheduleInfo> infos = schedules_of(client);
  std::vector<std::string_view> names;
  for (ScheduleInfo& info : infos) {
    if (info.schedule.name == name) return std::move(info);
    names.push_back(info.schedule.name);
  }
  throw Failure{kNotThere, "there is no schedule " + core::quoted(name) + core::did_you_mean(name, names)};
}

int put_schedule(const Invocation& call) {
  Schedule schedule = schedule_times_of(call);
  schedule.name = call.argument(0);
  schedule.owner = call.value_or("--owner", "");
  schedule.job = make_job(call.argument(1), read_body(call.argument(2)), enqueue_options(call));
  schedule.missed = one_of(call, "--missed", schedule.missed);
  schedule.most_missed = static_cast<std::uint32_t>(call.number("--most-missed", schedule.most_missed, 1, core::kMostMissed));
  schedule.overlap = one_of(call, "--overlap", schedule.overlap);
  schedule.jitter = call.duration("--jitter").value_or(schedule.jitter);
  core::TimeZones zones = system_zones();
  // Through a server it is the server's data that count.
  const bool local = !url_of(call).starts_with("http");
  if (local) check_flags(schedule, zones);
  const Client client = open_client(call, Missing::kCreate);
  const auto answer = ask<PutSchedule>([&](auto done) { client.inspector().put_schedule(schedule, std::move(done)); });
  JsonObject json;
  json.add("name", schedule.name).add("created", answer.created).add("changed", answer.changed).add("next", answer.next);
  const std::string what = answer.created ? "is made" : answer.changed ? "is changed" : "was so already";
  print(call, json,
        "schedule " + schedule.name + " " + what + ": " + for_people(core::describe(schedule)) +
            (answer.next ? "; next " + core::format_time(*answer.next) + ", " + relative_time(*answer.next, now()) : "") + "\n");
  return kOk;
}

std::string when_text(const Schedule& schedule) {
  if (schedule.cron.empty()) return "every " + core::format_duration(schedule.every);
  return schedule.cron + (schedule.zone == Schedule().zone ? "" : " " + schedule.zone);
}

std::string occurrence_text(const Occurrence& occurrence) {
  if (!occurrence.note.empty()) return occurrence.note;
  return occurrence.state ? std::string(to_string(*occurrence.state)) : "forgotten";
}

int list_schedules(const Invocation& call) {
  const Client client = open_client(call, Missing::kRefuse);
  const std::vector<ScheduleInfo> infos = schedules_of(client);
  Table table({"name", "when", "next", "kind", "queue", "last", ""});
  for (const ScheduleInfo& info : infos) {
    const Schedule& schedule = info.schedule;
    table.row({schedule.name, when_text(schedule), info.next ? relative_time(*info.next, now()) : "-", schedule.job.kind,
               schedule.job.queue,
               info.last.empty() ? "-" : shortened(occurrence_text(info.last.front()), 32) + ", " + relative_time(info.last.front().due, now()),
               info.paused ? "paused" : ""});
  }
  print(call, JsonObject().add("schedules", JsonArray(infos)),
        infos.empty() ? "no schedules; one is made by, for example: bide schedule put report --cron @daily send_report\n"
                      : table.text());
  return kOk;
}

std::string schedule_text(const ScheduleInfo& info) {
  const Schedule& schedule = info.schedule;
  Table table;
  const auto fact = [&](std::string_view name, const std::string& text) { table.row({std::string(name), text}); };
  const auto moment = [](Time time) { return core::format_time(time) + ", " + relative_time(time, now()); };
  fact("name", schedule.name);
  fact("when", core::describe(schedule));
  if (!schedule.cron.empty()) fact("cron", schedule.cron);
  if (schedule.anchor) fact("anchor", core::format_time(*schedule.anchor));
  fact("next", info.paused ? "paused" : info.next ? moment(*info.next) : "never");
  if (!schedule.owner.empty()) fact("owner", schedule.owner);
  fact("kind", schedule.job.kind);
  fact("queue", schedule.job.queue);
  if (!schedule.job.group.empty()) fact("group", schedule.job.group);
  if (!schedule.job.body.empty()) fact("body", core::quoted(schedule.job.body));
  fact("retry", schedule.job.retry.to_string());
  fact("missed", std::string(to_string(schedule.missed)) +
                     (schedule.missed == Missed::kAll ? ", at most " + std::to_string(schedule.most_missed) : ""));
  fact("overlap", std::string(to_string(schedule.overlap)));
  if (schedule.jitter.count() != 0) fact("jitter", core::format_duration(schedule.jitter));
  fact("version", std::to_string(info.version));
  std::string text = table.text();
  if (info.last.empty()) return text;
  Table last({"due", "became", "job"});
  for (const Occurrence& each : info.last) {
    last.row({core::format_time(each.due), occurrence_text(each), each.job.is_nil() ? "" : each.job.to_string()});
  }
  return text + "\n" + last.text();
}

int show_schedule(const Invocation& call) {
  const ScheduleInfo info = schedule_of(open_client(call, Missing::kRefuse), call.argument(0));
  print(call, JsonObject().add("schedule", info), schedule_text(info));
  return kOk;
}

int show_next(const Invocation& call) {
  const auto count = static_cast<std::size_t>(call.number(kMostFlag.name, kShownTimes, 1, kMostTimes));
  core::TimeZones zones = system_zones();
  ScheduleInfo info;
  if (call.arguments().empty()) {
    info.schedule = schedule_times_of(call);
    // Only when it is due is of interest.
    Schedule any = info.schedule;
    any.name = any.job.kind = "any";
    check_flags(any, zones);
  } else {
    for (const Flag& flag : {kCronFlag, kZoneFlag, kEveryFlag, kAnchorFlag}) {
      if (call.has(flag.name)) fail_usage("NAME and " + std::string(flag.name) + ": give one of them, not both");
    }
    info = schedule_of(open_client(call, Missing::kRefuse), call.argument(0));
  }
  const Time moment = now();
  const auto times = take(core::next_times(info.schedule, info.next, moment, count, zones));
  std::string text = for_people(core::describe(info.schedule)) + "\n";
  if (info.paused) text += "paused: no jobs are made until it is resumed\n";
  Table table;
  for (const Time time : times) {
    std::vector<std::string> cells = {"  " + core::format_time(time), relative_time(time, moment)};
    if (!info.schedule.cron.empty() && info.schedule.zone != Schedule().zone) {
      cells.insert(cells.begin() + 1, take(core::local_text(time, info.schedule.zone, zones)));
    }
    table.row(std::move(cells));
  }
  print(call, JsonObject().add("text", core::describe(info.schedule)).add("paused", info.paused).add("times", JsonArray(times)),
        text + table.text());
  return kOk;
}

int set_schedule_paused(const Invocation& call, bool paused) {
  const std::string name = call.argument(0);
  const Client client = open_client(call, Missing::kRefuse);
  (void)schedule_of(client, name);
  ask<void>([&](auto done) { client.inspector().pause_schedule(name, paused, std::move(done)); });
  print(call, JsonObject().add("name", name).add("paused", paused),
        "schedule " + name + " is " + (paused ? "paused" : "resumed") + "\n");
  return kOk;
}

int pause_schedule(const Invocation& call) { return set_schedule_paused(call, true); }
int resume_schedule(const Invocation& call) { return set_schedule_paused(call, false); }

int run_now(const Invocation& call) {
  const std::string name = call.argument(0);
  const Client client = open_client(call, Missing::kRefuse);
  (void)schedule_of(client, name);
  const auto job = ask<JobId>([&](auto done) { client.inspector().run_schedule(name, std::move(done)); });
  print(call, JsonObject().add("name", name).add("id", job), job.to_string() + "\n");
  return kOk;
}

int remove_schedule(const Invocation& call) {
  const std::string name = call.argument(0);
  const Client client = open_client(call, Missing::kRefuse);
  (void)schedule_of(client, name);
  ask<void>([&](auto done) { client.inspector().remove_schedule(name, std::move(done)); });
  print(call, JsonObject().add("name", name).add("removed", true),
        "schedule " + name + " is removed; jobs that it has made stay\n");
  return kOk;
}

}  // namespace

std::vector<Command> schedule_commands() {
  const auto of_one = [](std::string_view path, std::string_view summary, int (*run)(const Invocation&)) {
    return Command{
        .path = path, .summary = summary, .arguments = {kNameArgument}, .flags = {kUrlFlag, kJsonFlag}, .run = run};
  };
  return {
      {.path = "schedule put",
       .summary = "Make a job again and again, or change when and which; the same again changes nothing",
       .details =
           "Each occurrence is an ordinary job, exactly one however many processes there are. A program can put its\n"
           "schedules at every start. Times of day that do not exist, or come twice, when the clocks change: see\n"
           "docs/schedules.md; `bide schedule next` shows what an expression comes to.",
       .arguments = {kNameArgument, {"KIND", "of the jobs: chooses the handler"}, kBodyArgument},
       .flags = with_job_flags(
           {kCronFlag, kZoneFlag, kEveryFlag, kAnchorFlag,
            {"--missed", "WHAT", "of what was due while nobody was there: skip, once or all; default: once"},
            {"--most-missed", "N", "with all: the newest of them; default: 100"},
            {"--overlap", "WHAT", "when the job of the last occurrence lives on: allow, skip or queue; default: allow"},
            {"--jitter", "DURATION", "each occurrence is late by a part of this"},
            {"--owner", "NAME", "a schedule of this name that another owner has put is not changed"}, kUrlFlag,
            kJsonFlag}),
       .run = put_schedule},
      {.path = "schedule list", .summary = "List the schedules, when they are due next, and what the last came to", .flags = {kUrlFlag, kJsonFlag}, .run = list_schedules},
      of_one("schedule show", "Everything about a schedule, and its last occurrences", show_schedule),
      {.path = "schedule next",
       .summary = "Explain a schedule, or an expression without a store, and list when it is due next",
       .arguments = {{"NAME", "of a schedule; otherwise give --cron or --every", true}},
       .flags = {kCronFlag, kZoneFlag, kEveryFlag, kAnchorFlag,
                 {kMostFlag.name, kMostFlag.value, "so many times, 1 to 1000; default: 5"},
                 kUrlFlag,
                 kJsonFlag},
       .run = show_next},
      of_one("schedule pause", "Let a schedule make no jobs", pause_schedule),
      of_one("schedule resume", "Let a paused schedule make jobs again", resume_schedule),
      of_one("schedule run", "Make a job of a schedule now, beside its occurrences; prints its id", run_now),
      of_one("schedule remove", "Remove a schedule; jobs that it has made stay", remove_schedule),
  };
}

}  // namespace bide::cli
