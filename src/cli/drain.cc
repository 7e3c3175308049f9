#include "cli/drain.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/ask.h"
#include "cli/job_selection.h"

namespace bide::cli {

namespace {

constexpr std::size_t kMostCounted = 1000;

// Those of the worker's queues that are there.
std::vector<QueueInfo> queues_of(const Client& client, const WorkPlan& plan) {
  auto all = ask<std::vector<QueueInfo>>([&](auto done) { client.inspector().queues(std::move(done)); });
  std::erase_if(all, [&](const QueueInfo& queue) {
    return std::none_of(plan.worker.queues.begin(), plan.worker.queues.end(),
                        [&](const WorkerQueue& mine) { return mine.name == queue.name; });
  });
  return all;
}

}  // namespace

bool Drain::has_any(const std::string& queue, const std::vector<JobState>& states) const {
  return std::any_of(plan_.kinds.begin(), plan_.kinds.end(), [&](const std::string& kind) {
    JobFilter filter;
    filter.states = states;
    filter.queue = queue;
    filter.kind = kind;
    filter.bodies = false;
    return !list_all(client_.inspector(), filter, 1).jobs.empty();
  });
}

bool Drain::has_work() const {
  for (const QueueInfo& queue : queues_of(client_, plan_)) {
    const std::uint64_t waiting = queue.paused ? 0 : queue.scheduled + queue.ready;
    if (waiting + queue.running == 0) continue;
    if (plan_.kinds.empty()) return true;
    std::vector<JobState> states = {JobState::kRunning};
    if (!queue.paused) states.insert(states.end(), {JobState::kScheduled, JobState::kReady});
    if (has_any(queue.name, states)) return true;
  }
  return false;
}

void Drain::tell_what_is_left(WorkLog& log) const {
  if (!client_.broker().capabilities().inspect) return;  // Nobody can tell which ones.
  for (const QueueInfo& queue : queues_of(client_, plan_)) {
    if (queue.paused && queue.scheduled + queue.ready > 0) {
      log.left(queue.name, "that wait, because the queue is paused", queue.scheduled + queue.ready, false);
      continue;
    }
    if (queue.scheduled + queue.ready + queue.running == 0) continue;
    JobFilter filter;
    filter.states = {JobState::kScheduled, JobState::kReady, JobState::kRunning};
    filter.queue = queue.name;
    filter.bodies = false;
    std::map<std::string, std::uint64_t> kinds;
    const std::vector<JobInfo> jobs = list_all(client_.inspector(), filter, kMostCounted).jobs;
    for (const JobInfo& info : jobs) ++kinds[info.job.kind];
    for (const auto& [kind, count] : kinds) {
      log.left(queue.name, "of kind " + kind, count, jobs.size() == kMostCounted);
    }
  }
}

}  // namespace bide::cli
