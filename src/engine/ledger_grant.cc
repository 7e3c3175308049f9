// Ledger, granting: subscriptions, leases for them, and leases that are extended or run out.

#include <algorithm>
#include <utility>

#include "core/completion.h"
#include "core/retry_decision.h"
#include "engine/ledger.h"
#include "platform/fatal.h"

namespace bide::engine {

using platform::require;

namespace {

// Leases are checked at most this often; a lease may run out that much late.
constexpr std::int64_t kLeaseCheckMs = 20;
constexpr std::int64_t kReadRetryMs = 200;
// A job that must not run beside another one like it is tried again after this, or up to twice this; see
// core/retry_decision.h.
constexpr std::int64_t kTurnMs = 1000;
// The rest is granted by the next step, so that no step takes long.
constexpr std::size_t kGrantsAStep = 4096;
// Of bodies: those of one step are in memory at once, and often in one answer.
constexpr std::size_t kGrantedBytesAStep = 16 << 20;
constexpr std::size_t kLeasesCheckedAStep = 65'536;
constexpr std::size_t kLeasesEndedAStep = 1024;  // Each is read and written.
constexpr const char* kExpiredNote = "not started before it expired";
// For a lease whose record (version 1) has no length.
constexpr std::uint32_t kUnknownLeaseMs = 15'000;
// After this many leases in a row whose process ended before anything was heard of the worker, the job is suspected.
constexpr std::uint32_t kMostUnheard = 3;

}  // namespace

void Ledger::subscribe(std::uint32_t subscription, const SubscribeOptions& options, LeaseSink sink) {
  Subscriber subscriber;
  if (!options.kinds.empty()) subscriber.kinds = KindFilter(options.kinds, state_.kinds());
  for (const QueueShare& share : options.queues) {
    subscriber.queues.push_back({.name = share.name, .weight = std::max(1, share.weight)});
    const auto queue = state_.queues().names().find(share.name);
    if (queue) {
      attach(subscriber, subscriber.queues.back(), *queue);
    } else {
      awaited_[share.name].insert(subscription);
    }
  }
  subscriber.credit = options.credit;
  subscriber.handlers = options.handlers;
  subscriber.lease_ms = static_cast<std::uint32_t>(options.lease.count());
  subscriber.worker = options.worker;
  subscriber.outlives_process = options.outlives_process;
  subscriber.sink = std::move(sink);
  subscriptions_.emplace(subscription, std::move(subscriber));
}

void Ledger::unsubscribe(std::uint32_t subscription) {
  const auto found = subscriptions_.find(subscription);
  if (found == subscriptions_.end()) return;
  for (const SubscribedQueue& share : found->second.queues) {
    if (share.queue) {
      state_.remove_subscription(*share.queue, !found->second.kinds.takes_all());
      note_idle(share.name);
    } else if (const auto awaited = awaited_.find(share.name); awaited != awaited_.end()) {
      awaited->second.erase(subscription);
      if (awaited->second.empty()) awaited_.erase(awaited);
    }
  }
  // Destroyed after the last call of the sink.
  after_commit_.push_back([sink = std::move(found->second.sink)](const Status&) {});
  subscriptions_.erase(found);
}

void Ledger::attach(const Subscriber& subscriber, SubscribedQueue& share, std::uint16_t queue) {
  share.queue = queue;
  state_.add_subscription(queue, !subscriber.kinds.takes_all());
  idle_since_ms_.erase(share.name);
}

void Ledger::attach_to_new_queues() {
  for (const std::uint16_t made : state_.take_new_queues()) {
    if (!state_.queues().names().exists(made)) continue;
    const auto awaited = awaited_.find(state_.queues().names()[made]);
    if (awaited == awaited_.end()) continue;
    for (const std::uint32_t subscription : awaited->second) {
      Subscriber& subscriber = subscriptions_.at(subscription);
      for (SubscribedQueue& share : subscriber.queues) {
        if (!share.queue && share.name == awaited->first) attach(subscriber, share, made);
      }
    }
    awaited_.erase(awaited);
  }
}

void Ledger::set_credit(std::uint32_t subscription, int credit) {
  const auto found = subscriptions_.find(subscription);
  if (found != subscriptions_.end()) found->second.credit = std::max(0, credit);
}

void Ledger::set_delivery_limit(std::uint32_t subscription, std::uint64_t deliveries) {
  const auto found = subscriptions_.find(subscription);
  if (found != subscriptions_.end()) found->second.delivery_limit = deliveries;
}

Result<std::vector<Delivery>> Ledger::grant() {
  std::vector<Delivery> deliveries;
  more_to_grant_ = false;
  if (elapsed_us_ / 1000 >= read_retry_ms_) read_retry_ms_ = 0;
  attach_to_new_queues();
  if (subscriptions_.empty() || read_retry_ms_ != 0) return deliveries;
  // In rounds, so that subscribers of one queue share it. The first one changes from step to step.
  auto at = subscriptions_.upper_bound(grant_first_);
  if (at == subscriptions_.end()) at = subscriptions_.begin();
  grant_first_ = at->first;
  std::size_t idle = 0;
  std::size_t granted = 0;
  granted_bytes_ = 0;
  const auto is_enough = [&] { return granted >= kGrantsAStep || granted_bytes_ >= kGrantedBytesAStep; };
  while (idle < subscriptions_.size() && !is_enough() && read_retry_ms_ == 0) {
    auto some = grant_some(at->first, at->second, deliveries);
    if (!some) return some.error();
    granted += *some;
    idle = *some == 0 ? idle + 1 : 0;
    if (++at == subscriptions_.end()) at = subscriptions_.begin();
  }
  more_to_grant_ = is_enough();
  std::erase_if(deliveries, [](const Delivery& delivery) { return delivery.leases.empty(); });
  return deliveries;
}

bool Ledger::runs_last_chance(std::uint32_t subscription, bool outlives_process) const {
  const std::vector<Running>& all = state_.leases().places();
  return std::any_of(all.begin(), all.end(), [&](const Running& running) {
    if (running.slot == kNoSlot || !running.last_chance || running.outlives_process != outlives_process) return false;
    // All workers of this process end with it. A lease from before a restart may belong to any worker elsewhere.
    return !outlives_process || running.subscription == subscription || running.subscription == 0;
  });
}

// A ready job whose time to start is over is dead.
Status Ledger::expire(Slot slot, Lease& lease) {
  const Dead dead{DeadReason::kExpired, Fault::kFailed, kExpiredNote};
  std::vector<Job> completions = completions_of(lease.job, static_cast<std::uint32_t>(state_[slot].attempts), dead);
  journal::Changed record =
      change_of(slot, journal::ChangeCause::kExpired, {lease.counts, std::move(lease.history), kExpiredNote});
  record.dead = dead.reason;
  if (Status changed = change(record); !changed) return changed;
  finished(lease.job.id);
  accept_effects(std::move(completions));
  needs_sync_ = true;
  return {};
}

Status Ledger::postpone(Slot slot, Lease& lease) {
  journal::Changed record =
      change_of(slot, journal::ChangeCause::kRescheduled,
                {lease.counts, std::move(lease.history), "its worker died before; jobs like that run one at a time"});
  record.due_ms = due_after(Milliseconds(kTurnMs + static_cast<std::int64_t>(random_.next() % kTurnMs)));
  needs_sync_ = true;  // The record that this one replaces may be deleted.
  return change(record);
}

Result<std::size_t> Ledger::grant_some(std::uint32_t id, Subscriber& subscriber, std::vector<Delivery>& deliveries) {
  constexpr std::size_t kRound = 256;
  const int most = std::min(subscriber.room(), static_cast<int>(kRound));
  if (most == 0 || !subscriber.has_work(state_.queues())) return std::size_t{0};
  subscriber.one_by_one = false;
  journal::Granted record{
      .at_ms = now_ms(), .outlives_process = subscriber.outlives_process, .worker = subscriber.worker, .grants = {},
      .lease_ms = subscriber.lease_ms};
  auto delivery = std::find_if(deliveries.begin(), deliveries.end(), [id](const auto& d) { return d.subscription == id; });
  if (delivery == deliveries.end()) {
    deliveries.push_back({id, subscriber.sink, elapsed_us_, {}});
    delivery = std::prev(deliveries.end());
  }
  std::vector<Lease>& leases = delivery->leases;
  if (leases.empty()) leases.reserve(std::min<std::size_t>(static_cast<std::size_t>(subscriber.room()), kGrantsAStep));
  const std::size_t before = leases.size();
  std::vector<Slot> slots;
  slots.reserve(static_cast<std::size_t>(most));
  record.grants.reserve(static_cast<std::size_t>(most));
  std::size_t passed_over = 0;
  std::optional<bool> last_chance_runs;
  bool has_rate = false;
  for (int n = 0; n < most && passed_over < kRound && granted_bytes_ < kGrantedBytesAStep;) {
    SubscribedQueue* from = subscriber.next_queue(state_.queues());
    if (from == nullptr) break;
    // Room for a grant, or for the death of a job that has expired.
    if (!make_room(kRoomForDeath, true)) break;
    const Slot slot = state_.take_ready(*from->queue, subscriber.kinds);
    if (slot == kNoSlot) {
      passed_over += kRound;
      break;
    }
    if (state_.is_early(slot)) {
      state_.wait_again(slot);
      ++passed_over;
      continue;
    }
    const Entry& entry = state_[slot];
    Lease& lease = leases.emplace_back();
    if (entry.attempts != 0 || !cache_.take(slot, entry.id, lease.job)) {
      auto loaded = load(slot);
      if (!loaded) {
        leases.pop_back();
        if (is_transient(loaded.error())) {
          state_.put_back(slot);
          read_retry_ms_ = elapsed_us_ / 1000 + kReadRetryMs;
          break;
        }
        quarantine(slot);
        ++passed_over;
        continue;
      }
      lease.job = std::move(loaded->job);
      lease.counts = loaded->past.counts;
      lease.history = std::move(loaded->past.history);
    }
    if (const SavedSteps::Steps* steps = state_.steps().find(slot)) lease.steps = *steps;
    lease.due = Time(Milliseconds(state_.due(slot)));
    if (lease.job.expires && lease.job.expires->time_since_epoch().count() <= wall_us_ / 1000) {
      if (Status expired = expire(slot, lease); !expired) return expired.error();
      ++passed_over;
      leases.pop_back();
      continue;
    }
    // Not fetched ahead: if its worker were killed before the handler began, the job would be dead without having run.
    if (subscriber.handlers > 0 && subscriber.unsettled + n >= subscriber.handlers &&
        core::would_die_by_crash(lease.job.retry, lease.counts, options_.max_crashes)) {
      state_.put_back(slot);
      leases.pop_back();
      subscriber.one_by_one = true;
      break;
    }
    if (core::is_last_chance(lease.counts, options_.max_crashes)) {
      if (!last_chance_runs) last_chance_runs = runs_last_chance(id, subscriber.outlives_process);
      if (*last_chance_runs) {
        if (Status postponed = postpone(slot, lease); !postponed) return postponed.error();
        ++passed_over;
        leases.pop_back();
        continue;
      }
      last_chance_runs = true;
    }
    ++n;
    granted_bytes_ += lease.job.body.size();
    for (const Step& step : lease.steps) granted_bytes_ += step.name.size() + step.result.size();
    lease.token = ++last_token_;
    lease.attempt = static_cast<std::uint32_t>(entry.attempts) + 1;
    record.grants.push_back({entry.id, lease.token});
    has_rate = has_rate || state_.queues()[*from->queue].has_rate();
    slots.push_back(slot);
  }
  if (slots.empty()) return passed_over;
  append(*journal_, record);
  // A start that were lost with the power would be forgotten by its rate.
  if (subscriber.outlives_process || has_rate) needs_sync_ = true;
  if (Status applied = state_.apply(record, slots); !applied) return applied.error();
  const std::int64_t elapsed_ms = elapsed_us_ / 1000;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Running& running = lease_of(slots[i]);
    running.subscription = id;
    running.lease_ms = subscriber.lease_ms;  // Written only if the lease outlives the process.
    running.deadline_ms = elapsed_ms + subscriber.lease_ms;
    running.limit_ms = elapsed_ms + leases[before + i].job.time_limit.count();
    running.last_chance = core::is_last_chance(leases[before + i].counts, options_.max_crashes);
    running.wants_completion = core::wants_completion(leases[before + i].job);
    note_deadline(running);
  }
  subscriber.unsettled += static_cast<int>(slots.size());
  subscriber.granted += slots.size();
  return slots.size() + passed_over;
}

