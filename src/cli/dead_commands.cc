// bide dead: the jobs that wait for a human.

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "cli/ask.h"
#include "cli/command_groups.h"
#include "cli/job_selection.h"
#include "cli/job_text.h"
#include "cli/open_store.h"
#include "cli/replay.h"
#include "cli/statuses.h"

namespace bide::cli {

namespace {

constexpr std::size_t kNoLimit = 1'000'000'000;

std::vector<JobInfo> dead_jobs(Client& client, const Invocation& call, std::size_t otherwise) {
  JobFilter filter = filter_of(call);
  filter.states = {JobState::kDead};
  const auto most = static_cast<std::int64_t>(otherwise);
  const std::int64_t limit = call.number(kLimitFlag.name, most, 1, static_cast<std::int64_t>(kNoLimit));
  return list_all(client.inspector(), filter, static_cast<std::size_t>(limit));
}

// By id, by filter, or all of them when that was said.
std::vector<JobInfo> chosen(Client& client, const Invocation& call) {
  if (call.arguments().empty()) {
    if (!has_filter(call) && !call.has("--all")) {
      fail_usage("which ones? Give ids, a filter such as --kind, or --all");
    }
    return dead_jobs(client, call, kNoLimit);
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
  const std::vector<JobInfo> jobs = dead_jobs(client, call, 50);
  if (call.json()) {
    JsonArray array;
    for (const JobInfo& info : jobs) array.add(to_json(info));
    std::puts(JsonObject().add("jobs", array).text().c_str());
  } else {
    std::fputs(jobs.empty() ? "no dead jobs\n" : job_table(jobs, now()).c_str(), stdout);
  }
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
                        .rate = static_cast<int>(call.number("--rate", 0, 0, 1'000'000)),
                        .canary = static_cast<std::size_t>(call.number("--canary", 0, 0, 10'000)),
                        .timeout = call.duration("--timeout").value_or(std::chrono::seconds(30))};
  Client client = open_client(call, Missing::kRefuse);
  const std::vector<JobInfo> jobs = chosen(client, call);
  if (call.has(kDryRunFlag.name)) return print_plan(call, jobs);
  return replay_jobs(client, call, jobs, plan);
}

int remove(const Invocation& call) {
  Client client = open_client(call, Missing::kRefuse);
  const std::vector<JobInfo> jobs = chosen(client, call);
  if (jobs.empty()) {
    std::puts(call.json() ? R"({"jobs":[]})" : "no dead jobs match");
    return kOk;
  }
  confirm(call, "delete " + std::to_string(jobs.size()) + " dead jobs for good");
  std::vector<JobId> ids;
  for (const JobInfo& info : jobs) ids.push_back(info.job.id);
  return print_statuses(call, "deleted", ids, ask<std::vector<Status>>([&](auto done) {
                          client.inspector().cancel(ids, std::move(done));
                        }));
}

int export_all(const Invocation& call) {
  Client client = open_client(call, Missing::kRefuse);
  for (const JobInfo& info : dead_jobs(client, call, kNoLimit)) std::puts(to_json(info).text().c_str());
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
      {.path = "dead list", .summary = "List dead jobs, newest first", .flags = with_filters({kJsonFlag}), .run = list},
      {.path = "dead show",
       .summary = "Show everything about one dead job",
       .arguments = {{"ID", "of the job"}},
       .flags = {kUrlFlag, kJsonFlag},
       .run = show},
      {.path = "dead replay",
       .summary = "Put dead jobs back, with a fresh budget of attempts",
       .details = "With --canary N it replays N of them first, waits until they have finished, and goes on only when\n"
                  "none of them has died again.",
       .arguments = {kIds},
       .flags = with_filters({kAll,
                              {"--keep-attempts", "", "keep the old counters: the budget is not fresh"},
                              {"--rate", "N", "so many a second: the later ones get later due times"},
                              {"--canary", "N", "try with so many first"},
                              {"--timeout", "DURATION", "how long to wait for the canaries; default: 30s"},
                              kDryRunFlag,
                              kJsonFlag}),
       .run = replay},
      {.path = "dead delete",
       .summary = "Delete dead jobs for good",
       .arguments = {kIds},
       .flags = with_filters({kAll, kYesFlag, kJsonFlag}),
       .run = remove},
      {.path = "dead export",
       .summary = "Write dead jobs to stdout, one JSON object a line",
       .flags = with_filters({}),
       .run = export_all},
  };
}

}  // namespace bide::cli
