// Simulation, the commits: at once, or in two halves with steps in between.

#include <utility>

#include "simulation/simulation.h"

namespace bide::simulation {

using support::Operation;

bool Simulation::commit() {
  for (auto& callback : ledger_->take_callbacks()) callbacks_.push_back(std::move(callback));
  if (committing_) {
    tally_.add(Event::kStepsDuringCommits);
    const bool is_over = committing_->outcome.has_value();
    const bool failed_already = is_over && !*committing_->outcome;
    if (!crashed_ && !failed_already && chance(is_over ? 0.2 : 0.5)) return true;
    if (!finish_commit()) return false;
  }
  if (crashed_ || !ledger_->needs_sync() || !chance(0.3)) return commit_at_once();
  begin_commit();
  if (chance(0.3)) run_commit();
  return !crashed_ && (!committing_->outcome || *committing_->outcome) ? true : finish_commit();
}

// Everything that has been collected is confirmed. False: it was not, and the store has been opened again.
bool Simulation::commit_all() {
  if (committing_ && !finish_commit()) return false;
  return ledger_->journal().batch_empty() && !ledger_->needs_sync() ? true : commit_at_once();
}

bool Simulation::commit_at_once() {
  const bool crashed_before = crashed_;
  const std::uint64_t fired = disk_.faults_fired();
  now_.see_last_time(ledger_->state().last_time_ms());
  const Status committed = ledger_->commit();
  if (!committed) {
    if (!crashed_before) timeline_.push_back({now_, false});
    return failed(committed.error(), "commit", true);
  }
  if (planned_ && disk_.faults_fired() != fired) {
    const bool matters = planned_->operation == Operation::kWrite || planned_->operation == Operation::kSync;
    expect(!matters, "commit() succeeded although a write or a sync failed");
  }
  stepped_ = false;
  if (std::exchange(promised_, false)) {
    confirm();
  } else {
    timeline_.push_back({now_, true});
  }
  for (const auto& callback : std::exchange(callbacks_, {})) callback(committed);
  finish_tasks(std::exchange(finished_tasks_, {}));
  if (crashed_) return failed({ErrorCode::kIoError, ""}, "commit", false);
  learn_ids(*ledger_, now_);
  timeline_.back().world = now_;
  deliver(std::exchange(granted_, {}));
  return true;
}

void Simulation::begin_commit() {
  note("commit begins", ledger_->journal().batch_bytes());
  tally_.add(Event::kCommitsInTwoHalves);
  promised_ = false;
  now_.see_last_time(ledger_->state().last_time_ms());
  timeline_.push_back({now_, false});
  committing_ = Committing{.world = now_,
                           .granted = std::exchange(granted_, {}),
                           .finished_tasks = std::exchange(finished_tasks_, {}),
                           .callbacks = std::exchange(callbacks_, {}),
                           .run = ledger_->begin_commit(),
                           .outcome = {},
                           .stepped = std::exchange(stepped_, false)};
}

// What the other thread does.
void Simulation::run_commit() {
  if (committing_->outcome) return;
  const std::uint64_t fired = disk_.faults_fired();
  committing_->outcome = committing_->run();
  note("commit runs", committing_->outcome->has_value());
  if (!*committing_->outcome) {
    expect(crashed_ || disk_.faults_fired() != fired,
           "a commit failed for no reason: " + committing_->outcome->error().message);
    return;
  }
  expect(disk_.faults_fired() == fired, "a commit succeeded although a write or a sync failed");
  timeline_.back().written = true;
}

bool Simulation::finish_commit() {
  run_commit();
  const Status committed = ledger_->end_commit(*committing_->outcome);
  expect(!committed || *committing_->outcome, "end_commit() succeeded after a commit that failed");
  const Committing done = *std::exchange(committing_, std::nullopt);
  if (!committed) {
    tally_.add(Event::kFailedCommitsInTwoHalves);
    return failed(committed.error(), "commit", true);
  }
  // Nothing has been written since.
  timeline_ = {{done.world, true}};
  for (const auto& callback : done.callbacks) callback(committed);
  finish_tasks(done.finished_tasks);
  if (crashed_) return failed({ErrorCode::kIoError, ""}, "commit", false);
  deliver(done.granted);
  return true;
}

void Simulation::confirm() {
  timeline_.clear();
  timeline_.push_back({now_, true});
}

}  // namespace bide::simulation
