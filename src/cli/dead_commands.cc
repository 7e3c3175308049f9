// bide dead: the jobs that wait for a human.

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "cli/ask.h"
#include "cli/command_groups.h"
#include "cli/job_selection.h"
#include "cli/job_text.h"
#include "cli/open_store.h"
#include "cli/replay.h"
#include "cli/statuses.h"
#include "cli/terminal.h"

namespace bide::cli {

namespace {

constexpr std::size_t kNoLimit = 1'000'000'000;
constexpr std::size_t kBatch = 1000;

JobPage dead_jobs(Client& client, const Invocation& call, std::size_t otherwise, bool bodies) {
  JobFilter filter = filter_of(call);
  filter.states = {JobState::kDead};
  filter.bodies = bodies;
  const auto most = static_cast<std::int64_t>(otherwise);
  const std::int64_t limit = call.number(kLimitFlag.name, most, 1, static_cast<std::int64_t>(kNoLimit));
  return list_all(client.inspector(), filter, static_cast<std::size_t>(limit), call.value_or(kCursorFlag.name, ""));
}

// By id, by filter, or all of them when that was said.
std::vector<JobInfo> chosen(Client& client, const Invocation& call) {
  if (call.arguments().empty()) {
    if (!has_filter(call) && !call.has("--all")) {
      fail_usage("which ones? Give ids, a filter such as --kind, or --all");
    }
    return dead_jobs(client, call, kNoLimit, false).jobs;
  }
  std::vector<JobInfo> jobs;
  for (const JobId& id : call.job_ids()) {
    JobInfo info = take(client.find(id));
    if (info.state != JobState::kDead) {
      fail_usage("job " + id.to_string() + " is not dead but " + std::string(to_string(info.state)));
    }
    jobs.push_back(std::move(info));
  }
  return jobs;
}

int list(const Invocation& call) {
  Client client = open_client(call, Missing::kRefuse);
  print_page(call, dead_jobs(client, call, 50, call.json()), "no dead jobs");
  return kOk;
}

int show(const Invocation& call) {
  const JobId id = call.job_id(0);
  Client client = open_client(call, Missing::kRefuse);
  const JobInfo info = take(client.find(id));
  if (info.state != JobState::kDead) {
    throw Failure{kNotThere, "job " + id.to_string() + " is not dead but " + std::string(to_string(info.state))};
  }
  std::fputs(call.json() ? (to_json(info).text() + "\n").c_str() : job_page(info, now()).c_str(), stdout);
  return kOk;
}

int replay(const Invocation& call) {
  const ReplayPlan plan{.keep_attempts = call.has("--keep-attempts"),
                        .rate = static_cast<int>(call.number("--rate", 0, 1, 1'000'000)),
                        .canary = static_cast<std::size_t>(call.number("--canary", 0, 1, 1000)),
                        .stop_at = static_cast<int>(call.number("--stop-at", 20, 0, 100)),
                        .timeout = call.duration("--timeout").value_or(std::chrono::seconds(30))};
  Client client = open_client(call, Missing::kRefuse);
  // Before anything is done: what becomes of the replayed ones could not be seen.
  if (const Capabilities can = client.broker().capabilities(); (plan.rate > 0 || plan.canary > 0) && !can.inspect) {
    fail_usage("--rate and --canary look at what becomes of the jobs, which this broker cannot tell; nothing was "
               "replayed: " + can.why_not);
  }
  const std::vector<JobInfo> jobs = chosen(client, call);
  if (call.has(kDryRunFlag.name)) return print_plan(call, jobs);
  return replay_jobs(client, call, jobs, plan);
}

// When they died, in case --since was meant the other way round.
std::string span_of(const std::vector<JobInfo>& jobs) {
  std::optional<Time> first, last;
  for (const JobInfo& info : jobs) {
    if (!info.finished) continue;
    first = std::min(first.value_or(*info.finished), *info.finished);
    last = std::max(last.value_or(*info.finished), *info.finished);
  }
  if (!first) return "";
  return ", which died from " + relative_time(*first, now()) + " to " + relative_time(*last, now());
}

int remove(const Invocation& call) {
  Client client = open_client(call, Missing::kRefuse);
  const std::vector<JobInfo> jobs = chosen(client, call);
  if (jobs.empty()) {
    std::puts(call.json() ? R"({"jobs":[]})" : "no dead jobs match");
    return kOk;
  }
  confirm(call, "delete " + std::to_string(jobs.size()) + " dead jobs for good" + span_of(jobs));
  std::vector<JobId> ids;
  for (const JobInfo& info : jobs) ids.push_back(info.job.id);
  StatusLine status;
  std::vector<Status> statuses;
  for (std::size_t from = 0; from < ids.size(); from += kBatch) {
    status.show(progress_bar(static_cast<double>(from) / static_cast<double>(ids.size())) + " deleting");
    const std::vector<JobId> some(ids.begin() + static_cast<std::ptrdiff_t>(from),
                                  ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), from + kBatch)));
    for (Status& each :
         ask<std::vector<Status>>([&](auto done) {
           client.inspector().cancel(some, {.state = JobState::kDead}, std::move(done));
         })) {
      statuses.push_back(std::move(each));
    }
  }
  status.clear();
  return print_statuses(call, "deleted", ids, statuses);
}