Running* Ledger::find_lease(const LeaseRef& lease) {
  const Slot slot = state_.find(lease);
  if (slot == kNoSlot || state_[slot].entry_state() != EntryState::kRunning) return nullptr;
  Running& running = lease_of(slot);
  return running.token == lease.token ? &running : nullptr;
}

std::vector<Extended> Ledger::extend(const std::vector<LeaseRef>& leases) {
  std::vector<Extended> answers;
  answers.reserve(leases.size());
  std::vector<LeaseRef> heard_of;
  for (const LeaseRef& lease : leases) {
    Running* running = find_lease(lease);
    if (running == nullptr) {
      answers.push_back({.lost = true});
      continue;
    }
    running->deadline_ms = elapsed_us_ / 1000 + running->lease_ms;
    if (running->outlives_process && !running->delivered) heard_of.push_back(lease);
    answers.push_back({.cancel_requested = running->cancel_requested});
  }
  // A worker that extends a lease has received it. Without room for the mark the lease is extended all the same.
  if (!heard_of.empty()) (void)mark_delivered(heard_of);
  return answers;
}

Status Ledger::mark_delivered(const std::vector<LeaseRef>& leases) {
  journal::Delivered record;
  for (const LeaseRef& lease : leases) {
    const Running* running = find_lease(lease);
    if (running == nullptr || !running->outlives_process || running->delivered) continue;
    record.leases.push_back({lease.id, lease.token});
  }
  if (record.leases.empty()) return {};
  if (Status roomy = make_room(64 + record.leases.size() * (JobId::kSize + 10), true); !roomy) return roomy;
  append(*journal_, record);
  return state_.apply(record);
}

