#include "cli/replay.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "cli/ask.h"
#include "cli/json.h"
#include "cli/statuses.h"
#include "cli/table.h"

namespace bide::cli {

namespace {

constexpr std::size_t kBatch = 1000;

std::vector<Status> replay_some(Client& client, const std::vector<JobId>& ids, const ReplayPlan& plan,
                                Milliseconds delay) {
  const ReplayOptions options{.keep_attempts = plan.keep_attempts, .delay = delay};
  return ask<std::vector<Status>>([&](auto done) { client.inspector().replay(ids, options, std::move(done)); });
}

void wait_for_canaries(const Client& client, const std::vector<JobId>& ids, Milliseconds timeout) {
  for (const JobId& id : ids) {
    const auto info = client.wait_for(id, timeout);
    if (!info) {
      throw Failure{kTryAgain, "stopped after " + std::to_string(ids.size()) + " canaries, the rest stays dead: " +
                                   info.error().message};
    }
    if (info->state != JobState::kDead) continue;
    const std::string error = info->history.empty() ? "" : ": " + info->history.back().text;
    throw Failure{kJobFailed, "stopped after " + std::to_string(ids.size()) +
                                  " canaries, the rest stays dead: job " + id.to_string() + " died again" + error};
  }
}

}  // namespace

int replay_jobs(Client& client, const Invocation& call, const std::vector<JobInfo>& jobs, const ReplayPlan& plan) {
  std::vector<JobId> ids;
  for (const JobInfo& info : jobs) ids.push_back(info.job.id);
  std::vector<Status> statuses;
  const std::size_t canaries = std::min(plan.canary, ids.size());
  if (canaries > 0) {
    const std::vector<JobId> first(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(canaries));
    statuses = replay_some(client, first, plan, Milliseconds(0));
    wait_for_canaries(client, first, plan.timeout);
  }
  const std::size_t step = plan.rate > 0 ? static_cast<std::size_t>(plan.rate) : kBatch;
  Milliseconds delay{0};
  for (std::size_t from = canaries; from < ids.size(); from += step) {
    const std::size_t to = std::min(ids.size(), from + step);
    const std::vector<JobId> some(ids.begin() + static_cast<std::ptrdiff_t>(from),
                                  ids.begin() + static_cast<std::ptrdiff_t>(to));
    for (Status& status : replay_some(client, some, plan, delay)) statuses.push_back(std::move(status));
    if (plan.rate > 0) delay += std::chrono::seconds(1);
  }
  if (ids.empty() && !call.json()) std::puts("no dead jobs match");
  return print_statuses(call, "replayed", ids, statuses);
}

int print_plan(const Invocation& call, const std::vector<JobInfo>& jobs) {
  std::map<std::string, std::uint64_t> kinds;
  for (const JobInfo& info : jobs) ++kinds[info.job.kind];
  if (call.json()) {
    JsonObject by_kind;
    for (const auto& [kind, count] : kinds) by_kind.add(kind, count);
    std::puts(JsonObject().add("would_replay", jobs.size()).add("by_kind", by_kind).text().c_str());
    return kOk;
  }
  std::printf("would replay %zu jobs\n", jobs.size());
  Table table;
  for (const auto& [kind, count] : kinds) table.row({"  " + kind, std::to_string(count)});
  std::fputs(table.text().c_str(), stdout);
  return kOk;
}

}  // namespace bide::cli