int export_all(const Invocation& call) {
  Client client = open_client(call, Missing::kRefuse);
  StatusLine status;
  status.show("reading dead jobs");
  const std::vector<JobInfo> jobs = dead_jobs(client, call, kNoLimit, true).jobs;
  status.clear();
  for (const JobInfo& info : jobs) std::puts(to_json(info).text().c_str());
  return kOk;
}

std::vector<Flag> with_filters(std::vector<Flag> flags) {
  flags.insert(flags.begin(), {kQueueFilter, kKindFilter, kErrorFilter, kSinceFilter, kUntilFilter, kLimitFlag});
  flags.push_back(kUrlFlag);
  return flags;
}

}  // namespace

std::vector<Command> dead_commands() {
  constexpr Argument kIds = {"ID", "of dead jobs; without any, the flags choose", true, true};
  constexpr Flag kAll = {"--all", "", "all dead jobs"};
  return {
      {.path = "dead list", .summary = "List dead jobs, newest first", .flags = with_filters({kCursorFlag, kJsonFlag}), .run = list},
      {.path = "dead show",
       .summary = "Show everything about one dead job",
       .arguments = {{"ID", "of the job"}},
       .flags = {kUrlFlag, kJsonFlag},
       .run = show},
      {.path = "dead replay",
       .summary = "Put dead jobs back, with a fresh budget of attempts",
       .details =
           "With --canary N it replays N of them first, waits until they have been tried, and goes on only when\n"
           "none of them failed again. With --rate N it replays N a second, keeps looking at what becomes of\n"
           "them, and stops when at least 5, and more than 20% (--stop-at), of those that have been tried\n"
           "failed again. Failed again is what is dead again, or waits for another attempt after a fault. What\n"
           "has not been replayed by then stays dead, and the exit status is 1. With neither flag all are\n"
           "replayed at once, and nobody looks. A worker must be running for any of them to be tried.",
       .arguments = {kIds},
       .flags = with_filters({kAll,
                              {"--keep-attempts", "", "keep the old counters: the budget is not fresh"},
                              {"--rate", "N", "so many a second, 1 to 1000000; default: all at once"},
                              {"--canary", "N", "try with so many first, 1 to 1000; default: none"},
                              {"--stop-at", "PERCENT", "with --rate, 0 to 100: 100 is never; default: 20"},
                              {"--timeout", "DURATION", "how long to wait for the canaries; default: 30s"},
                              kDryRunFlag,
                              kJsonFlag}),
       .run = replay},
      {.path = "dead delete",
       .summary = "Delete dead jobs for good",
       .details = "`--until 1w` deletes those that died more than a week ago; `--since 1w` those of the last week.",
       .arguments = {kIds},
       .flags = with_filters({kAll, kYesFlag, kJsonFlag}),
       .run = remove},
      {.path = "dead export",
       .summary = "Write dead jobs to stdout, one JSON object a line",
       .flags = with_filters({{"--json", "", "changes nothing: it is JSON already"}}),
       .run = export_all},
  };
}

}  // namespace bide::cli
