// Simulation, what is looked at in every step: what the engine does by itself, tasks, and that all is well.

#include <algorithm>
#include <utility>

#include "core/retry_decision.h"
#include "simulation/simulation.h"

namespace bide::simulation {

using engine::EntryState;
using engine::kNoSlot;

namespace {

// Leases are checked at most so often.
constexpr std::int64_t kLeaseCheckMs = 20;
constexpr std::uint32_t kMostUnheard = 3;

}  // namespace

void Simulation::observe_leases() {
  std::vector<std::uint64_t> running;
  for (const auto& [tag, job] : now_.jobs()) {
    if (job->phase == Phase::kRunning) running.push_back(tag);
  }
  // A pass that was put off goes on where it was; what it had come past by then is looked at in the next one.
  const bool may_wait = leases_may_wait();
  if (std::exchange(leases_waited_, may_wait)) lease_pass_ms_ = moment_.elapsed_ms();
  for (const std::uint64_t tag : running) {
    const ModelJob job = *now_.find(tag);
    const std::int64_t deadline = std::min(job.deadline_elapsed_ms, job.limit_elapsed_ms);
    const engine::Slot slot = ledger_->state().find(job.id);
    const bool there = slot != kNoSlot;
    if (there && ledger_->state()[slot].entry_state() == EntryState::kRunning) {
      expect(moment_.elapsed_ms() < std::max(deadline, lease_pass_ms_) + kLeaseCheckMs || may_wait,
             "job " + std::to_string(tag) + ": its lease should have run out");
      continue;
    }
    expect(moment_.elapsed_ms() >= deadline, "job " + std::to_string(tag) + ": its lease was lost too early");
    const Fault fault = job.crashed                                      ? Fault::kCrashed
                        : moment_.elapsed_ms() >= job.limit_elapsed_ms ? Fault::kTimedOut
                                                                         : Fault::kLost;
    tally_.add(fault == Fault::kCrashed ? Event::kCrashesChargedLater
               : fault == Fault::kLost  ? Event::kLeasesLost
                                        : Event::kTimeLimitsReached);
    note("lease ran out", tag, static_cast<std::uint64_t>(fault));
    if (job.cancel_requested) {
      expect(!there, "job " + std::to_string(tag) + " was cancelled and its lease ran out, but it is still there");
      now_.remove(tag);
      tally_.add(Event::kCancelledWhileRunning);
      continue;
    }
    // Its process died, and nobody knows whether the lease ever reached a worker.
    if (job.outlives_process && job.subscription == 0 && !job.delivered) {
      tally_.add(Event::kLeasesUnheardOf);
      if (job.unheard < kMostUnheard) {
        now_.come_back_unheard(tag, moment_);
      } else {
        now_.die(tag, {.reason = DeadReason::kPoison, .fault = Fault::kLost}, moment_, false);
      }
      continue;
    }
    const Outcome outcome = core::decide_after_fault(job.rules->retry, job.counts, fault, "", 0, options_.max_crashes);
    if (const auto* dead = std::get_if<Dead>(&outcome)) {
      now_.die(tag, *dead, moment_, false);
      continue;
    }
    const RetryAt shortest = std::get<RetryAt>(outcome);
    now_.retry(tag, shortest, {}, moment_, false);
    if (!there) continue;  // Purged in the same step: see run_task().
    // Jitter may have lengthened the wait.
    const Outcome longest =
        core::decide_after_fault(job.rules->retry, job.counts, fault, "", UINT64_MAX, options_.max_crashes);
    const std::int64_t due_ms = ledger_->state().due(slot);
    const std::int64_t foretold = now_.find(tag)->due_ms;
    const std::int64_t latest = World::due_after(std::get<RetryAt>(longest).after, moment_);
    expect(due_ms >= foretold && due_ms <= latest, "job " + std::to_string(tag) + " waits for " +
                                                                 std::to_string(due_ms - moment_.now_ms()) +
                                                                 " ms after its lease ran out, not as its policy says");
    now_.change(tag).due_ms = due_ms;
  }
}

// There was no room to write down that they ran out, so that is put off.
bool Simulation::leases_may_wait() {
  return has_no_reserve() || planned_.has_value() || moment_.elapsed_ms() < leases_wait_until_ms_;
}

void Simulation::observe_forgotten() {
  std::vector<std::uint64_t> forgotten;
  for (const auto& [tag, job] : now_.jobs()) {
    if (job->phase == Phase::kDead && ledger_->state().find(job->id) == kNoSlot) {
      expect(
          options_.dead_retention.count() != 0 && job->finished_ms < moment_.now_ms() - options_.dead_retention.count(),
          "dead job " + std::to_string(tag) + " was forgotten too early");
      forgotten.push_back(tag);
    }
  }
  for (const std::uint64_t tag : forgotten) {
    now_.remove(tag);
    tally_.add(Event::kDeadForgotten);
    note("dead job forgotten", tag);
  }
}

void Simulation::run_task() {
  if (tasks_.empty()) return;
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  task.may_fail = planned_.has_value() || (task.is_purge && has_no_reserve());
  if (task.is_purge) {
    std::vector<std::uint64_t> waiting;
    for (const auto& [tag, job] : now_.jobs()) {
      if (job->phase == Phase::kWaiting && job->rules->queue == task.queue) waiting.push_back(tag);
    }
    std::uint64_t purged = 0;
    for (const std::uint64_t tag : waiting) {
      const bool gone = ledger_->state().find(now_.find(tag)->id) == kNoSlot;
      expect(gone || task.may_fail, "job " + std::to_string(tag) + " was not purged");
      if (!gone) continue;
      now_.remove(tag);
      ++purged;
    }
    task.expected_purged = purged;
    promised_ = promised_ || purged > 0;
    note("purged", purged);
  } else {
    for (const auto& [tag, job] : now_.jobs()) {
      const auto info = ledger_->find(job->id);
      if (!info && info.error().code != ErrorCode::kNotFound) return;  // One of our faults.
      if (!info) continue;
      if (std::find(task.states.begin(), task.states.end(), info->state) != task.states.end()) {
        task.expected_page.insert(job->id);
      }
    }
  }
  finished_tasks_.push_back(std::move(task));
}

void Simulation::finish_tasks(const std::vector<Task>& tasks) {
  for (const Task& task : tasks) {
    if (task.is_purge) {
      expect(task.purged->has_value() || task.may_fail, "a purge was not answered");
      if (task.purged->has_value()) expect(**task.purged == *task.expected_purged, "a purge says another number");
      tally_.add(Event::kPurges);
    } else {
      expect(task.page->has_value(), "a listing was not answered");
      expect((*task.page)->has_value() || task.may_fail, "a listing failed");
      if (!(*task.page)->has_value()) continue;
      const JobPage& page = ***task.page;
      expect(page.next.empty() && page.jobs.size() == task.expected_page.size(), "a listing has another length");
      for (const JobInfo& info : page.jobs) {
        expect(task.expected_page.contains(info.job.id), "a listing shows a job that does not belong there");
      }
      tally_.add(Event::kListings);
    }
  }
}

// In pieces; nothing else is asked for meanwhile that works in pieces.
bool Simulation::is_auditing() const { return tasks_.empty() && ledger_->has_tasks(); }

void Simulation::check() {
  if (has_no_reserve()) leases_wait_until_ms_ = moment_.elapsed_ms() + 1100;
  if (disk_.faults_fired() != faults_seen_) count_fault();
  check_wake();
  if (tasks_.empty() && !ledger_->has_tasks() && chance(0.1)) {
    // It goes on in the next steps, and says how it was in this one.
    ledger_->audit([this](const Result<AuditReport>& report) {
      if (!report) return;
      expect(report->ok(), report->ok() ? "" : "audit in pieces: " + report->problems.front());
      tally_.add(Event::kAuditsInPieces);
    });
  } else if (!is_auditing() && chance(0.4)) {
    const AuditReport report = ledger_->audit();
    expect(report.ok(), report.ok() ? "" : "audit: " + report.problems.front());
  }
  if (planned_ || !chance(0.1)) return;
  if (committing_) tally_.add(Event::kReadsDuringCommits);
  Reading reading(*ledger_);
  if (const auto found = difference(reading, now_, moment_, compare_options())) violated(*found);
}

void Simulation::check_wake() {
  const auto wake = ledger_->next_wake_us();
  // Pieces are left: it goes on at once. Otherwise whatever is due is ready.
  if (ledger_->is_behind()) {
    expect(wake && *wake <= moment_.elapsed_ms() * 1000 + 999, "jobs that are due would be slept through");
  }
  for (const auto& [tag, job] : now_.jobs()) {
    if (job->phase == Phase::kWaiting && job->due_ms > moment_.now_ms()) {
      // It was due before the clock was stepped back: it lies ready, and waits only for those who take it too early.
      const engine::Slot slot = ledger_->state().find(job->id);
      if (slot != kNoSlot && ledger_->state()[slot].entry_state() == EntryState::kReady) continue;
      expect(wake && *wake <= job->due_ms * 1000 - now_.offset_us(),
             "job " + std::to_string(tag) + " would be slept through");
    } else if (job->phase == Phase::kWaiting && World::is_due(*job, moment_) && !ledger_->is_behind()) {
      const engine::Slot slot = ledger_->state().find(job->id);
      expect(slot == kNoSlot || ledger_->state()[slot].entry_state() != EntryState::kScheduled,
             "job " + std::to_string(tag) + " is due and has not been made ready");
    } else if (job->phase == Phase::kRunning && !leases_may_wait()) {
      const std::int64_t deadline = std::min(job->deadline_elapsed_ms, job->limit_elapsed_ms);
      expect(wake && *wake <= (std::max(deadline, moment_.elapsed_ms()) + kLeaseCheckMs) * 1000,
             "the end of the lease of job " + std::to_string(tag) + " would be slept through");
    }
  }
}

CompareOptions Simulation::compare_options() const {
  return {.done_limit = options_.done_limit,
          .result_retention = options_.result_retention,
          .dead_retention = options_.dead_retention,
          .latest_now_ms = latest_now_ms_};
}

}  // namespace bide::simulation
