// Ledger, the requests of clients and workers, and putting right by hand: each is checked, written down and applied.

#include <algorithm>

#include "core/job_rules.h"
#include "core/quote.h"
#include "engine/ledger.h"
#include "platform/fatal.h"

namespace bide::engine {

using journal::ChangeCause;
using platform::require;

namespace {

Error no_such_job(const JobId& id) {
  return Error{ErrorCode::kNotFound, "there is no job " + id.to_string() + "; it may be done and forgotten"};
}

Error lease_lost(const JobId& id) {
  return Error{ErrorCode::kLeaseLost, "the lease of job " + id.to_string() + " is lost: another attempt has it, or it is finished"};
}

std::string_view state_name(EntryState state) {
  switch (state) {
    case EntryState::kScheduled: return "scheduled";
    case EntryState::kReady: return "ready";
    case EntryState::kRunning: return "running";
    case EntryState::kDone: return "done";
    case EntryState::kDead: return "dead";
    case EntryState::kQuarantined: return "quarantined";
    default: return "gone";
  }
}

Error wrong_state(const JobId& id, EntryState state, const char* allowed) {
  return Error{ErrorCode::kWrongState,
               "job " + id.to_string() + " is " + std::string(state_name(state)) + "; this works for " + allowed + " jobs"};
}

Error too_many_names() {
  return Error{ErrorCode::kOverloaded,
               "there are " + std::to_string(kMaxNames) + " different queues or kinds already: use fewer names"};
}

// An error text longer than we keep is cut, and says so.
std::string cut(std::string text) {
  if (text.size() <= Limits::kErrorBytes) return text;
  text.resize(Limits::kErrorBytes - 3);
  return text + "...";
}

void add_fault(journal::Past& past, std::uint32_t attempt, std::int64_t at_ms, Fault fault, const std::string& error) {
  switch (fault) {
    case Fault::kFailed: ++past.counts.failed; break;
    case Fault::kTimedOut: ++past.counts.timed_out; break;
    case Fault::kLost: ++past.counts.lost; break;
    case Fault::kCrashed: ++past.counts.crashed; break;
  }
  past.history.push_back({attempt, Time(Milliseconds(at_ms)), fault, cut(error)});
  if (past.history.size() > Limits::kHistory) past.history.erase(past.history.begin());
  past.note.clear();
  past.unheard = 0;
}

journal::AcceptedBrief brief(const Job& job, const journal::Acceptance& record) {
  return {.id = job.id,
          .kind = job.kind,
          .queue = job.queue,
          .unique_key = job.unique_key,
          .due_ms = record.due_ms,
          .accepted_ms = record.accepted_ms,
          .due_is_wall = record.due_is_wall,
          .has_expiry = job.expires.has_value(),
          .priority = job.priority,
          .attempts = record.attempts,
          .crashed = record.past.counts.crashed,
          .token = record.token};
}

}  // namespace

std::vector<Result<Enqueued>> Ledger::enqueue(Offer offer) {
  const WarmJobs::BatchNumber batch = warm_.open(std::move(offer.jobs));
  std::vector<Job>& jobs = warm_.jobs(batch);
  std::vector<Result<Enqueued>> results;
  results.reserve(jobs.size());
  // Each id has a place of its own in a large table: have the next ones on their way.
  constexpr std::size_t kAhead = 8;
  std::size_t given = 0;
  std::vector<bool> is_ours(jobs.size());  // An id that was made just now is nobody else's.
  const auto give_id = [&] {
    if (given == jobs.size()) return;
    Job& next = jobs[given];
    is_ours[given++] = next.id.is_nil();
    if (next.id.is_nil()) next.id = ids_.next(now_ms(), random_.next());
    state_.prefetch(next.id);
    if (!is_ours[given - 1]) finished_ids_.prefetch(next.id);
  };
  while (given < kAhead && given < jobs.size()) give_id();
  auto refused = offer.refused.begin();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    give_id();
    const Job& job = jobs[i];
    if (refused != offer.refused.end() && refused->first == i) {
      results.push_back(std::move((refused++)->second));
    } else if (!is_ours[i] && state_.find(job.id) != kNoSlot) {
      results.push_back(Enqueued{job.id, true});
    } else if (const auto done = is_ours[i] ? false : finished_ids_.contains(job.id); !done || *done) {
      results.push_back(done ? Result<Enqueued>(Enqueued{job.id, true}) : done.error());
    } else if (Status admitted = admit(job); !admitted) {
      results.push_back(admitted.error());
    } else {
      results.push_back(Enqueued{job.id, false});
      accept(batch, i, offer.written[i], is_ours[i]);
      continue;
    }
    warm_.pass_over(batch, i);
  }
  warm_.close(batch);
  needs_sync_ = true;
  return results;
}

