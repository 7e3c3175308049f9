// Ledger, damage: a record that cannot be read puts its job into quarantine and is reported; everything else goes on.

#include <string_view>

#include "engine/ledger.h"

namespace bide::engine {

namespace {

constexpr std::size_t kMostProblems = 20;
constexpr std::size_t kMaxReported = 100;  // A disk on which nothing can be read must not fill the log.

std::string where(const journal::Journal::Place& place, journal::Address address) {
  if (place.path.empty()) return "address " + std::to_string(address) + ", whose segment is missing";
  return place.path + " offset " + std::to_string(place.offset);
}

constexpr std::string_view kAdvice =
    "; stop the process, then `bide store check` says more, `bide store repair` keeps what can be read";

}  // namespace

Error Ledger::quarantine_if_unreadable(Slot slot, const Error& error) {
  if (error.code == ErrorCode::kDamaged || error.code == ErrorCode::kIoError) quarantine(slot);
  return error;
}

void Ledger::quarantine(Slot slot) {
  const Entry& entry = state_[slot];
  const JobId id = entry.id;
  const bool by_details = entry.has_details() && !journal_->read(entry.details());
  const Quarantine why{now_ms(), by_details ? entry.details() : entry.body()};
  if (entry.entry_state() == EntryState::kRunning) release_credit(slot);
  cache_.drop(slot);
  state_.quarantine(slot, why);
  report_damage(why.unreadable.address, damage_text(id, why));
  finished(id);
}

void Ledger::report_damage(journal::Address at, const std::string& text) {
  if (!options_.on_damage || damage_reported_.size() >= kMaxReported || !damage_reported_.insert(at).second) return;
  const journal::Journal::Place place = journal_->place_of(at);
  options_.on_damage({place.path, place.offset, text});
}

std::string Ledger::damage_text(const JobId& id, const Quarantine& why) const {
  return "job " + id.to_string() + " is quarantined: its record at " +
         where(journal_->place_of(why.unreadable.address), why.unreadable.address) + " cannot be read" +
         std::string(kAdvice);
}

std::string Ledger::unreadable_text(journal::Address at) const {
  return "a segment is not compacted: it cannot be read at " + where(journal_->place_of(at), at) + std::string(kAdvice);
}

void Ledger::report_unreadable_segments() {
  for (const auto& [base, at] : compactor_->unreadable()) {
    report_damage(at, unreadable_text(at));
  }
}

void Ledger::list_damage(std::vector<std::string>& problems) const {
  for (const auto& [slot, why] : state_.quarantined()) {
    if (problems.size() >= kMostProblems) return;
    problems.push_back(damage_text(state_[slot].id, why));
  }
  for (const auto& [base, at] : compactor_->unreadable()) {
    if (problems.size() >= kMostProblems) return;
    problems.push_back(unreadable_text(at));
  }
  for (const Damage& damage : finished_ids_.damage()) {
    if (problems.size() >= kMostProblems) return;
    problems.push_back(damage.text);
  }
}

// From memory alone.
JobInfo Ledger::describe_unreadable(Slot slot, const Error& error) const {
  const Entry& entry = state_[slot];
  JobInfo info;
  info.job.id = entry.id;
  info.job.queue = state_.queues().names()[static_cast<std::uint16_t>(entry.queue)];
  info.job.kind = state_.kinds()[static_cast<std::uint16_t>(entry.kind)];
  info.job.priority = static_cast<int>(entry.priority);
  info.job.group = state_.group_name(slot);
  info.due = Time(Milliseconds(state_.due(entry)));
  info.attempts = static_cast<std::uint32_t>(entry.attempts);
  info.note = error.message;
  switch (entry.entry_state()) {
    case EntryState::kQuarantined: {
      const Quarantine& why = state_.quarantined().at(slot);
      info.state = JobState::kDead;
      info.finished = Time(Milliseconds(why.since_ms));
      info.dead_reason = DeadReason::kDamaged;
      info.note = damage_text(entry.id, why);
      break;
    }
    case EntryState::kDone:
    case EntryState::kDead:
      info.state = entry.entry_state() == EntryState::kDone ? JobState::kDone : JobState::kDead;
      info.finished = info.due;
      if (info.state == JobState::kDead) info.dead_reason = DeadReason::kDamaged;
      break;
    case EntryState::kRunning:
      info.state = JobState::kRunning;
      info.worker = state_.workers()[state_.leases()[entry.next].worker];
      break;
    case EntryState::kWaiting: info.state = JobState::kWaiting; break;
    case EntryState::kReady: info.state = JobState::kReady; break;
    default: info.state = JobState::kScheduled; break;
  }
  return info;
}

}  // namespace bide::engine
