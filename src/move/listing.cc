// Emptying a source that can list, pause and cancel.

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "move/held_queues.h"
#include "move/letting_go.h"
#include "move/transfer.h"
#include "platform/keyed_hash.h"

namespace bide::move {

namespace {

constexpr std::chrono::milliseconds kBetweenRounds{200};

using Names = std::set<std::string>;
using Refused = platform::KeyedSet<JobId>;

// One pass over the jobs in these states. `held`: only those of these queues; null: of any. `refused`: those that the target
// does not want, which are not offered again.
Result<std::size_t> pass(const Endpoint& from, JobFilter filter, const Names* held, Refused& refused,
                         Transfer& transfer) {
  std::size_t moved = 0;
  std::string cursor;
  do {
    if (transfer.should_stop()) return moved;
    auto page = transfer.ask<JobPage>(
        [&](auto done) { from.inspector.list(filter, cursor, transfer.batch(), std::move(done)); });
    if (!page) return page.error();
    cursor = page->next;
    std::erase_if(page->jobs, [&](const JobInfo& info) {
      if (refused.contains(info.job.id) || (held != nullptr && !held->contains(info.job.queue))) return true;
      if (info.steps.empty()) return false;
      refused.insert(info.job.id);
      transfer.refuse(info.job.id, {ErrorCode::kUnsupported, "steps of it are done, which the target would do again"});
      return true;
    });
    if (page->jobs.empty()) continue;
    std::vector<Job> jobs;
    for (const JobInfo& info : page->jobs) jobs.push_back(carried(info));
    const auto fates = transfer.hand_over(std::move(jobs));
    if (!fates) return fates.error();
    for (std::size_t i = 0; i < fates->size(); ++i) {
      if ((*fates)[i] == Transfer::Fate::kRefused) refused.insert(page->jobs[i].job.id);
    }
    const auto gone = let_go(from, page->jobs, *fates, transfer);
    if (!gone) return gone.error();
    moved += *gone;
  } while (!cursor.empty());
  return moved;
}

// Each wanted queue by itself, or all of them together.
std::vector<JobFilter> filters(const std::vector<std::string>& queues, std::vector<JobState> states) {
  if (queues.empty()) return {{.states = std::move(states)}};
  std::vector<JobFilter> all;
  for (const std::string& queue : queues) all.push_back({.states = states, .queue = queue});
  return all;
}

}  // namespace

Status move_dead(const Endpoint& from, const std::vector<std::string>& queues, Transfer& transfer) {
  Refused refused;
  for (JobFilter& filter : filters(queues, {JobState::kDead})) {
    const auto moved = pass(from, std::move(filter), nullptr, refused, transfer);
    if (!moved) return moved.error();
  }
  return {};
}

Status move_by_listing(const Endpoint& from, Transfer& transfer) {
  const std::vector<std::string>& wanted = transfer.options().queues;
  MoveReport& report = transfer.report();
  HeldQueues held(from, transfer);
  Refused refused;
  const auto same = held.is_same_place();
  if (!same) return same.error();
  if (*same) return Error{ErrorCode::kInvalidArgument, "source and target are the same place"};
  // The dead first: each of them may have the unique key of a live one, which must not be in its way at the target.
  if (Status dead = move_dead(from, wanted, transfer); !dead) return dead;
  for (;;) {
    const auto queues = queues_to_move(from, wanted);
    if (!queues) return queues.error();
    if (Status alone = check_waiting(from); !alone) return alone;
    if (Status holding = held.hold(*queues); !holding) return holding;
    Names names;
    for (const QueueInfo& queue : *queues) names.insert(queue.name);
    std::size_t moved = 0;
    for (JobFilter& filter : filters(wanted, {JobState::kScheduled, JobState::kReady})) {
      const auto some = pass(from, std::move(filter), &names, refused, transfer);
      if (!some) return some.error();
      moved += *some;
    }
    if (transfer.should_stop()) {
      report.notes.emplace_back("stopped: the queues at the source stay paused; run it again to go on");
      return {};
    }
    if (moved > 0) continue;
    const auto left = queues_to_move(from, wanted);
    if (!left) return left.error();
    report.running = 0;
    bool has_new = false;
    for (const QueueInfo& queue : *left) {
      report.running += queue.running;
      has_new = has_new || (!names.contains(queue.name) && queue.scheduled + queue.ready > 0);
    }
    if (has_new) continue;
    if (report.running == 0 || !transfer.options().wait_for_running) break;
    transfer.progress();
    std::this_thread::sleep_for(kBetweenRounds);
  }
  // Jobs may have died while they were waited for.
  if (Status dead = move_dead(from, wanted, transfer); !dead) return dead;
  return held.release();
}

}  // namespace bide::move
