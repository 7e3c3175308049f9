// Ledger, schedules: due times become jobs, in the batch of the record that says so.

#include <algorithm>
#include <utility>

#include "core/did_you_mean.h"
#include "core/quote.h"
#include "core/schedule_rules.h"
#include "engine/journal/record_fields.h"
#include "engine/ledger.h"

namespace bide::engine {

using journal::Decision;
using journal::DecisionKind;
using journal::DecisionsRecord;
using journal::ScheduleRecord;
using journal::to_ms;
using journal::to_time;

namespace {

constexpr int kSchedulesAStep = 64;
constexpr std::size_t kDecisionsAStep = 150;  // Of one schedule.
constexpr std::size_t kRoomForDecisions = 64 * 1024;
constexpr std::int64_t kScheduleRetryMs = 1000;

std::string schedule_bytes(const Schedule& schedule) {
  std::string bytes;
  core::Encoder out(bytes);
  journal::put_schedule(out, {.schedule = schedule});
  return bytes;
}

// What may be different in a moment; otherwise no job will come of it.
bool is_passing(const Error& error) {
  return error.code != ErrorCode::kAlreadyExists && error.code != ErrorCode::kInvalidArgument &&
         error.code != ErrorCode::kUnsupported;
}

}  // namespace

// Never early: the wall clock may be a little behind the ledger's time.
std::int64_t Ledger::schedule_now_ms() const { return std::min(now_us_, wall_us_) / 1000; }

bool Ledger::lives(const JobId& id) const {
  const Slot slot = id.is_nil() ? kNoSlot : state_.find(id);
  if (slot == kNoSlot) return false;
  switch (state_[slot].entry_state()) {
    case EntryState::kScheduled:
    case EntryState::kReady:
    case EntryState::kRunning:
    case EntryState::kWaiting: return true;
    default: return false;
  }
}

void Ledger::set_schedule_time(const std::string& name) {
  const KnownSchedule* known = state_.schedules().find(name);
  if (known == nullptr) return schedule_times_.forget(name);
  const bool blocked = lives(known->last_job);
  if (!known->waiting.empty() && blocked) schedules_by_last_job_[known->last_job] = name;
  schedule_times_.set(*known, schedule_now_ms(), !known->waiting.empty() && !blocked);
}

void Ledger::start_schedules() {
  schedules_seen_ms_ = schedule_now_ms();
  for (const auto& [name, known] : state_.schedules().all()) set_schedule_time(name);
}

std::optional<std::int64_t> Ledger::next_schedule_us() const {
  const auto* first = schedule_times_.first();
  if (first == nullptr) return std::nullopt;
  const std::int64_t due_us = first->first * 1000;
  return std::max({elapsed_us_ + std::max(due_us - now_us_, due_us - wall_us_), elapsed_us_, schedule_retry_ms_ * 1000});
}

Status Ledger::run_schedules() {
  const std::int64_t now = schedule_now_ms();
  // The clock was set back: for schedules that are ahead by far this may be the moment to go on from.
  if (now < std::exchange(schedules_seen_ms_, now) - kWrongClockMs / 2) start_schedules();
  if (elapsed_us_ / 1000 < schedule_retry_ms_) return {};
  for (int left = kSchedulesAStep; left > 0; --left) {
    const auto* first = schedule_times_.first();
    if (first == nullptr || first->first > now) return {};
    const std::string name = first->second;
    const Status decided = decide(name);
    set_schedule_time(name);
    if (decided) continue;
    if (!is_passing(decided.error()) || failed_) return decided;
    schedule_retry_ms_ = elapsed_us_ / 1000 + kScheduleRetryMs;
    return {};
  }
  return {};
}

// The job of a due time, or the reason why there is none. The error is one that passes.
Result<Decision> Ledger::make_occurrence(const Schedule& schedule, std::uint32_t version, Time due) {
  Decision decision;
  decision.due_ms = to_ms(due);
  decision.version = version;
  const auto made = make_scheduled(core::scheduled_job(schedule, version, due));
  if (made) {
    decision.job = *made;
  } else if (is_passing(made.error())) {
    return made.error();
  } else {
    decision.kind = DecisionKind::kNotMade;
    decision.note = made.error().message;
  }
  return decision;
}

Result<JobId> Ledger::make_scheduled(Job job) {
  std::vector<Job> jobs;
  jobs.push_back(std::move(job));
  const auto results = enqueue(EnqueueBatch::of(std::move(jobs), to_time(now_ms())));
  if (!results.front()) return results.front().error();
  return results.front()->id;
}

Status Ledger::decide(const std::string& name) {
  const KnownSchedule& known = *state_.schedules().find(name);
  const Schedule& schedule = known.record.schedule;
  const std::int64_t now = schedule_now_ms();
  DecisionsRecord record{.name = name, .decided_ms = known.record.decided_ms, .decisions = {}};
  if (Status roomy = make_room(kRoomForDecisions, true); !roomy) return roomy;
  if (record.decided_ms > now + kWrongClockMs) {
    record.decided_ms = now;
    return write_decisions(record);
  }
  const auto* next = schedule_times_.find(name);
  if (next == nullptr || !next->times) return {};

  JobId last = known.last_job;
  std::size_t waiting = known.waiting.size();
  Status passing;
  const auto make = [&](std::uint32_t version, Time due) {
    auto decision = make_occurrence(schedule, version, due);
    if (!decision) return passing = decision.error(), false;
    if (!decision->job.is_nil()) last = decision->job;
    record.decisions.push_back(std::move(*decision));
    return true;
  };
  for (const Decision& first : known.waiting) {
    if (lives(last) || !make(first.version, to_time(first.due_ms))) break;
    --waiting;
  }
  const auto decide_without = [&](DecisionKind kind, Time due, std::string note) {
    record.decisions.push_back(
        {.kind = kind, .due_ms = to_ms(due), .version = known.record.version, .job = {}, .note = std::move(note)});
  };
  std::int64_t decided_ms = now;
  for (const auto& [due, is_dropped] : core::due_occurrences(schedule, *next->times, to_time(record.decided_ms), to_time(now))) {
    const bool is_blocked = schedule.overlap != Overlap::kAllow && (waiting != 0 || lives(last));
    if (!passing || record.decisions.size() >= kDecisionsAStep || journal_->batch_bytes() > options_.call_bytes / 2) {
      decided_ms = to_ms(due) - 1;  // From here on in the next step.
      break;
    }
    if (is_dropped) {
      decide_without(DecisionKind::kNotMade, due, "it was missed");
    } else if (is_blocked && schedule.overlap == Overlap::kSkip) {
      decide_without(DecisionKind::kNotMade, due, "the job before it, " + last.to_string() + ", had not ended");
    } else if (is_blocked && waiting >= kMostWaiting) {
      decide_without(DecisionKind::kNotMade, due, std::to_string(waiting) + " others waited already for the job before them to end");
    } else if (is_blocked) {
      decide_without(DecisionKind::kWaits, due, {});
      ++waiting;
    } else if (!make(known.record.version, due)) {
      decided_ms = to_ms(due) - 1;
      break;
    }
  }
  if (!record.decisions.empty()) {
    record.decided_ms = std::max(record.decided_ms, decided_ms);
    if (Status written = write_decisions(record); !written) return written;
  }
  return passing;
}

Status Ledger::write_decisions(const DecisionsRecord& record) {
  append(*journal_, record);
  needs_sync_ = true;
  return state_.apply(record);
}

Status Ledger::write_schedule(const ScheduleRecord& record) {
  if (Status roomy = make_room(journal::room_for(record.schedule), true); !roomy) return roomy;
  append(*journal_, record);
  needs_sync_ = true;
  Status applied = state_.apply(record);
  set_schedule_time(record.schedule.name);
  return applied;
}

Result<const KnownSchedule*> Ledger::known_schedule(const std::string& name) const {
  const KnownSchedule* known = state_.schedules().find(name);
  if (known != nullptr) return known;
  std::vector<std::string_view> names;
  for (const auto& [other, schedule] : state_.schedules().all()) names.push_back(other);
  return Error{ErrorCode::kNotFound, "there is no schedule " + core::quoted(name) + core::did_you_mean(name, names)};
}

Result<PutSchedule> Ledger::put_schedule(Schedule schedule) {
  const std::int64_t now = schedule_now_ms();
  if (Status valid = core::check_schedule(schedule, to_time(now), &schedule_times_.zones()); !valid) return valid.error();
  std::vector<Job> example;
  example.push_back(core::scheduled_job(schedule, 1, to_time(now)));
  if (const auto batch = EnqueueBatch::of(std::move(example), to_time(now)); !batch.refused.empty()) {
    return batch.refused.front().second;
  }
  const KnownSchedule* known = state_.schedules().find(schedule.name);
  PutSchedule put{.created = known == nullptr};
  ScheduleRecord record{.schedule = std::move(schedule), .put_ms = now, .decided_ms = now};
  if (known != nullptr) {
    const Schedule& old = known->record.schedule;
    if (record.schedule.owner.empty()) record.schedule.owner = old.owner;
    if (!old.owner.empty() && old.owner != record.schedule.owner) {
      return Error{ErrorCode::kAlreadyExists, "the name " + core::quoted(old.name) + " belongs to a schedule of " +
                                                  core::quoted(old.owner) + "; choose another"};
    }
    record.paused = known->record.paused;
    record.version = known->record.version;
    if (core::same_when(old, record.schedule)) {
      record.put_ms = known->record.put_ms;
      record.decided_ms = known->record.decided_ms;
    } else {
      ++record.version;
    }
    put.changed = schedule_bytes(old) != schedule_bytes(record.schedule);
  } else if (state_.schedules().all().size() >= kMostSchedules) {
    return Error{ErrorCode::kOverloaded, "there are " + std::to_string(kMostSchedules) + " schedules, as many as there may be"};
  }
  const std::string name = record.schedule.name;
  if (put.created || put.changed) {
    if (Status written = write_schedule(record); !written) return written.error();
  }
  if (const auto* next = schedule_times_.find(name)) put.next = next->due;
  return put;
}

std::vector<ScheduleInfo> Ledger::schedules() {
  const auto state_of = [&](const JobId& id) -> std::optional<JobState> {
    const Slot slot = state_.find(id);
    if (slot != kNoSlot) return state_.shown_state(slot);
    if (finished_ids_.contains(id).value_or(false)) return JobState::kDone;
    return std::nullopt;
  };
  std::vector<ScheduleInfo> infos;
  for (const auto& [name, known] : state_.schedules().all()) {
    ScheduleInfo info{.schedule = known.record.schedule, .version = known.record.version, .paused = known.record.paused};
    if (const auto* next = schedule_times_.find(name)) info.next = next->due;
    for (const Decision& decision : known.last) {
      Occurrence occurrence{.due = to_time(decision.due_ms), .job = decision.job, .note = decision.note};
      if (decision.kind == DecisionKind::kWaits) occurrence.note = "it waits for the job before it to end";
      if (!decision.job.is_nil()) occurrence.state = state_of(decision.job);
      info.last.push_back(std::move(occurrence));
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

Status Ledger::remove_schedule(const std::string& name) {
  const auto known = known_schedule(name);
  if (!known) return known.error();
  ScheduleRecord record;
  record.schedule.name = name;
  record.removed = true;
  return write_schedule(record);
}

Status Ledger::pause_schedule(const std::string& name, bool paused) {
  const auto known = known_schedule(name);
  if (!known) return known.error();
  if ((*known)->record.paused == paused) return {};
  ScheduleRecord record = (*known)->record;
  record.paused = paused;
  // What was due meanwhile was not missed: nobody wanted it.
  if (!paused) record.decided_ms = std::max(record.decided_ms, schedule_now_ms());
  return write_schedule(record);
}

Result<JobId> Ledger::run_schedule(const std::string& name) {
  const auto known = known_schedule(name);
  if (!known) return known.error();
  const ScheduleRecord& record = (*known)->record;
  if (Status roomy = make_room(kRoomForDecisions, true); !roomy) return roomy.error();
  const auto made = make_scheduled(core::scheduled_job(record.schedule, record.version, {}));
  if (!made) return made.error();
  const Status written = write_decisions(
      {.name = name,
       .decided_ms = record.decided_ms,
       .decisions = {{.kind = DecisionKind::kByHand, .due_ms = schedule_now_ms(), .version = record.version, .job = *made, .note = {}}}});
  if (!written) return written.error();
  set_schedule_time(name);
  return *made;
}

void Ledger::audit_schedules(AuditReport& report) const {
  report.details["schedules"] = state_.schedules().all().size();
  for (const auto& [name, known] : state_.schedules().all()) {
    const auto* next = schedule_times_.find(name);
    const bool has_next = next != nullptr && (next->due || known.record.paused);
    if (!has_next) {
      report.problems.push_back("schedule " + core::quoted(name) + " is not due at any time: " +
                                (next == nullptr ? "it is unknown to the clock" : next->why_not));
    }
  }
}

}  // namespace bide::engine
