#include "engine/state.h"

#include <algorithm>

#include "platform/fatal.h"

namespace bide::engine {

using journal::RecordRef;
using journal::RecordType;
using platform::require;

namespace {

// Each adds one: of more than that are too many, they become fewer.
constexpr std::size_t kForgottenWithADone = 16;

Error misfit(const char* record, const JobId& id, const char* why) {
  return Error{ErrorCode::kDamaged, std::string("the journal says ") + record + " of job " + id.to_string() + ", " + why +
                                        "; `bide store check` says more, `bide store repair` keeps what can be read"};
}

}  // namespace

State::State(std::uint64_t done_limit, std::size_t piece, std::uint64_t done_bytes)
    : ids_(slab_),
      wheel_(slab_),
      wall_wheel_(slab_),
      queues_(slab_, groups_),
      done_limit_(done_limit),
      piece_(piece),
      most_done_bytes_(done_bytes) {
  (void)workers_.hold("");
}

Entry& State::touch(Slot slot) {
  Entry& entry = slab_[slot];
  changing(slot);
  if (saved_ && entry.epoch != epoch_) {
    saved_(slot);
    entry.epoch = epoch_;
  }
  return entry;
}

Result<Slot> State::apply(const journal::AcceptedBrief& record, RecordRef at, Slot slot) {
  last_time_ms_ = std::max(last_time_ms_, record.accepted_ms);
  const bool replaces_body = record.token != 0;
  // In recovery a new id is put into the index later, with others, and found out then if it is there already.
  const bool index_later = !started_ && !replaces_body && !record.edited && !slab_.has_free();
  if (slot == kLookUp && index_later) {
    slot = kNoSlot;
  } else if (slot == kLookUp) {
    if (Status indexed = index_ids(); !indexed) return indexed.error();
    slot = ids_.find(record.id);
  }
  if (replaces_body) {
    if (slot == kNoSlot || slab_[slot].entry_state() != EntryState::kRunning) {
      return misfit("a new body", record.id, "which is not running");
    }
    end_lease(slot);
    replaced_by_ = record.token;
    Entry& entry = touch(slot);
    count(entry, -1);
    release_group(slot);
    release_names(entry);
    live_.subtract(entry.body());
    set_details(entry, {});
  } else if (record.edited) {
    auto emptied = empty_for_edit(slot, record.id);
    if (!emptied) return emptied.error();
    slot = *emptied;
  } else {
    if (slot != kNoSlot) {
      if (slab_[slot].entry_state() != EntryState::kDone) return misfit("accepted", record.id, "which is there already");
      forget(slot);  // It was done and forgotten, which is not written down, and came again.
    }
    slot = allocate();
    Entry& entry = slab_[slot];
    entry = Entry{};
    entry.id = record.id;
    entry.next = kNoSlot;
    entry.epoch = epoch_;
    if (index_later) {
      index_in_background();
    } else {
      ids_.insert(slot);
      indexed_ = indexing_ = slab_.size();
    }
    ++counters_.accepted;
  }
  Entry& entry = slab_[slot];
  entry.due_is_wall = record.due_is_wall;
  set_due(entry, record.due_ms);
  entry.has_expiry = record.has_expiry;
  hold_names(entry, record.queue, record.kind);
  hold_group(slot, record.group);
  entry.priority = static_cast<std::int8_t>(record.priority);
  entry.attempts = record.attempts & 0x7fffu;
  entry.set_body(at);
  live_.add(at);
  if (!record.unique_key.empty() && !replaces_body && !record.edited) {
    entry.has_unique_key = 1;
    keys_.hold(record.unique_key, slot);
  }
  if (record.unique_for.count() > 0 && !record.unique_key.empty() && !replaces_body) {
    held_keys_.hold(record.unique_key, record.id, record.accepted_ms + record.unique_for.count() - shift_ms_);
  }
  if (!replaces_body && !record.edited) {
    if (Status related = relate(slot, record); !related) return related.error();
  }
  settle_down(slot);
  return slot;
}

// Takes the job out of its list and forgets what its record said of it; its unique key stays its own.
Result<Slot> State::empty_for_edit(Slot slot, const JobId& id) {
  if (slot == kNoSlot) return misfit("an edit", id, "which is not there");
  const EntryState state = slab_[slot].entry_state();
  if (state != EntryState::kScheduled && state != EntryState::kReady && state != EntryState::kDead &&
      state != EntryState::kWaiting) {
    return misfit("an edit", id, "which neither waits nor is dead");
  }
  if (is_linked(slab_[slot])) slot = relocate(slot);
  Entry& entry = touch(slot);
  no_longer_taken(slot);
  count(entry, -1);
  release_group(slot);
  release_names(entry);
  live_.subtract(entry.body());
  set_details(entry, {});
  return slot;
}

Status State::apply(const journal::Granted& record, const std::vector<Slot>& slots) {
  last_time_ms_ = std::max(last_time_ms_, record.at_ms);
  const std::uint16_t worker = hold_worker(record.worker);
  for (std::size_t i = 0; i < record.grants.size(); ++i) {
    const journal::Grant& grant = record.grants[i];
    const Slot slot = slots.empty() ? ids_.find(grant.id) : slots[i];
    if (slot == kNoSlot) return misfit("granted", grant.id, "which is not there");
    Entry& entry = touch(slot);
    const EntryState state = entry.entry_state();
    // In recovery nothing is ready yet: what is due is only decided at its end.
    if (state != EntryState::kReady && (started_ || state != EntryState::kScheduled)) {
      return misfit("granted", grant.id, "which is not waiting");
    }
    if (entry.has_group) ++groups_[groups_.of(slot)].running;
    no_longer_taken(slot);
    set_state(slot, EntryState::kRunning);
    // In recovery a lease that saved a body is granted again.
    if (grant.token != replaced_by_) count_start(slot, record.at_ms);
    // Counted before the handler runs: a handler that kills the process must use up attempts too.
    entry.attempts = (entry.attempts + 1) & 0x7fffu;
    entry.next = leases_.add(Running{.token = grant.token,
                                     .slot = slot,
                                     .started_ms = record.at_ms,
                                     .lease_ms = record.lease_ms,
                                     .worker = workers_.hold(worker),
                                     .outlives_process = record.outlives_process,
                                     .body_saved = grant.token == replaced_by_});
    last_token_ = std::max(last_token_, grant.token);
  }
  workers_.release(worker);
  return {};
}

Status State::apply(const journal::Changed& record, RecordRef at) {
  last_time_ms_ = std::max(last_time_ms_, record.at_ms);
  Slot slot = ids_.find(record.id);
  if (slot == kNoSlot) return misfit("a change", record.id, "which is not there");
  const EntryState before = slab_[slot].entry_state();
  if (before == EntryState::kDone) return misfit("a change", record.id, "which is done");
  if (before == EntryState::kRunning) {
    end_lease(slot);
  } else if (is_linked(slab_[slot])) {
    slot = relocate(slot);
  }
  quarantined_.erase(slot);
  Entry& entry = touch(slot);
  no_longer_taken(slot);
  count(entry, -1);
  set_details(entry, at);
  // Whoever replays a job wants it to run, however late.
  if (record.cause == journal::ChangeCause::kReplayed) entry.has_expiry = 0;
  entry.attempts = record.attempts & 0x7fffu;
  entry.due_is_wall = record.due_is_wall;
  if (record.dead) {
    keys_.release(slot);
    entry.set_due(record.at_ms);
    entry.set_state(EntryState::kDead);
    count(entry, +1);
    // One that comes from another broker may have died before others.
    if (started_) dead_.insert_by_due(slab_, slot);
    end_waits(slot, Relations::End::kDead);
    return {};
  }
  if (!record.unique_key.empty()) keys_.hold(record.unique_key, slot);
  set_due(entry, record.due_ms);
  settle_down(slot);
  return {};
}

Status State::apply(const journal::DoneRecord& record, RecordRef at, Slot slot) {
  last_time_ms_ = std::max(last_time_ms_, record.at_ms);
  if (slot == kLookUp) slot = ids_.find(record.id);
  if (slot == kNoSlot) return misfit("done", record.id, "which is not there");
  if (slab_[slot].entry_state() != EntryState::kRunning) return misfit("done", record.id, "which is not running");
  end_lease(slot);
  keys_.release(slot);
  Entry& entry = touch(slot);
  // While the journal is replayed none is dropped: records behind this one may tell where it was moved to.
  if (started_ && most_done_bytes_ == 0) {
    live_.subtract(entry.body());
    entry.set_body({});
  }
  set_details(entry, at);
  entry.set_due(record.at_ms);
  set_state(slot, EntryState::kDone);
  release_group(slot);
  names_of_done(entry, true);
  ++counters_.done;
  ++done_count_;
  steps_.remove(slot);
  end_waits(slot, Relations::End::kDone);
  if (started_) {
    done_.push_back(slab_, slot);
    keep_body_of_done(slot);
    forget_done(0, kForgottenWithADone);
  }
  return {};
}

Status State::apply(const journal::Removed& record) {
  last_time_ms_ = std::max(last_time_ms_, record.at_ms);
  for (const JobId& id : record.ids) {
    const Slot slot = ids_.find(id);
    if (slot == kNoSlot) return misfit("removed", id, "which is not there");
    forget(slot);
    switch (record.cause) {
      case journal::RemoveCause::kCancelled: ++counters_.cancelled; break;
      case journal::RemoveCause::kDeleted: ++counters_.deleted; break;
      case journal::RemoveCause::kPurged: ++counters_.purged; break;
      case journal::RemoveCause::kForgotten: ++counters_.forgotten; break;
    }
  }
  return {};
}

Status State::apply(const journal::QueueRecord& record) {
  const auto known = queues_.names().find(record.name);
  const bool was_paused = known && queues_[*known].paused;
  if (was_paused == record.paused) return {};
  if (record.paused) {
    queues_[hold_queue(record.name)].paused = true;
  } else {
    queues_[*known].paused = false;
    release_queue(*known);
  }
  return {};
}

Status State::apply(const Binding& record) {
  const bool gone = record.patterns.empty() && record.idle == Milliseconds(0);
  const auto known = bindings_.find(record.queue);
  if (known == bindings_.end()) {
    if (gone) return {};
    queues_[hold_queue(record.queue)].bound = true;
    bindings_.emplace(record.queue, record);
  } else if (gone) {
    const std::uint16_t number = *queues_.names().find(record.queue);
    bindings_.erase(known);
    queues_[number].bound = false;
    release_queue(number);
  } else {
    known->second = record;
  }
  return {};
}

Status State::apply(const journal::ScheduleRecord& record) {
  schedules_.apply(record);
  return {};
}

Status State::apply(const journal::DecisionsRecord& record) {
  schedules_.apply(record);
  return {};
}

Status State::apply(const journal::ClockStep& record) {
  // How long an attempt has run does not change with the clock.
  for (Running& running : leases_.places()) {
    if (running.slot != kNoSlot) running.started_ms += record.by_ms;
  }
  last_time_ms_ += record.by_ms;
  shift_ms_ += record.by_ms;
  if (started_) set_time(now_ms_ + record.by_ms, wall_ms_);
  return {};
}

Status State::apply(const journal::CancelAsked& record) {
  last_time_ms_ = std::max(last_time_ms_, record.at_ms);
  const Slot slot = ids_.find(record.id);
  if (slot == kNoSlot) return misfit("cancel asked", record.id, "which is not there");
  if (slab_[slot].entry_state() != EntryState::kRunning) return misfit("cancel asked", record.id, "which is not running");
  leases_[slab_[slot].next].cancel_requested = true;
  return {};
}

Status State::apply(const journal::Delivered& record) {
  for (const journal::Grant& lease : record.leases) {
    const Slot slot = ids_.find(lease.id);
    if (slot == kNoSlot) return misfit("delivered", lease.id, "which is not there");
    if (slab_[slot].entry_state() != EntryState::kRunning) {
      return misfit("delivered", lease.id, "which is not running");
    }
    Running& running = leases_[slab_[slot].next];
    if (running.token == lease.token) running.delivered = true;
  }
  return {};
}

Status State::apply(const journal::StepRecord& record) {
  const Slot slot = ids_.find(record.id);
  if (slot == kNoSlot) return misfit("a step", record.id, "which is not there");
  if (slab_[slot].entry_state() != EntryState::kRunning) return misfit("a step", record.id, "which is not running");
  touch(slot);
  steps_.save(slot, record.step);
  return {};
}

Status State::apply(const journal::Moved& record, RecordRef at) {
  const auto owner = job_of(record.inner);
  if (!owner) return owner.error();
  if (owner->is_nil()) return Error{ErrorCode::kDamaged, "the journal says moved of a record that never moves"};
  const JobId id = *owner;
  const Slot slot = ids_.find(id);
  // A done job may have been forgotten, which is not written down.
  if (slot == kNoSlot) return {};
  Entry& entry = touch(slot);
  if (entry.body_bytes != 0 && entry.body_address == record.from.address) {
    live_.subtract(entry.body());
    if (is_waiting(entry)) queues_[static_cast<std::uint16_t>(entry.queue)].waiting_bytes += at.bytes - entry.body().bytes;
    entry.set_body(at);
    live_.add(at);
  } else if (entry.has_details() && entry.details_address == record.from.address) {
    set_details(entry, at);
  } else {
    return misfit("moved", id, "but from elsewhere");
  }
  return {};
}

namespace {

template <class Record>
Status decode_and(const journal::RecordView& view, auto&& then) {
  Record record;
  if (Status decoded = decode(view, record); !decoded) return decoded;
  return then(record);
}

}  // namespace

Status State::apply(const journal::RecordView& view) {
  const RecordRef at = view.at;
  if (static_cast<RecordType>(view.type) != RecordType::kAccepted) {
    if (Status indexed = index_ids(); !indexed) return indexed;
  }
  switch (static_cast<RecordType>(view.type)) {
    case RecordType::kMark: return {};
    case RecordType::kAccepted:
      return decode_and<journal::AcceptedBrief>(view, [&](const auto& record) -> Status {
        const auto applied = apply(record, at);
        return applied ? Status() : applied.error();
      });
    case RecordType::kGranted:
      return decode_and<journal::Granted>(view, [&](const auto& record) { return apply(record); });
    case RecordType::kChanged:
      return decode_and<journal::Changed>(view, [&](const auto& record) { return apply(record, at); });
    case RecordType::kDone:
      return decode_and<journal::DoneRecord>(view, [&](const auto& record) { return apply(record, at); });
    case RecordType::kRemoved:
      return decode_and<journal::Removed>(view, [&](const auto& record) { return apply(record); });
    case RecordType::kQueue:
      return decode_and<journal::QueueRecord>(view, [&](const auto& record) { return apply(record); });
    case RecordType::kClock:
      return decode_and<journal::ClockStep>(view, [&](const auto& record) { return apply(record); });
    case RecordType::kMoved:
      return decode_and<journal::Moved>(view, [&](const auto& record) { return apply(record, at); });
    case RecordType::kCancelAsked:
      return decode_and<journal::CancelAsked>(view, [&](const auto& record) { return apply(record); });
    case RecordType::kDelivered:
      return decode_and<journal::Delivered>(view, [&](const auto& record) { return apply(record); });
    case RecordType::kBound:
      return decode_and<Binding>(view, [&](const auto& record) { return apply(record); });
    case RecordType::kStep:
      return decode_and<journal::StepRecord>(view, [&](const auto& record) { return apply(record); });
    case RecordType::kRules:
      return decode_and<QueueRules>(view, [&](const auto& record) { return apply(record); });
    case RecordType::kSchedule:
      return decode_and<journal::ScheduleRecord>(view, [&](const auto& record) { return apply(record); });
    case RecordType::kDecisions:
      return decode_and<journal::DecisionsRecord>(view, [&](const auto& record) { return apply(record); });
  }
  return Error{ErrorCode::kNewerVersion, "the journal has a record of type " + std::to_string(view.type) +
                                             ", which this bide does not know: use the version that wrote it"};
}

}  // namespace bide::engine
