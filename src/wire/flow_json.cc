#include "wire/flow_json.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <set>
#include <utility>

#include "wire/answer.h"

namespace bide::wire {

namespace {

constexpr auto kFlowJobRows = std::to_array<Field<FlowJob>>({
    always<&FlowJob::id>("id"),
    always<&FlowJob::kind>("kind"),
    always<&FlowJob::queue>("queue"),
    always<&FlowJob::state>("state"),
    always<&FlowJob::after>("after").says("What it waits for, or did; also jobs that are forgotten."),
    always<&FlowJob::after_death>("after_death"),
    always<&FlowJob::due>("due"),
    always<&FlowJob::attempts>("attempts"),
    maybe<&FlowJob::progress>("progress").says("Running: how far it is."),
    maybe<&FlowJob::finished>("finished"),
    bytes<&FlowJob::error>("error").unless_empty().says("The newest."),
    base64<&FlowJob::error>("error_base64"),
});

constexpr auto kFlowRows = std::to_array<Field<FlowInfo>>({
    always<&FlowInfo::id>("id"),
    always<&FlowInfo::percent>("percent").says("Of the jobs that are remembered: done, and the reported part of running ones."),
    always<&FlowInfo::complete>("complete").says("Otherwise it has more than 10 000 jobs; the others are not counted."),
    always<&FlowInfo::counts>("counts").says("Jobs by state."),
    always<&FlowInfo::jobs>("jobs").says("Each behind those it waits for."),
});

FlowJob flow_job(const JobInfo& info) {
  return {.id = info.job.id,
          .kind = info.job.kind,
          .queue = info.job.queue,
          .state = info.state,
          .after = info.job.after,
          .after_death = info.job.after_death,
          .due = info.due,
          .attempts = info.attempts,
          .progress = info.progress,
          .finished = info.finished,
          .error = info.history.empty() ? std::string() : info.history.back().text};
}

// Each behind those it waits for; of several that could be next the one with the lowest id, which was made first.
void sort_by_order(std::vector<FlowJob>& jobs) {
  std::sort(jobs.begin(), jobs.end(), [](const FlowJob& one, const FlowJob& other) { return one.id < other.id; });
  std::map<JobId, std::size_t> places;
  for (std::size_t i = 0; i < jobs.size(); ++i) places.emplace(jobs[i].id, i);
  std::vector<std::size_t> waits_for(jobs.size(), 0);
  std::vector<std::vector<std::size_t>> successors(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (const JobId& id : std::set<JobId>(jobs[i].after.begin(), jobs[i].after.end())) {
      const auto found = places.find(id);
      if (found == places.end()) continue;  // Forgotten, or of another flow.
      successors[found->second].push_back(i);
      ++waits_for[i];
    }
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> next;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (waits_for[i] == 0) next.push(i);
  }
  std::vector<FlowJob> sorted;
  sorted.reserve(jobs.size());
  while (!next.empty()) {
    const std::size_t place = next.top();
    next.pop();
    for (const std::size_t i : successors[place]) {
      if (--waits_for[i] == 0) next.push(i);
    }
    sorted.push_back(std::move(jobs[place]));
  }
  // No broker takes jobs that wait for each other; whoever answered is not to be believed.
  if (sorted.size() == jobs.size()) jobs = std::move(sorted);
}

}  // namespace

template <>
std::span<const Field<FlowJob>> rows_of<FlowJob>() {
  return kFlowJobRows;
}
template <>
std::span<const Field<FlowInfo>> rows_of<FlowInfo>() {
  return kFlowRows;
}

FlowInfo flow_of(const JobId& id, const std::vector<JobInfo>& jobs, bool complete) {
  FlowInfo flow{.id = id, .complete = complete};
  for (int state = 0; state <= static_cast<int>(core::kLast<JobState>); ++state) {
    flow.counts[std::string(to_string(static_cast<JobState>(state)))] = 0;
  }
  double done = 0;
  for (const JobInfo& info : jobs) {
    ++flow.counts[std::string(to_string(info.state))];
    if (info.state == JobState::kDone) done += 1;
    if (info.state == JobState::kRunning && info.progress) done += std::clamp(info.progress->part, 0.0, 1.0);
    flow.jobs.push_back(flow_job(info));
  }
  // Down: 100 only when all of it is done.
  if (!jobs.empty()) flow.percent = std::floor(1000 * done / static_cast<double>(jobs.size())) / 10;
  sort_by_order(flow.jobs);
  return flow;
}

std::string flow_json(const FlowInfo& flow) { return to_json(flow); }
Result<FlowInfo> read_flow(std::string_view body) { return read_document<FlowInfo>(body); }

void add_flow_schemas(Schemas& schemas) {
  schemas.push_back({"FlowJob", object_schema({.limits = false}, kFlowJobRows)});
  schemas.push_back({"Flow", object_schema({.limits = false}, kFlowRows)});
}

}  // namespace bide::wire
