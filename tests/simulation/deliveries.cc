// Simulation, the leases: who may get which job, when, and in which order.

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/retry_decision.h"
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
  if (crashed_) return true;
  learn_ids(*ledger_, now_);
  const World before = now_;
  const auto deliveries = ledger_->grant();
  if (!deliveries) return failed(deliveries.error(), "grant", false);
  std::vector<std::pair<const engine::Delivery*, const Lease*>> leases;
  for (const engine::Delivery& delivery : *deliveries) {
    for (const Lease& lease : delivery.leases) leases.emplace_back(&delivery, &lease);
  }
  // Tokens are given in the order in which jobs are taken.
  std::sort(leases.begin(), leases.end(),
            [](const auto& a, const auto& b) { return a.second->token < b.second->token; });
  const bool any_expired = observe_expired();
  observe_postponed();
  std::vector<std::uint64_t> delivered;
  for (const auto& [delivery, lease] : leases) {
    receive(*delivery, *lease);
    delivered.push_back(now_.find(lease->job.id)->tag);
  }
  check_order(before, delivered);
  check_last_chances();
  if (!crashed_ && !planned_ && !has_no_reserve() && !ledger_->is_behind()) check_nobody_waits();
  promised_ = promised_ || any_expired;
  if (crashed_) return failed({ErrorCode::kIoError, ""}, "grant", false);
  return true;
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

// Jobs that may not run beside another of their kind, which was running or came first.
void Simulation::observe_postponed() {
  std::vector<std::uint64_t> postponed;
  for (const auto& [tag, job] : now_.jobs()) {
    if (!is_ready(*job)) continue;
    const engine::Slot slot = ledger_->state().find(job->id);
    if (slot == kNoSlot || ledger_->state()[slot].entry_state() != EntryState::kScheduled) continue;
    if (ledger_->state().due(slot) == job->due_ms) continue;
    const std::string name = "job " + std::to_string(tag);
    const std::int64_t wait_ms = ledger_->state().due(slot) - moment_.now_ms();
    expect(core::is_last_chance(job->counts, options_.max_crashes), name + " is put off without a reason");
    expect(wait_ms >= 1000 && wait_ms <= 2001, name + " is put off by " + std::to_string(wait_ms) + " ms");
    const bool another = std::any_of(now_.jobs().begin(), now_.jobs().end(), [&, own = tag](const auto& other) {
      const engine::Slot place = ledger_->state().find(other.second->id);
      return other.first != own && core::is_last_chance(other.second->counts, options_.max_crashes) &&
             place != kNoSlot && ledger_->state()[place].entry_state() == EntryState::kRunning;
    });
    expect(another, name + " is put off though no other has its last chance");
    postponed.push_back(tag);
  }
  for (const std::uint64_t tag : postponed) {
    now_.postpone(tag, ledger_->state().due(ledger_->state().find(now_.find(tag)->id)), Milliseconds(1000), moment_);
    tally_.add(Event::kPostponed);
    note("put off", tag);
  }
}

// A job that one more crash would make poison has no other such job beside it that would go down with it.
void Simulation::check_last_chances() {
  std::map<std::uint32_t, std::uint64_t> elsewhere;  // By subscription.
  std::uint64_t here = 0;
  for (const auto& [tag, job] : now_.jobs()) {
    if (job->phase != Phase::kRunning || !core::is_last_chance(job->counts, options_.max_crashes)) continue;
    if (job->crashed) continue;
    std::uint64_t& beside = job->outlives_process ? elsewhere[job->subscription] : here;
    if (job->outlives_process && job->subscription == 0) continue;
    expect(beside == 0, "jobs " + std::to_string(beside) + " and " + std::to_string(tag) +
                            " run together, and either may be poison");
    beside = tag;
    tally_.add(Event::kLastChances);
  }
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
  granted_.push_back({lease.job.id, lease.token, to.outlives_process});
  promised_ = promised_ || to.outlives_process;  // Synced before it is handed out.
}

// The commit has happened: whoever was granted a lease hears of it now, and not before.
void Simulation::deliver(const std::vector<Held>& leases) {
  for (const Held& lease : leases) {
    const std::string name = "job " + lease.id.to_string();
    expect(lease.token > last_token_, name + ": its token does not increase");
    last_token_ = lease.token;
    expect(tokens_.insert(lease.token).second, name + ": its token was given before");
    held_.push_back(lease);
    tally_.add(Event::kLeases);
  }
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
  if (ledger_->is_behind()) return;  // What has not been made ready yet has no turn.
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