// After a restart: the worker elsewhere has the whole length of its lease to be heard of again.
void Ledger::resume_lease(Running& running) {
  const std::int64_t elapsed_ms = elapsed_us_ / 1000;
  if (running.lease_ms == 0) running.lease_ms = kUnknownLeaseMs;
  running.deadline_ms = elapsed_ms + running.lease_ms;
  if (const auto loaded = load(running.slot)) {
    // The time during which the store was closed counts neither for the attempt nor for its lease.
    const std::int64_t ran_ms = std::max<std::int64_t>(0, state_.last_time_ms() - running.started_ms);
    running.limit_ms = elapsed_ms + std::max<std::int64_t>(0, loaded->job.time_limit.count() - ran_ms);
    running.last_chance = core::is_last_chance(loaded->past.counts, options_.max_crashes);
    running.wants_completion = core::wants_completion(loaded->job);
  }
  note_deadline(running);
}

void Ledger::note_deadline(const Running& running) {
  const std::int64_t deadline_ms = std::min(running.deadline_ms, running.limit_ms);
  lease_check_ms_ = std::min(lease_check_ms_, deadline_ms);
  // A pass over the leases may have passed this one already.
  earliest_deadline_ms_ = std::min(earliest_deadline_ms_, deadline_ms);
}

void Ledger::release_credit(Slot slot) {
  const auto found = subscriptions_.find(lease_of(slot).subscription);
  if (found == subscriptions_.end()) return;
  require(found->second.unsettled > 0, "a subscription has fewer leases than end");
  --found->second.unsettled;
}

