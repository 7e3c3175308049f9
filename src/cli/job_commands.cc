// bide job: looking at single jobs and putting them right.

#include <algorithm>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
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
#include "core/quote.h"
#include "core/time_text.h"
#include "wire/edit_json.h"

namespace bide::cli {

namespace {

constexpr Flag kPageFlag = {"--limit", "N", "jobs on a page, 1 to 1000; default: 50"};
constexpr Argument kIdArgument = {"ID", "of the job"};
constexpr Argument kIdsArgument = {"ID", "of the job; several are fine", false, true};
constexpr Argument kMaybeIdsArgument = {"ID", "of the job; without any, the flags choose", true, true};
constexpr Flag kStateFlag = {"--state", "STATE", "scheduled, ready, waiting, running, done or dead; may be given several times", true};

// Of the commands that act on everything that matches.
std::vector<Flag> with_matching(std::vector<Flag> flags) {
  flags.insert(flags.end(), kFilterFlags.begin(), kFilterFlags.end());
  const auto others = {kStateFlag, Flag{"--all", "", "everything that waits"}, kMostFlag, kDryRunFlag, kYesFlag, kUrlFlag, kJsonFlag};
  flags.insert(flags.end(), others.begin(), others.end());
  return flags;
}

std::vector<Flag> list_flags() {
  std::vector<Flag> flags = {kStateFlag};
  flags.insert(flags.end(), kFilterFlags.begin(), kFilterFlags.end());
  const auto others = {kPageFlag, kCursorFlag, kUrlFlag, kJsonFlag};
  flags.insert(flags.end(), others.begin(), others.end());
  return flags;
}

// The broker sorts each part by itself; its cursors go behind the part's name.
struct Part {
  std::string_view name;
  std::vector<JobState> states;
};

std::vector<Part> parts_of(const JobFilter& filter) {
  std::vector<Part> parts = {{"live.", {JobState::kScheduled, JobState::kReady, JobState::kWaiting, JobState::kRunning}},
                             {"finished.", {JobState::kDone, JobState::kDead}}};
  if (filter.states.empty()) return parts;
  for (Part& part : parts) {
    std::erase_if(part.states, [&](JobState state) {
      return std::find(filter.states.begin(), filter.states.end(), state) == filter.states.end();
    });
  }
  std::erase_if(parts, [](const Part& part) { return part.states.empty(); });
  return parts;
}

JobPage page_of(const Client& client, JobFilter filter, const Part& part, std::string cursor, std::size_t limit) {
  filter.states = part.states;
  return list_page(client, filter, std::move(cursor), limit);
}

// A page of jobs in the order people expect: what is still to come first, next due first; then what is finished, newest
// first. `cursor` is empty, or the `next` of the page before.
JobPage page_at(const Client& client, const JobFilter& filter, const std::string& cursor, std::size_t limit) {
  const std::vector<Part> parts = parts_of(filter);
  auto part = parts.begin();
  std::string inside;
  if (!cursor.empty()) {
    part = std::find_if(parts.begin(), parts.end(), [&](const Part& each) { return cursor.starts_with(each.name); });
    if (part == parts.end()) {
      fail_usage("--cursor: " + core::quoted(cursor) + " is not one that was given out for these flags");
    }
    inside = cursor.substr(part->name.size());
  }
  JobPage page;
  for (; part != parts.end(); ++part) {
    if (page.jobs.size() == limit) {
      if (!page_of(client, filter, *part, "", 1).jobs.empty()) page.next = part->name;
      break;
    }
    JobPage more = page_of(client, filter, *part, std::exchange(inside, {}), limit - page.jobs.size());
    std::move(more.jobs.begin(), more.jobs.end(), std::back_inserter(page.jobs));
    if (!more.next.empty()) {
      page.next = std::string(part->name) + more.next;
      break;
    }
  }
  return page;
}

int list_jobs(const Invocation& call) {
  JobFilter filter = filter_of(call);
  for (const std::string& state : call.values("--state")) filter.states.push_back(parse_state(state));
  const auto limit = static_cast<std::size_t>(call.number(kPageFlag.name, 50, 1, 1000));
  Client client = open_client(call, Missing::kRefuse);
  filter.bodies = call.json();
  print_page(call, page_at(client, filter, call.value_or(kCursorFlag.name, ""), limit), "no jobs match");
  return kOk;
}

int show_job(const Invocation& call) {
  const JobId id = call.job_id(0);
  Client client = open_client(call, Missing::kRefuse);
  const JobInfo info = take(client.find(id));
  print(call, job_json(info), job_text(info, now()));
  return kOk;
}

int explain(const Invocation& call) {
  const JobId id = call.job_id(0);
  Client client = open_client(call, Missing::kRefuse);
  const Explanation why = ask<Explanation>([&](auto done) { client.inspector().explain(id, std::move(done)); });
  print(call, JsonObject().add("id", id).add("code", why.code).add("text", why.text), for_people(why.text) + "\n");
  return kOk;
}

int wait_for(const Invocation& call) {
  const JobId id = call.job_id(0);
  const Milliseconds timeout = timeout_of(call);
  return wait_and_print(open_client(call, Missing::kRefuse), id, timeout, call.json());
}

int retry(const Invocation& call) {
  const std::vector<JobId> ids = call.job_ids();
  Client client = open_client(call, Missing::kRefuse);
  const ReplayOptions options{.keep_attempts = call.has("--keep-attempts"), .delay = Milliseconds(0)};
  return print_statuses(call, "replayed", ids, ask<std::vector<Status>>([&](auto done) {
                          client.inspector().replay(ids, options, std::move(done));
                        }));
}

// What matches the filter, for cancel and reschedule. Without --state it is these: a running attempt is meant only when that
// is said.
JobFilter filter_of_waiting(const Invocation& call, std::vector<JobState> usual) {
  if (!has_filter(call) && call.values("--state").empty() && !call.has("--all")) {
    fail_usage("which ones? Give ids, a filter such as --kind, or --all for everything that waits");
  }
  JobFilter filter = filter_of(call);
  for (const std::string& state : call.values("--state")) filter.states.push_back(parse_state(state));
  if (filter.states.empty()) filter.states = std::move(usual);
  return filter;
}

int cancel(const Invocation& call) {
  if (call.arguments().empty()) {
    const JobFilter filter = filter_of_waiting(call, {JobState::kScheduled, JobState::kReady, JobState::kWaiting});
    Client client = open_client(call, Missing::kRefuse);
    // With one state, only those that are still in it.
    const CancelOptions options{.state = filter.states.size() == 1 ? std::optional(filter.states[0]) : std::nullopt};
    return change_matching(call, client, {filter}, {"cancel", "cancelled"}, [&](const std::vector<JobId>& ids) {
      return ask<std::vector<Status>>([&](auto done) { client.inspector().cancel(ids, options, std::move(done)); });
    });
  }
  const std::vector<JobId> ids = call.job_ids();
  Client client = open_client(call, Missing::kRefuse);
  return print_statuses(call, "cancelled", ids, ask<std::vector<Status>>([&](auto done) {
                          client.inspector().cancel(ids, {}, std::move(done));
                        }));
}

// All of them under way at once; what became of each, in order.
std::vector<Status> reschedule_all(const Client& client, const std::vector<JobId>& ids, Time due) {
  std::vector<std::future<Status>> answers;
  for (const JobId& id : ids) {
    auto answer = std::make_shared<std::promise<Status>>();
    answers.push_back(answer->get_future());
    client.inspector().reschedule(id, due, [answer](Status status) { answer->set_value(std::move(status)); });
  }
  std::vector<Status> statuses;
  for (auto& answer : answers) statuses.push_back(answer.get());
  return statuses;
}

// By --due or --delay.
std::optional<Time> due_of(const Invocation& call, Warnings& warnings) {
  if (call.has("--due") && call.has("--delay")) fail_usage("--delay and --due: give one of them, not both");
  const auto delay = call.duration("--delay");
  const auto due = delay ? now() + *delay : call.time("--due");
  if (due && (*due > now() + Limits::kDelay || *due < now() - Limits::kDelay)) {
    fail_usage("--due: " + core::format_time(*due) + " is too far away; allowed: within 100 years of now");
  }
  if (due && *due < now()) warnings.add("--due is in the past: the job runs now");
  return due;
}

int edit(const Invocation& call) {
  const JobId id = call.job_id(0);
  Warnings warnings(call.json());
  JobEdit edit{.content_type = call.value("--content-type"), .queue = call.value("--queue"), .retry = retry_of(call),
               .time_limit = call.duration("--time-limit"), .due = due_of(call, warnings)};
  if (const auto body = call.value("--body")) edit.body = read_body(*body);
  if (call.has("--header") && call.has("--no-headers")) fail_usage("--header and --no-headers: give one of them, not both");
  if (call.has("--header") || call.has("--no-headers")) edit.headers = headers_of(call);
  if (call.has("--priority")) edit.priority = static_cast<int>(call.number("--priority", 0, -100, 100));
  check_job(wire::edited(edit), now());
  if (wire::is_empty(edit)) fail_usage("what is to be different? Give --body, --queue or another flag");
  Client client = open_client(call, Missing::kRefuse);
  const auto changed = [&](auto done) {
    // So much can brokers do, too, that cannot change the rest.
    if (wire::is_reschedule(edit)) return client.inspector().reschedule(id, *edit.due, std::move(done));
    client.inspector().edit(id, edit, std::move(done));
  };
  return print_statuses(call, "edited", {id}, {wait<void>(changed)}, &warnings);
}

int reschedule(const Invocation& call) {
  Warnings warnings(call.json());
  const auto given = due_of(call, warnings);
  if (!given) fail_usage("give one of --due and --delay");
  const Time due = *given;
  if (call.arguments().empty()) {
    const JobFilter filter = filter_of_waiting(call, {JobState::kScheduled, JobState::kReady});
    Client client = open_client(call, Missing::kRefuse);
    return change_matching(call, client, {filter}, {"reschedule", "rescheduled"},
                           [&](const std::vector<JobId>& ids) { return reschedule_all(client, ids, due); });
  }
  const std::vector<JobId> ids = call.job_ids();
  Client client = open_client(call, Missing::kRefuse);
  return print_statuses(call, "rescheduled", ids, reschedule_all(client, ids, due), &warnings);
}

}  // namespace

std::vector<Command> job_commands() {
  return {
      {.path = "job list",
       .summary = "List jobs, next due first, then dead and done ones, newest first",
       .flags = list_flags(),
       .run = list_jobs},
      {.path = "job show",
       .summary = "Show everything about one job",
       .arguments = {kIdArgument},
       .flags = {kUrlFlag, kJsonFlag},
       .run = show_job},
      {.path = "job explain",
       .summary = "Say the one reason why a job is not running",
       .arguments = {kIdArgument},
       .flags = {kUrlFlag, kJsonFlag},
       .run = explain},
      {.path = "job wait",
       .summary = "Wait until a job is done or dead, and print its result",
       .arguments = {kIdArgument},
       .flags = {kTimeoutFlag, kUrlFlag, kJsonFlag},
       .run = wait_for},
      {.path = "job retry",
       .summary = "Put dead jobs back, with a fresh budget of attempts",
       .arguments = {kIdsArgument},
       .flags = {{"--keep-attempts", "", "keep the old counters: the budget is not fresh"}, kUrlFlag, kJsonFlag},
       .run = retry},
      {.path = "job cancel",
       .summary = "Take jobs out; a running attempt is told to stop",
       .details = "Without ids it takes out the scheduled, ready and waiting jobs that match, after asking, or those of --state.",
       .arguments = {kMaybeIdsArgument},
       .flags = with_matching({}),
       .run = cancel},
      {.path = "job edit",
       .summary = "Change a job that waits or is dead: body, headers, queue, rules, due time",
       .details = "What no flag names stays as it is. A job that runs meanwhile is not changed.",
       .arguments = {kIdArgument},
       .flags = {{"--body", "BODY", "the text itself; - for stdin; @FILE for a file"},
                 {"--content-type", "TYPE", "of the body"},
                 {"--header", "NAME=VALUE", "in place of all that it has; may be given several times", true},
                 {"--no-headers", "", "it has none any more"},
                 {"--queue", "NAME", "the line to wait in"},
                 {"--priority", "N", "-100 to 100; higher runs first"},
                 {"--retry", "POLICY", "as for bide enqueue"},
                 {"--time-limit", "DURATION", "time limit of one attempt, 1ms to 30d"},
                 {"--due", "TIME", "the new time: 2026-01-02T03:04:05Z"},
                 {"--delay", "DURATION", "or so long from now"},
                 kUrlFlag,
                 kJsonFlag},
       .run = edit},
      {.path = "job reschedule",
       .summary = "Give waiting jobs another due time",
       .details = "Without ids it is given to everything that waits and matches, after asking.",
       .arguments = {kMaybeIdsArgument},
       .flags = with_matching({{"--due", "TIME", "the new time: 2026-01-02T03:04:05Z"},
                               {"--delay", "DURATION", "or so long from now"}}),
       .run = reschedule},
  };
}

}  // namespace bide::cli