// Whether there is a place for one more job, and room to write it down.
Status Ledger::admit(const Job& job) {
  const Slot holder = job.unique_key.empty() ? kNoSlot : state_.unique_keys().holder(job.unique_key);
  if (holder != kNoSlot) {
    return Error{ErrorCode::kAlreadyExists, "the unique key " + core::quoted(job.unique_key) + " is held by job " +
                                                state_[holder].id.to_string()};
  }
  if (state_.jobs() >= options_.max_jobs) {
    return Error{ErrorCode::kOverloaded, "the store holds " + std::to_string(state_.jobs()) +
                                             " jobs, as many as it may: wait, or raise max_jobs"};
  }
  if (!state_.has_names_left(job, 1)) return too_many_names();
  return make_room(room_for(job), false);
}

// Of a job that was admitted and has an id.
void Ledger::accept(WarmJobs::BatchNumber batch, std::size_t index, const journal::JobFields& written, bool is_own_id) {
  Job& job = warm_.jobs(batch)[index];
  journal::Acceptance record;
  record.accepted_ms = now_ms();
  record.due_is_wall = job.due.has_value();
  if (job.due) {
    record.due_ms = std::max<std::int64_t>(0, job.due->time_since_epoch().count());
    // Due in the past means due now, so that it does not overtake what waits already.
    if (record.due_ms <= now_ms()) {
      record.due_ms = now_ms();
      record.due_is_wall = false;
    }
  } else {
    // A delay is counted from this very moment, not from the millisecond it lies in.
    record.due_ms = job.delay.count() == 0 ? now_ms() : (now_us_ + 999) / 1000 + job.delay.count();
  }
  const journal::RecordRef at = append(*journal_, job, record, written);
  const auto slot = state_.apply(brief(job, record), at, kNoSlot);
  require(slot.has_value(), "an accepted job must fit the state");
  if (is_own_id) state_.set_own_id(*slot);
  if (state_.queues().has_made()) take_from_made_queues();
  // Nobody takes from some queues for days; their jobs are not to keep those of others out of memory.
  const bool has_taker = state_.queues()[static_cast<std::uint16_t>(state_[*slot].queue)].takers != 0;
  const bool kept = record.due_ms <= now_ms() && has_taker && warm_.keep(*slot, batch, index);
  if (!kept) warm_.pass_over(batch, index);
}

void Ledger::subscribe(std::uint32_t subscription, const SubscribeOptions& options, LeaseSink sink) {
  Subscriber subscriber;
  for (const QueueShare& share : options.queues) {
    subscriber.queues.push_back({.name = share.name, .weight = std::max(1, share.weight)});
    const auto queue = state_.queues().names().find(share.name);
    if (queue) {
      take_from(subscriber.queues.back(), *queue);
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
      state_.remove_taker(*share.queue);
    } else if (const auto awaited = awaited_.find(share.name); awaited != awaited_.end()) {
      awaited->second.erase(subscription);
      if (awaited->second.empty()) awaited_.erase(awaited);
    }
  }
  // What the sink holds goes when the last call of it is over.
  after_commit_.push_back([sink = std::move(found->second.sink)](const Status&) {});
  subscriptions_.erase(found);
}

void Ledger::take_from(SubscribedQueue& share, std::uint16_t queue) {
  share.queue = queue;
  state_.add_taker(queue);
}