Status Ledger::expire_leases() {
  const std::int64_t elapsed_ms = elapsed_us_ / 1000;
  if (state_.leases().size() == 0 || elapsed_ms < lease_check_ms_) return {};
  // A pass over all leases, in bounded pieces.
  const std::vector<Running>& places = state_.leases().places();
  const std::size_t end = std::min(places.size(), next_lease_ + kLeasesCheckedAStep);
  std::size_t ended = 0;
  for (; next_lease_ < end; ++next_lease_) {
    const Running& running = places[next_lease_];
    if (running.slot == kNoSlot) continue;
    const std::int64_t deadline = std::min(running.deadline_ms, running.limit_ms);
    if (elapsed_ms < deadline) {
      earliest_deadline_ms_ = std::min(earliest_deadline_ms_, deadline);
      continue;
    }
    if (++ended > kLeasesEndedAStep) return {};
    auto over = end_overdue(running.slot, elapsed_ms >= running.limit_ms ? Fault::kTimedOut : Fault::kLost);
    if (!over) return over.error();
    if (!*over) return {};
  }
  if (next_lease_ < places.size()) return {};
  next_lease_ = 0;
  lease_check_ms_ = std::max(std::exchange(earliest_deadline_ms_, kNever), elapsed_ms + kLeaseCheckMs);
  return {};
}

