// Ledger, settling: how attempts end, and with them leases.

#include <algorithm>
#include <utility>
#include <variant>

#include "engine/ledger.h"
#include "platform/fatal.h"

namespace bide::engine {

using journal::ChangeCause;
using platform::require;

Error lease_lost(const JobId& id) {
  return Error{ErrorCode::kLeaseLost, "the lease of job " + id.to_string() + " is lost: another attempt has it, or it is finished"};
}

namespace {

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

}  // namespace

std::vector<Status> Ledger::settle(SettleBatch batch) {
  std::vector<Settlement>& settlements = batch.settlements;
  std::vector<Status> statuses;
  statuses.reserve(settlements.size());
  constexpr std::size_t kAhead = 8;
  auto refused = batch.refused.begin();
  std::size_t first_effect = 0;
  for (std::size_t i = 0; i < settlements.size(); ++i) {
    if (i + kAhead < settlements.size()) state_.prefetch(settlements[i + kAhead].lease);
    const Error* fault = refused != batch.refused.end() && refused->first == i ? &(refused++)->second : nullptr;
    const std::size_t effects = settlements[i].effects.size();
    statuses.push_back(settle_one(settlements[i], fault, batch.encoded_effects, first_effect));
    first_effect += effects;
  }
  needs_sync_ = true;
  return statuses;
}

Status Ledger::settle_one(Settlement& settlement, const Error* refused, const EncodedJobs& encoded,
                          std::size_t first_effect) {
  const LeaseRef& lease = settlement.lease;
  const Slot slot = state_.find(lease);
  if (slot == kNoSlot) {
    const bool again = std::holds_alternative<Done>(settlement.outcome) && finished_ids_.was_settled(lease.token);
    return again ? Status() : no_such_job(lease.id);
  }
  if (state_[slot].entry_state() != EntryState::kRunning || lease_of(slot).token != lease.token) {
    if (state_[slot].entry_state() == EntryState::kQuarantined) return lease_lost(lease.id);
    // A body that this lease saved has its token, too, and is not the end of it.
    if (state_[slot].entry_state() == EntryState::kRunning && lease_of(slot).lost_token == lease.token) {
      return lease_lost(lease.id);
    }
    const auto before = settled_before(slot, settlement);
    if (!before) return before.error();
    return *before ? Status() : lease_lost(lease.id);
  }
  if (refused != nullptr) return *refused;
  std::size_t room = kRoomForChange;
  for (const Job& effect : settlement.effects) {
    if (!state_.has_names_left(effect, settlement.effects.size())) return too_many_names();
    if (Status known = check_awaited(effect, settlement.effects); !known) {
      return Error{ErrorCode::kInvalidArgument, "an effect of job " + lease.id.to_string() + ": " + known.error().message};
    }
    room += room_for(effect);
  }
  if (const auto* done = std::get_if<Done>(&settlement.outcome)) room += done->result.size() + done->content_type.size();
  if (const auto* again = std::get_if<RetryAt>(&settlement.outcome); again != nullptr && again->body) {
    room += again->body->size() + Limits::kHeaderBytes;
  }
  auto completions = completions_of(slot, settlement.outcome);
  if (!completions) return quarantine_if_unreadable(slot, completions.error());
  // Effects and completions must not count on the same free names.
  const std::size_t made = settlement.effects.size() + completions->size();
  std::erase_if(*completions, [&](const Job& job) { return !state_.has_names_left(job, made); });
  for (const Job& job : *completions) room += room_for(job);
  if (Status roomy = make_room(room, true); !roomy) return roomy;

  // Outcome and effects go into the same batch, which is atomic. The outcome comes first: if a record that it needs cannot
  // be read, nothing has been changed; and an effect may take over the unique key of a job that is done.
  const auto end = [&]() -> Status {
    const bool cancelled = lease_of(slot).cancel_requested;
    if (auto* done = std::get_if<Done>(&settlement.outcome)) return append_done(slot, *done);
    if (cancelled && !std::holds_alternative<Dead>(settlement.outcome)) {
      return remove(lease.id, journal::RemoveCause::kCancelled);
    }
    const auto* returned = std::get_if<Returned>(&settlement.outcome);
    if (returned != nullptr) return give_back(slot, *returned, EndedBy::kSettle);
    return end_attempt(slot, settlement.outcome, EndedBy::kSettle);
  };
  if (Status ended = end(); !ended) return quarantine_if_unreadable(slot, ended.error());
  accept_effects(std::move(settlement.effects), encoded, first_effect);
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
  if (find_lease(lease) == nullptr) return lease_lost(lease.id);
  const Running& running = lease_of(slot);
  if (Status roomy = make_room(kRoomForChange + body.size() + Limits::kHeaderBytes, false); !roomy) return roomy;
  auto loaded = load(slot);
  if (!loaded) return quarantine_if_unreadable(slot, loaded.error());
  const Entry& entry = state_[slot];
  loaded->job.body = std::move(body);
  // Written as an attempt that ended with a new body, and the same lease granted again, in one batch.
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
  // A worker that saves a body has received the lease; the mark must follow the lease that was written again.
  const journal::Delivered delivered{{{lease.id, lease.token}}};
  append(*journal_, delivered);
  return state_.apply(delivered);
}

// Whether the last record of the job is the end of the lease with this token, with the same kind of outcome: a repeated
// settle succeeds, a settle with another outcome does not.
Result<bool> Ledger::settled_before(Slot slot, const Settlement& settlement) {
  const Entry& entry = state_[slot];
  const std::uint64_t token = settlement.lease.token;
  const bool by_body = !entry.has_details();
  if (by_body && (entry.body_bytes == 0 || entry.attempts == 0)) return false;
  const auto read = journal_->read(by_body ? entry.body() : entry.details());
  if (!read) return read.error();
  const auto unwrapped = unwrap(*read);
  if (!unwrapped) return unwrapped.error();
  const journal::RecordView& view = *unwrapped;
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
  const Running& running = lease_of(slot);
  journal::DoneRecord record{.id = state_[slot].id,
                             .token = running.token,
                             .at_ms = now_ms(),
                             .attempts = static_cast<std::uint32_t>(state_[slot].attempts),
                             .result = std::move(done.result),
                             .content_type = std::move(done.content_type),
                             .past = {}};
  // The history of earlier attempts; if it cannot be read the job is done all the same.
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
  // Those of a settlement are accepted with its effects.
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
  const std::uint64_t token = by == EndedBy::kSettle ? lease_of(slot).token : 0;
  add_fault(loaded.past, static_cast<std::uint32_t>(entry.attempts), now_ms(), again != nullptr ? again->fault : dead->fault,
            again != nullptr ? again->error : dead->error);
  const std::int64_t due_ms = again == nullptr ? 0 : due_after(again->after);
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
    const auto applied = state_.apply(brief_of(loaded.job, record), at, slot);
    return applied ? Status() : applied.error();
  }
  journal::Changed record = change_of(slot, ChangeCause::kFault, std::move(loaded.past));
  record.token = token;
  record.due_ms = due_ms;
  if (dead != nullptr) record.dead = dead->reason;
  needs_sync_ = true;
  if (Status changed = change(record); !changed) return changed;
  if (dead != nullptr) finished(record.id);
  accept_effects(std::move(*completions));
  return {};
}

