#include "move/letting_go.h"

#include <utility>

namespace bide::move {

namespace {

struct Copied {
  JobId id;
  bool existed = false;
};

// Only those that are in this state at that moment. The others come back.
Result<std::vector<Copied>> remove(const Endpoint& from, const std::vector<Copied>& copied, JobState state,
                                   Transfer& transfer) {
  std::vector<Copied> left;
  if (copied.empty()) return left;
  std::vector<JobId> ids;
  for (const Copied& one : copied) ids.push_back(one.id);
  auto statuses = transfer.ask<std::vector<Status>>(
      [&](auto done) { from.inspector.cancel(ids, {.state = state}, std::move(done)); });
  if (!statuses) return statuses.error();
  for (std::size_t i = 0; i < copied.size(); ++i) {
    const Status& status = (*statuses)[i];
    if (!status && status.error().code == ErrorCode::kWrongState) {
      left.push_back(copied[i]);
      continue;
    }
    // Not there any more: another mover was faster, or the answer to an earlier try was lost. Taking back the copy could
    // lose the job.
    if (!status && status.error().code != ErrorCode::kNotFound) return status.error();
    ++(state == JobState::kDead ? transfer.report().dead : transfer.report().waiting);
    if (copied[i].existed) ++transfer.report().existed;
  }
  return left;
}

// The job lives on at the source, so its copy is one too many.
Status take_back(const Copied& copy, Transfer& transfer) {
  Inspector& target = transfer.to().inspector;
  const auto cancelled = [&](CancelOptions options) -> Result<bool> {
    auto statuses = transfer.ask<std::vector<Status>>(
        [&](auto done) { target.cancel({copy.id}, options, std::move(done)); });
    if (!statuses) return statuses.error();
    return statuses->front().has_value();
  };
  bool back = false;
  if (!copy.existed && !transfer.target().inspect && transfer.target().cancel) {
    const auto done = cancelled({});
    if (!done) return done.error();
    back = *done;
  } else if (!copy.existed) {
    for (const JobState state : {JobState::kScheduled, JobState::kReady, JobState::kDead}) {
      const auto done = back ? Result<bool>(true) : cancelled({.state = state});
      if (!done) return done.error();
      back = *done;
    }
  }
  if (!back) transfer.report().at_both.push_back(copy.id);
  return {};
}

}  // namespace

Result<std::size_t> let_go(const Endpoint& from, const std::vector<JobInfo>& jobs,
                           const std::vector<Transfer::Fate>& fates, Transfer& transfer) {
  const std::uint64_t before = transfer.report().moved();
  std::vector<Copied> scheduled, ready, dead;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (fates[i] == Transfer::Fate::kRefused) continue;
    auto& list = jobs[i].state == JobState::kDead        ? dead
                 : jobs[i].state == JobState::kScheduled ? scheduled
                                                         : ready;
    list.push_back({jobs[i].job.id, fates[i] == Transfer::Fate::kExisted});
  }
  auto due_now = remove(from, scheduled, JobState::kScheduled, transfer);
  if (!due_now) return due_now.error();
  ready.insert(ready.end(), due_now->begin(), due_now->end());
  auto not_ready = remove(from, ready, JobState::kReady, transfer);
  if (!not_ready) return not_ready.error();
  // Put off meanwhile, or the clock was set back.
  auto busy = remove(from, *not_ready, JobState::kScheduled, transfer);
  if (!busy) return busy.error();
  auto revived = remove(from, dead, JobState::kDead, transfer);
  if (!revived) return revived.error();
  busy->insert(busy->end(), revived->begin(), revived->end());
  for (const Copied& copy : *busy) {
    if (Status taken = take_back(copy, transfer); !taken) return taken.error();
  }
  transfer.progress();
  return static_cast<std::size_t>(transfer.report().moved() - before);
}

}  // namespace bide::move