// False: not now; lease_check_ms_ is set to the next try.
Result<bool> Ledger::end_overdue(Slot slot, Fault fault) {
  const std::int64_t elapsed_ms = elapsed_us_ / 1000;
  if (lease_of(slot).crashed) {
    Status charged = charge_crash(slot);
    if (charged) return true;
    const bool full = charged.error().code == ErrorCode::kDiskFull;
    if (!full && !is_transient(charged.error())) return charged.error();
    lease_check_ms_ = elapsed_ms + (full ? kRoomRetryMs : kReadRetryMs);
    return false;
  }
  if (Status roomy = make_room(kRoomForDeath, true); !roomy) {
    lease_check_ms_ = elapsed_ms + kRoomRetryMs;  // Later, when there is room.
    return false;
  }
  if (lease_of(slot).cancel_requested) {
    if (Status removed = remove(state_[slot].id, journal::RemoveCause::kCancelled); !removed) return removed.error();
    return true;
  }
  auto loaded = load(slot);
  if (!loaded && is_transient(loaded.error())) {
    lease_check_ms_ = elapsed_ms + kReadRetryMs;
    return false;
  }
  if (!loaded) {
    quarantine(slot);
    return true;
  }
  const Running& running = lease_of(slot);
  if (running.outlives_process && running.subscription == 0 && !running.delivered) {
    if (Status ended = end_unheard(slot, std::move(loaded->past)); !ended) return ended.error();
    return true;
  }
  const bool late = fault == Fault::kTimedOut;
  ++(late ? duplicate_starts_.timed_out : duplicate_starts_.lost);
  const Outcome outcome = core::decide_after_fault(
      loaded->job.retry, loaded->past.counts, fault,
      late ? "ran longer than its time limit" : "its worker fell silent and lost the lease", random_.next(),
      options_.max_crashes);
  if (Status ended = end_attempt(slot, outcome, EndedBy::kLedger); !ended) return ended.error();
  return true;
}

// The process that granted the lease died before it recorded that the lease was delivered. If it was not, the job has not
// run and must not be charged. If it was, and the worker died with that process, the job may be what kills them; hence the
// limit. The attempt number stays used.
Status Ledger::end_unheard(Slot slot, journal::Past past) {
  if (past.unheard >= kMostUnheard) {
    ++duplicate_starts_.lost;
    const Dead dead{.reason = DeadReason::kPoison,
                    .fault = Fault::kLost,
                    .error = "nothing was heard of it " + std::to_string(past.unheard + 1) +
                             " times in a row, each time after the process that gave its lease had ended"};
    return end_attempt(slot, dead, EndedBy::kLedger);
  }
  past.unheard += 1;
  past.note = "its lease was given by a process that has ended, and nobody was heard of it; not charged";
  journal::Changed record = change_of(slot, journal::ChangeCause::kReturned, std::move(past));
  record.due_ms = state_.due(slot);
  record.due_is_wall = state_[slot].due_is_wall != 0;
  release_credit(slot);
  needs_sync_ = true;
  return change(record);
}

Status Ledger::end_leases(const std::vector<LeaseRef>& leases, WorkerEnd how) {
  needs_sync_ = true;
  for (const LeaseRef& lease : leases) {
    const Running* running = find_lease(lease);
    if (running == nullptr) continue;
    const Slot slot = running->slot;
    if (Status roomy = make_room(kRoomForDeath, true); !roomy) return roomy;  // The rest runs out in time.
    Status ended;
    if (running->cancel_requested) {
      ended = remove(lease.id, journal::RemoveCause::kCancelled);
    } else if (how == WorkerEnd::kStopped) {
      ended = give_back(slot, Returned{.note = "the process that ran it was stopped"}, EndedBy::kLedger);
    } else {
      auto loaded = load(slot);
      if (!loaded && is_transient(loaded.error())) continue;  // It runs out in time.
      if (!loaded) {
        quarantine(slot);
        continue;
      }
      ++duplicate_starts_.crashed;
      ended = end_attempt(slot,
                          core::decide_after_fault(loaded->job.retry, loaded->past.counts, Fault::kCrashed,
                                                   "the process died during this attempt", random_.next(),
                                                   options_.max_crashes),
                          EndedBy::kLedger);
    }
    if (!ended) return ended;
  }
  return {};
}

}  // namespace bide::engine
