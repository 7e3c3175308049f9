#include "engine/schedules.h"

#include <algorithm>

namespace bide::engine {

using journal::Decision;
using journal::DecisionKind;

void Schedules::apply(const journal::ScheduleRecord& record) {
  if (record.removed) {
    by_name_.erase(record.schedule.name);
  } else {
    by_name_[record.schedule.name].record = record;
  }
}

void Schedules::apply(const journal::DecisionsRecord& record) {
  const auto found = by_name_.find(record.name);
  if (found == by_name_.end()) return;
  KnownSchedule& known = found->second;
  known.record.decided_ms = record.decided_ms;
  for (const Decision& decision : record.decisions) {
    const auto is_same = [&](const Decision& other) {
      return other.kind == DecisionKind::kWaits && other.due_ms == decision.due_ms && other.version == decision.version;
    };
    if (decision.kind == DecisionKind::kWaits) {
      known.waiting.push_back(decision);
    } else if (decision.kind != DecisionKind::kByHand) {
      std::erase_if(known.waiting, is_same);
    }
    if (!decision.job.is_nil()) known.last_job = decision.job;
    const auto shown = std::find_if(known.last.begin(), known.last.end(), is_same);
    if (shown != known.last.end()) {
      *shown = decision;
    } else {
      known.last.push_front(decision);
    }
    if (known.last.size() > ScheduleInfo::kOccurrences) known.last.pop_back();
  }
}

void Schedules::encode(core::Encoder& out) const {
  for (const auto& [name, known] : by_name_) {
    put_schedule(out, known.record);
    out.id(known.last_job);
    for (const auto* decisions : {&known.waiting, &known.last}) {
      out.count(decisions->size());
      for (const Decision& decision : *decisions) put_decision(out, decision);
    }
  }
}

bool Schedules::decode(core::Decoder& in) {
  while (in.ok() && !in.done()) {
    KnownSchedule known;
    if (get_schedule(in, known.record) != nullptr || known.record.removed) return false;
    known.last_job = in.id();
    for (auto* decisions : {&known.waiting, &known.last}) {
      const std::uint64_t size = in.count();
      if (size > in.left()) return false;
      for (std::uint64_t left = size; left > 0; --left) {
        if (get_decision(in, decisions->emplace_back()) != nullptr) return false;
      }
    }
    if (in.ok()) by_name_.insert_or_assign(known.record.schedule.name, std::move(known));
  }
  return in.ok();
}

}  // namespace bide::engine