Status Ledger::give_back(Slot slot, const Returned& returned, EndedBy by) {
  auto past = load_past(slot);
  if (!past) return past.error();
  const Entry& entry = state_[slot];
  past->note = cut(returned.note);
  past->unheard = 0;
  journal::Changed record = change_of(slot, ChangeCause::kReturned, std::move(*past));
  if (by == EndedBy::kSettle) record.token = lease_of(slot).token;
  // Not charged, and unless a wait was asked for due when it was: it keeps its place in the queue.
  const bool waits = returned.after.count() > 0;
  record.due_ms = waits ? due_after(returned.after) : state_.due(entry);
  record.due_is_wall = !waits && entry.due_is_wall != 0;
  --record.attempts;
  release_credit(slot);
  return change(record);
}

journal::Changed Ledger::change_of(Slot slot, ChangeCause cause, journal::Past past) const {
  journal::Changed record;
  record.id = state_[slot].id;
  record.cause = cause;
  record.at_ms = now_ms();
  record.attempts = static_cast<std::uint32_t>(state_[slot].attempts);
  record.past = std::move(past);
  return record;
}

Status Ledger::change(const journal::Changed& record) {
  const journal::RecordRef at = append(*journal_, record);
  return state_.apply(record, at);
}

Status Ledger::remove(const JobId& id, journal::RemoveCause cause) {
  const Slot slot = state_.find(id);
  if (state_[slot].entry_state() == EntryState::kRunning) release_credit(slot);
  cache_.drop(slot);
  const journal::Removed record{.cause = cause, .at_ms = now_ms(), .ids = {id}};
  append(*journal_, record);
  needs_sync_ = true;
  Status applied = state_.apply(record);
  finished(record.ids.front());
  return applied;
}

}  // namespace bide::engine