void Ledger::take_from_made_queues() {
  for (const std::uint16_t made : state_.take_made_queues()) {
    if (!state_.queues().names().exists(made)) continue;
    const auto awaited = awaited_.find(state_.queues().names()[made]);
    if (awaited == awaited_.end()) continue;
    for (const std::uint32_t subscription : awaited->second) {
      for (SubscribedQueue& share : subscriptions_.at(subscription).queues) {
        if (!share.queue && share.name == awaited->first) take_from(share, made);
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

std::vector<Status> Ledger::settle(Verdicts verdicts) {
  std::vector<Settlement>& settlements = verdicts.settlements;
  std::vector<Status> statuses;
  statuses.reserve(settlements.size());
  constexpr std::size_t kAhead = 8;
  auto refused = verdicts.refused.begin();
  std::size_t first_effect = 0;
  for (std::size_t i = 0; i < settlements.size(); ++i) {
    if (i + kAhead < settlements.size()) state_.prefetch(settlements[i + kAhead].lease);
    const Error* fault = refused != verdicts.refused.end() && refused->first == i ? &(refused++)->second : nullptr;
    const std::size_t effects = settlements[i].effects.size();
    statuses.push_back(settle_one(settlements[i], fault, verdicts.written_effects, first_effect));
    first_effect += effects;
  }
  needs_sync_ = true;
  return statuses;
}

Status Ledger::settle_one(Settlement& settlement, const Error* refused, const WrittenJobs& written,
                          std::size_t first_effect) {
  const LeaseRef& lease = settlement.lease;
  const Slot slot = state_.find(lease);
  if (slot == kNoSlot) {
    const bool again = std::holds_alternative<Done>(settlement.outcome) && finished_ids_.was_settled(lease.token);
    return again ? Status() : no_such_job(lease.id);
  }
  if (state_[slot].entry_state() != EntryState::kRunning || state_.leases()[state_[slot].next].token != lease.token) {
    if (state_[slot].entry_state() == EntryState::kQuarantined) return lease_lost(lease.id);
    const auto before = settled_before(slot, settlement);
    if (!before) return before.error();
    return *before ? Status() : lease_lost(lease.id);
  }
  if (refused != nullptr) return *refused;
  std::size_t room = kRoomForChange;
  for (const Job& effect : settlement.effects) {
    if (!state_.has_names_left(effect, settlement.effects.size())) return too_many_names();
    room += room_for(effect);
  }
  if (const auto* done = std::get_if<Done>(&settlement.outcome)) room += done->result.size() + done->content_type.size();
  if (const auto* again = std::get_if<RetryAt>(&settlement.outcome); again != nullptr && again->body) {
    room += again->body->size() + Limits::kHeaderBytes;
  }
  auto completions = completions_of(slot, settlement.outcome);
  if (!completions) return give_up_on(slot, completions.error());
  // The last free names are not given away twice.
  const std::size_t made = settlement.effects.size() + completions->size();
  std::erase_if(*completions, [&](const Job& told) { return !state_.has_names_left(told, made); });
  for (const Job& told : *completions) room += room_for(told);
  if (Status roomy = make_room(room, true); !roomy) return roomy;

  // Outcome and effects go into the same batch, which is all or nothing. The outcome comes first: what it needs may be
  // unreadable, and then nothing has happened; and an effect may take over the unique key of a job that is done.
  const auto end = [&]() -> Status {
    const bool cancelled = state_.leases()[state_[slot].next].cancel_requested;
    if (auto* done = std::get_if<Done>(&settlement.outcome)) return append_done(slot, *done);
    if (cancelled && !std::holds_alternative<Dead>(settlement.outcome)) {
      return remove(lease.id, journal::RemoveCause::kCancelled);
    }
    const auto* returned = std::get_if<Returned>(&settlement.outcome);
    if (returned != nullptr) return give_back(slot, *returned, EndedBy::kSettle);
    return end_attempt(slot, settlement.outcome, EndedBy::kSettle);
  };
  if (Status ended = end(); !ended) return give_up_on(slot, ended.error());
  accept_effects(std::move(settlement.effects), written, first_effect);
  accept_effects(std::move(*completions));
  return {};
}

Status Ledger::save_body(const LeaseRef& lease, std::string body) {
  if (body.size() > Limits::kBodyBytes) {
    return Error{ErrorCode::kInvalidArgument, "body: " + std::to_string(body.size()) + " bytes are too many; allowed: " +
                                                  std::to_string(Limits::kBodyBytes)};
  }
  const Slot slot = state_.find(lease);
  if (slot == kNoSlot) return no_such_job(lease.id);
  if (state_[slot].entry_state() != EntryState::kRunning) return lease_lost(lease.id);
  const Running& running = state_.leases()[state_[slot].next];
  if (running.token != lease.token) return lease_lost(lease.id);
  if (Status roomy = make_room(kRoomForChange + body.size() + Limits::kHeaderBytes, false); !roomy) return roomy;
  auto loaded = load(slot);
  if (!loaded) return give_up_on(slot, loaded.error());
  const Entry& entry = state_[slot];
  loaded->job.body = std::move(body);
  // Written as an attempt that ended with a new body, and the same lease given again: the batch is all or nothing.
  const journal::Acceptance record{.due_ms = state_.due(entry),
                                   .accepted_ms = now_ms(),
                                   .due_is_wall = entry.due_is_wall != 0,
                                   .past = std::move(loaded->past),
                                   .attempts = static_cast<std::uint32_t>(entry.attempts) - 1,
                                   .token = lease.token};
  const journal::RecordRef at = append(*journal_, loaded->job, record);
  append(*journal_, journal::Granted{.at_ms = running.started_ms,
                                     .outlives_process = running.outlives_process,
                                     .worker = state_.workers()[running.worker],
                                     .grants = {{lease.id, lease.token}},
                                     .lease_ms = running.lease_ms});
  if (running.cancel_requested) append(*journal_, journal::CancelAsked{lease.id, now_ms()});
  state_.apply_saved(slot, at, record.accepted_ms);
  needs_sync_ = true;
  if (!running.outlives_process) return {};
  // Whoever saves has the lease; and the mark must follow the lease that was written again.
  const journal::Delivered delivered{{{lease.id, lease.token}}};
  append(*journal_, delivered);
  return state_.apply(delivered);
}

// The record that ended the lease with this token is the last that happened to the job. It must say the same: whoever gave
// a job back and then calls it done has not been heard with the second.
Result<bool> Ledger::settled_before(Slot slot, const Settlement& settlement) {
  const Entry& entry = state_[slot];
  const std::uint64_t token = settlement.lease.token;
  const bool by_body = !entry.has_details();
  if (by_body && (entry.body_bytes == 0 || entry.attempts == 0)) return false;
  const auto read = journal_->read(by_body ? entry.body() : entry.details());
  if (!read) return read.error();
  journal::RecordView view = *read;
  journal::Moved moved;
  if (static_cast<journal::RecordType>(view.type) == journal::RecordType::kMoved) {
    if (Status decoded = decode(view, moved); !decoded) return decoded.error();
    view = moved.inner;
  }
  if (by_body) {
    journal::AcceptedBrief record;
    if (Status decoded = decode(view, record); !decoded) return decoded.error();
    return record.token == token && std::holds_alternative<RetryAt>(settlement.outcome);
  }
  if (static_cast<journal::RecordType>(view.type) == journal::RecordType::kDone) {
    journal::DoneRecord record;
    if (Status decoded = decode(view, record); !decoded) return decoded.error();
    return record.token == token && std::holds_alternative<Done>(settlement.outcome);
  }
  journal::Changed record;
  if (Status decoded = decode(view, record); !decoded) return decoded.error();
  if (record.token != token) return false;
  if (record.cause == ChangeCause::kReturned) return std::holds_alternative<Returned>(settlement.outcome);
  return record.dead ? std::holds_alternative<Dead>(settlement.outcome)
                     : std::holds_alternative<RetryAt>(settlement.outcome);
}

Status Ledger::append_done(Slot slot, Done& done) {
  const Running& running = state_.leases()[state_[slot].next];
  journal::DoneRecord record{.id = state_[slot].id,
                             .token = running.token,
                             .at_ms = now_ms(),
                             .attempts = static_cast<std::uint32_t>(state_[slot].attempts),
                             .result = std::move(done.result),
                             .content_type = std::move(done.content_type),
                             .past = {}};
  // Of earlier attempts. What cannot be read of them is no reason not to be done.
  if (auto past = load_past(slot)) record.past = std::move(*past);
  record.past.note.clear();
  if (record.result.empty()) record.content_type.clear();
  release_credit(slot);
  const JobId given_id = state_[slot].own_id ? JobId() : record.id;
  const journal::RecordRef at = append(*journal_, record);
  const Status applied = state_.apply(record, at, slot);
  finished_ids_.add(given_id, record.token, record.at_ms, at.address + at.bytes);
  finished(record.id);
  return applied;
}

Status Ledger::end_attempt(Slot slot, const Outcome& outcome, EndedBy by) {
  const auto* again = std::get_if<RetryAt>(&outcome);
  const auto* dead = std::get_if<Dead>(&outcome);
  require(again != nullptr || dead != nullptr, "an attempt ends in a retry or in death");
  const bool replaces_body = again != nullptr && again->body.has_value();
  // Those of a settlement are made with its other effects.
  auto completions = by == EndedBy::kLedger ? completions_of(slot, outcome) : std::vector<Job>();
  if (!completions) return completions.error();
  Loaded loaded;
  if (replaces_body) {
    auto whole = load(slot);
    if (!whole) return whole.error();
    loaded = std::move(*whole);
  } else {
    auto past = load_past(slot);
    if (!past) return past.error();
    loaded.past = std::move(*past);
  }
  const Entry& entry = state_[slot];
  const std::uint64_t token = by == EndedBy::kSettle ? state_.leases()[entry.next].token : 0;
  add_fault(loaded.past, static_cast<std::uint32_t>(entry.attempts), now_ms(), again != nullptr ? again->fault : dead->fault,
            again != nullptr ? again->error : dead->error);
  const std::int64_t due_ms = again == nullptr              ? 0
                              : again->after.count() <= 0 ? now_ms()
                                                          : (now_us_ + 999) / 1000 + again->after.count();
  release_credit(slot);
  if (replaces_body) {
    loaded.job.body = *again->body;
    const journal::Acceptance record{.due_ms = due_ms,
                                     .accepted_ms = now_ms(),
                                     .due_is_wall = false,
                                     .past = std::move(loaded.past),
                                     .attempts = static_cast<std::uint32_t>(entry.attempts),
                                     .token = token};
    const journal::RecordRef at = append(*journal_, loaded.job, record);
    const auto applied = state_.apply(brief(loaded.job, record), at, slot);
    return applied ? Status() : applied.error();
  }
  journal::Changed record{.id = entry.id,
                          .cause = ChangeCause::kFault,
                          .token = token,
                          .at_ms = now_ms(),
                          .due_ms = due_ms,
                          .dead = {},
                          .attempts = static_cast<std::uint32_t>(entry.attempts),
                          .unique_key = {},
                          .past = std::move(loaded.past)};
  if (dead != nullptr) record.dead = dead->reason;
  needs_sync_ = true;
  const JobId id = record.id;
  if (Status changed = change(std::move(record)); !changed) return changed;
  if (dead != nullptr) finished(id);
  accept_effects(std::move(*completions));
  return {};
}

Status Ledger::give_back(Slot slot, const Returned& returned, EndedBy by) {
  auto past = load_past(slot);
  if (!past) return past.error();
  const Entry& entry = state_[slot];
  past->note = cut(returned.note);
  past->unheard = 0;
  // Not charged, and due when it was: it does not lose its place.
  journal::Changed record{.id = entry.id,
                          .cause = ChangeCause::kReturned,
                          .token = by == EndedBy::kSettle ? state_.leases()[entry.next].token : 0,
                          .at_ms = now_ms(),
                          .due_ms = returned.after.count() > 0 ? (now_us_ + 999) / 1000 + returned.after.count() : state_.due(entry),
                          .due_is_wall = returned.after.count() > 0 ? false : static_cast<bool>(entry.due_is_wall),
                          .dead = {},
                          .attempts = static_cast<std::uint32_t>(entry.attempts) - 1,
                          .unique_key = {},
                          .past = std::move(*past)};
  release_credit(slot);
  return change(std::move(record));
}

Status Ledger::change(journal::Changed record) {
  const journal::RecordRef at = append(*journal_, record);
  return state_.apply(record, at);
}

Status Ledger::remove(const JobId& id, journal::RemoveCause cause) {
  const Slot slot = state_.find(id);
  if (state_[slot].entry_state() == EntryState::kRunning) release_credit(slot);
  warm_.drop(slot);
  const journal::Removed record{.cause = cause, .at_ms = now_ms(), .ids = {id}};
  append(*journal_, record);
  needs_sync_ = true;
  Status applied = state_.apply(record);
  finished(record.ids.front());
  return applied;
}

std::vector<Status> Ledger::cancel(const std::vector<JobId>& ids, const CancelOptions& options) {
  std::vector<Status> statuses;
  for (const JobId& id : ids) {
    const Slot slot = state_.find(id);
    if (slot == kNoSlot) {
      statuses.push_back(no_such_job(id));
      continue;
    }
    const EntryState state = state_[slot].entry_state();
    if (options.state && state_.shown_state(slot) != *options.state) {
      statuses.push_back(wrong_state(id, state, std::string(to_string(*options.state)).c_str()));
    } else if (state == EntryState::kDone) {
      statuses.push_back(wrong_state(id, state, "scheduled, ready, running and dead"));
    } else if (Status roomy = make_room(64, true); !roomy) {
      statuses.push_back(roomy);
    } else if (state == EntryState::kRunning && state_.leases()[state_[slot].next].cancel_requested) {
      needs_sync_ = true;
      statuses.push_back({});
    } else if (state == EntryState::kRunning) {
      const journal::CancelAsked record{.id = id, .at_ms = now_ms()};
      append(*journal_, record);
      needs_sync_ = true;
      statuses.push_back(state_.apply(record));
    } else {
      const bool dead = state == EntryState::kDead || state == EntryState::kQuarantined;
      statuses.push_back(remove(id, dead ? journal::RemoveCause::kDeleted : journal::RemoveCause::kCancelled));
    }
  }
  return statuses;
}

Status Ledger::reschedule(const JobId& id, Time due) {
  const Slot slot = state_.find(id);
  if (slot == kNoSlot) return no_such_job(id);
  const EntryState state = state_[slot].entry_state();
  if (state != EntryState::kScheduled && state != EntryState::kReady) {
    return wrong_state(id, state, "scheduled and ready");
  }
  if (due - Time(Milliseconds(now_ms())) > Limits::kDelay) {
    return Error{ErrorCode::kInvalidArgument, "due: too far away; at most 100 years from now"};
  }
  if (Status roomy = make_room(kRoomForChange, true); !roomy) return roomy;
  auto past = load_past(slot);
  if (!past) return give_up_on(slot, past.error());
  warm_.drop(slot);
  const std::int64_t due_ms = due.time_since_epoch().count();
  journal::Changed record{.id = id,
                          .cause = ChangeCause::kRescheduled,
                          .at_ms = now_ms(),
                          .due_ms = std::max(due_ms, now_ms()),
                          .due_is_wall = due_ms > now_ms(),
                          .dead = {},
                          .attempts = static_cast<std::uint32_t>(state_[slot].attempts),
                          .unique_key = {},
                          .past = std::move(*past)};
  needs_sync_ = true;
  return change(std::move(record));
}

std::vector<Status> Ledger::replay(const std::vector<JobId>& ids, const ReplayOptions& options) {
  const auto replay_one = [&](const JobId& id) -> Status {
    const Slot slot = state_.find(id);
    if (slot == kNoSlot) return no_such_job(id);
    const EntryState state = state_[slot].entry_state();
    const bool quarantined = state == EntryState::kQuarantined;  // It may be readable again.
    if (state != EntryState::kDead && !quarantined) return wrong_state(id, state, "dead");
    if (Status roomy = make_room(kRoomForChange, true); !roomy) return roomy;
    auto loaded = load(slot);
    if (!loaded) return loaded.error();
    // One in quarantine has never let go of its key.
    const std::string key = quarantined ? std::string() : loaded->job.unique_key;
    if (!key.empty() && state_.unique_keys().holder(key) != kNoSlot) {
      return Error{ErrorCode::kAlreadyExists, "job " + id.to_string() + " cannot be replayed: its unique key " +
                                                  core::quoted(key) + " is held by job " +
                                                  state_[state_.unique_keys().holder(key)].id.to_string()};
    }
    if (!options.keep_attempts) loaded->past.counts = {};
    loaded->past.note = "replayed";
    journal::Changed record{
        .id = id,
        .cause = ChangeCause::kReplayed,
        .at_ms = now_ms(),
        .due_ms = options.delay.count() > 0 ? (now_us_ + 999) / 1000 + options.delay.count() : now_ms(),
        .dead = {},
        .attempts = options.keep_attempts ? static_cast<std::uint32_t>(state_[slot].attempts) : 0,
        .unique_key = key,
        .past = std::move(loaded->past)};
    return change(std::move(record));
  };
  std::vector<Status> statuses;
  for (const JobId& id : ids) statuses.push_back(replay_one(id));
  needs_sync_ = true;
  return statuses;
}

Status Ledger::pause(const std::string& queue, bool paused) {
  if (!core::is_name(queue)) {
    return Error{ErrorCode::kInvalidArgument, "queue " + core::quoted(queue) + " is not a valid name"};
  }
  if (paused && state_.queues().names().full() && !state_.queues().names().find(queue)) {
    return Error{ErrorCode::kOverloaded, "there are too many different queues already"};
  }
  if (Status roomy = make_room(256, true); !roomy) return roomy;
  const journal::QueueRecord record{queue, paused};
  append(*journal_, record);
  needs_sync_ = true;
  return state_.apply(record);
}

}  // namespace bide::engine
