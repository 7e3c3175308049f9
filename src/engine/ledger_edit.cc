// Ledger, editing: other content and rules for a job that waits or is dead.

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "core/duration.h"
#include "core/job_rules.h"
#include "core/time_text.h"
#include "engine/ledger.h"

namespace bide::engine {

namespace {

// Takes over the fields that are given; what was changed, for people.
std::string apply_edit(Job& job, JobEdit& edit) {
  std::string changed;
  const auto set = [&](std::string_view name, auto& field, auto& given, auto&& say) {
    if (!given) return;
    changed += (changed.empty() ? "" : ", ") + std::string(name);
    if (const std::string what = say(field, *given); !what.empty()) changed += " " + what;
    field = std::move(*given);
  };
  const auto from_to = [](const auto& from, const auto& to) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(from)>>) {
      return std::to_string(from) + " to " + std::to_string(to);
    } else {
      return from + " to " + to;
    }
  };
  const auto bytes = [](const std::string& from, const std::string& to) {
    return std::to_string(from.size()) + " to " + std::to_string(to.size()) + " bytes";
  };
  const auto policy = [](const RetryPolicy& from, const RetryPolicy& to) { return from.to_string() + " to " + to.to_string(); };
  const auto span = [](Milliseconds from, Milliseconds to) {
    return core::format_duration(from) + " to " + core::format_duration(to);
  };
  const auto nothing = [](const auto&, const auto&) { return std::string(); };
  set("body", job.body, edit.body, bytes);
  set("content type", job.content_type, edit.content_type, from_to);
  set("headers", job.headers, edit.headers, nothing);
  set("queue", job.queue, edit.queue, from_to);
  set("priority", job.priority, edit.priority, from_to);
  set("retry", job.retry, edit.retry, policy);
  set("time limit", job.time_limit, edit.time_limit, span);
  set("due", job.due, edit.due, [](const auto&, Time to) { return "to " + core::format_time(to); });
  return changed;
}

}  // namespace

Result<journal::Changed> Ledger::last_change(Slot slot) {
  const auto view = journal_->read(state_[slot].details());
  if (!view) return view.error();
  const auto inner = unwrap(*view);
  if (!inner) return inner.error();
  journal::Changed record;
  if (Status decoded = decode(*inner, record); !decoded) return decoded.error();
  return record;
}

Status Ledger::edit(const JobId& id, JobEdit edit) {
  Slot slot = state_.find(id);
  if (slot == kNoSlot) return no_such_job(id);
  const EntryState state = state_[slot].entry_state();
  const bool dead = state == EntryState::kDead;
  if (!dead && state != EntryState::kScheduled && state != EntryState::kReady && state != EntryState::kWaiting) {
    return wrong_state(id, state, "scheduled, ready, waiting and dead");
  }
  if (dead && edit.due) {
    return Error{ErrorCode::kInvalidArgument, "due: job " + id.to_string() + " is dead; replay it, with a delay if it is to wait"};
  }
  auto loaded = load(slot);
  if (!loaded) return quarantine_if_unreadable(slot, loaded.error());
  Job& job = loaded->job;
  const bool moves_due = edit.due.has_value();
  const std::string changed = apply_edit(job, edit);
  if (changed.empty()) return Error{ErrorCode::kInvalidArgument, "nothing is to be changed: give at least one field"};
  if (Status valid = core::validate(job, Time(Milliseconds(now_ms()))); !valid) return valid;
  if (!state_.has_names_left(job, 1)) return too_many_names();
  if (Status roomy = make_room(room_for(job) + kRoomForChange, false); !roomy) return roomy;

  journal::Changed goes_on = change_of(slot, journal::ChangeCause::kRescheduled, std::move(loaded->past));
  if (state_[slot].has_details()) {
    auto before = last_change(slot);
    if (!before) return quarantine_if_unreadable(slot, before.error());
    // Who ended its last attempt stays as it is, and so does when it died.
    goes_on.cause = before->cause;
    goes_on.token = before->token;
    goes_on.dead = before->dead;
    goes_on.past = std::move(before->past);
    if (dead) goes_on.at_ms = before->at_ms;
  }
  goes_on.past.note = std::string(kEditedNote) + changed;
  goes_on.due_ms = state_.due(slot);
  goes_on.due_is_wall = state_[slot].due_is_wall != 0;
  if (moves_due) {
    const std::int64_t due_ms = job.due->time_since_epoch().count();
    goes_on.due_ms = std::max(due_ms, now_ms());
    goes_on.due_is_wall = due_ms > now_ms();
  }
  const journal::Acceptance record{.due_ms = goes_on.due_ms,
                                   .accepted_ms = loaded->accepted_ms,
                                   .due_is_wall = goes_on.due_is_wall,
                                   .past = {},
                                   .edited = true};
  cache_.drop(slot);
  needs_sync_ = true;
  const journal::RecordRef at = append(*journal_, job, record);
  const auto applied = state_.apply(brief_of(job, record), at, slot);
  if (!applied) return applied.error();
  if (state_.queues().has_new()) attach_to_new_queues();
  return change(goes_on);
}

}  // namespace bide::engine
