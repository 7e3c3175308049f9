// Simulation, the leases: who may get which job, when, and in which order.

#include <algorithm>
#include <tuple>

#include "simulation/simulation.h"

namespace bide::simulation {

using engine::EntryState;
using engine::kNoSlot;

namespace {

bool has_expired(const ModelJob& job, const Moment& moment) {
  return job.rules->expires && job.rules->expires->time_since_epoch().count() <= moment.wall_ms();
}

// Smaller runs first.
auto rank(const ModelJob& job) { return std::make_tuple(-job.rules->priority, job.due_ms); }

}  // namespace

bool Simulation::is_ready(const ModelJob& job) const {
  return job.phase == Phase::kWaiting && World::is_due(job, moment_);
}

bool Simulation::grant() {
  const World before = now_;
  const auto deliveries = ledger_->grant();
  if (!deliveries) {
    timeline_.push_back({granted_but_not_delivered(), false});
    return failed(deliveries.error(), "grant", true);
  }
  std::vector<std::pair<const engine::Delivery*, const Lease*>> leases;
  for (const engine::Delivery& delivery : *deliveries) {
    for (const Lease& lease : delivery.leases) leases.emplace_back(&delivery, &lease);
  }
  // Tokens are given in the order in which jobs are taken.
  std::sort(leases.begin(), leases.end(),
            [](const auto& a, const auto& b) { return a.second->token < b.second->token; });
  const bool any_expired = observe_expired();
  std::vector<std::uint64_t> delivered;
  for (const auto& [delivery, lease] : leases) {
    receive(*delivery, *lease);
    delivered.push_back(now_.find(lease->job.id)->tag);
  }
  check_order(before, delivered);
  if (!full_ && !crashed_ && !planned_) check_nobody_waits();
  if (!leases.empty() || any_expired) timeline_.push_back({now_, !crashed_});
  if (crashed_) return failed({ErrorCode::kIoError, ""}, "grant", false);
  return true;
}

// A grant that failed may be on the disk all the same, whole or not at all; whose it was, only the ledger knows.
World Simulation::granted_but_not_delivered() const {
  World world = now_;
  for (const auto& [tag, job] : now_.jobs()) {
    if (job->phase != Phase::kWaiting) continue;
    const engine::Slot slot = ledger_->state().find(job->id);
    const engine::Entry& entry = ledger_->state()[slot];
    if (entry.entry_state() == EntryState::kDead) world.expire(tag, moment_);
    if (entry.entry_state() != EntryState::kRunning) continue;
    const engine::Running& running = ledger_->state().leases()[entry.next];
    world.start(tag, running.token, moment_);
    world.change(tag).outlives_process = running.outlives_process;
  }
  return world;
}

// Jobs that expired before their turn came.
bool Simulation::observe_expired() {
  std::vector<std::uint64_t> expired;
  for (const auto& [tag, job] : now_.jobs()) {
    if (job->phase != Phase::kWaiting) continue;
    const engine::Slot slot = ledger_->state().find(job->id);
    if (slot == kNoSlot || ledger_->state()[slot].entry_state() != EntryState::kDead) continue;
    expect(has_expired(*job, moment_), "job " + std::to_string(tag) + " is dead, but it has not expired");
    expired.push_back(tag);
  }
  for (const std::uint64_t tag : expired) {
    now_.expire(tag, moment_);
    tally_.add(Event::kJobsExpired);
    note("expired", tag);
  }
  return !expired.empty();
}

void Simulation::receive(const engine::Delivery& delivery, const Lease& lease) {
  const ModelJob* job = now_.find(lease.job.id);
  expect(job != nullptr, "a job is delivered that is not there: " + lease.job.id.to_string());
  const std::string name = "job " + std::to_string(job->tag);
  note("lease", job->tag, lease.token, lease.attempt);
  expect(job->phase == Phase::kWaiting, name + " is delivered, but it is " + to_string(job->phase));

  const platform::Instant instant = clock_.now();
  if (instant.elapsed_us < job->not_before_elapsed_us) {
    violated(name + " is early by " + std::to_string(job->not_before_elapsed_us - instant.elapsed_us) + " us");
  }
  if (instant.wall_us < job->not_before_wall_us && !job->was_due) {
    violated(name + " is early by " + std::to_string(job->not_before_wall_us - instant.wall_us) +
             " us of the wall clock");
  }
  expect(is_ready(*job), name + " is delivered before it is ready");
  expect(!has_expired(*job, moment_), name + " is delivered after it expired");
  expect(!now_.is_paused(job->rules->queue), name + " is delivered from a paused queue");

  expect(lease.token > last_token_, name + ": its token does not increase");
  last_token_ = lease.token;
  expect(tokens_.insert(lease.token).second, name + ": its token was given before");
  expect(lease.attempt == job->attempts + 1,
         name + ": delivered as attempt " + std::to_string(lease.attempt) + " after " + std::to_string(job->attempts));
  expect(lease.counts == job->counts && lease.history.size() == job->history, name + ": delivered with another past");
  expect(lease.due.time_since_epoch().count() == job->due_ms, name + ": delivered with another due time");
  JobInfo as_delivered{.job = lease.job,
                       .state = JobState::kReady,
                       .due = lease.due,
                       .attempts = job->attempts,
                       .counts = lease.counts,
                       .history = lease.history};
  as_delivered.job.delay = Milliseconds(0);
  if (const auto found = difference(as_delivered, *job, moment_)) violated(*found + ", as delivered");

  const auto subscription = subscribed_.find(delivery.subscription);
  expect(subscription != subscribed_.end(), name + " is delivered to nobody");
  const Subscribed& to = subscription->second;
  expect(std::find(to.queues.begin(), to.queues.end(), job->rules->queue) != to.queues.end(),
         name + " is delivered to a subscription of other queues");
  now_.start(job->tag, lease.token, moment_);
  ModelJob& started = now_.change(job->tag);
  started.subscription = delivery.subscription;
  started.outlives_process = to.outlives_process;
  started.lease_ms = to.lease_ms;
  started.deadline_elapsed_ms = moment_.elapsed_ms() + to.lease_ms;
  const auto unsettled = std::count_if(now_.jobs().begin(), now_.jobs().end(), [&](const auto& other) {
    return other.second->phase == Phase::kRunning && other.second->subscription == delivery.subscription;
  });
  expect(unsettled <= to.credit,
         "subscription " + std::to_string(delivery.subscription) + " holds more than its credit");
  held_.push_back({lease.job.id, lease.token, to.outlives_process});
  tally_.add(Event::kLeases);
}

// Within a queue the more important goes first, and then what has been due for longer.
void Simulation::check_order(const World& before, const std::vector<std::uint64_t>& delivered) {
  std::map<std::string, const ModelJob*> last;
  for (const std::uint64_t tag : delivered) {
    const ModelJob* job = before.find(tag);
    const ModelJob*& previous = last[job->rules->queue];
    expect(previous == nullptr || rank(*previous) <= rank(*job),
           "job " + std::to_string(tag) + " is delivered out of order");
    previous = job;
  }
  for (const auto& [tag, job] : now_.jobs()) {
    if (!is_ready(*job)) continue;
    const auto found = last.find(job->rules->queue);
    if (found == last.end()) continue;
    expect(rank(*found->second) <= rank(*job), "job " + std::to_string(tag) + " was passed over");
  }
}

void Simulation::check_nobody_waits() {
  for (const auto& [number, to] : subscribed_) {
    const auto unsettled = std::count_if(now_.jobs().begin(), now_.jobs().end(), [number = number](const auto& other) {
      return other.second->phase == Phase::kRunning && other.second->subscription == number;
    });
    if (unsettled >= to.credit) continue;
    for (const auto& [tag, job] : now_.jobs()) {
      if (!is_ready(*job) || now_.is_paused(job->rules->queue)) continue;
      expect(std::find(to.queues.begin(), to.queues.end(), job->rules->queue) == to.queues.end(),
             "job " + std::to_string(tag) + " is ready and was not given to a subscription that has room");
    }
  }
}

}  // namespace bide::simulation
