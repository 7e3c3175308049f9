#include "engine/journal/schedule_records.h"

#include "core/enums.h"
#include "engine/journal/record_codec.h"
#include "engine/journal/record_fields.h"

namespace bide::engine::journal {
namespace {

namespace schedule_flag {
constexpr std::uint8_t kRemoved = 1, kPaused = 2, kAnchor = 4, kAll = 7;
}

template <class E>
bool get_enum(Decoder& in, E& out) {
  const std::uint8_t value = in.u8();
  if (value > static_cast<std::uint8_t>(core::kLast<E>)) return false;
  out = static_cast<E>(value);
  return true;
}

}  // namespace

void put_schedule(Encoder& out, const ScheduleRecord& record) {
  const Schedule& schedule = record.schedule;
  out.u8(static_cast<std::uint8_t>((record.removed ? schedule_flag::kRemoved : 0) | (record.paused ? schedule_flag::kPaused : 0) |
                                   (schedule.anchor ? schedule_flag::kAnchor : 0)));
  out.string(schedule.name);
  if (record.removed) return;
  out.string(schedule.owner);
  out.count(record.version);
  out.i64(record.put_ms);
  out.i64(record.decided_ms);
  out.string(schedule.cron);
  out.string(schedule.zone);
  out.count(static_cast<std::uint64_t>(schedule.every.count()));
  if (schedule.anchor) out.i64(to_ms(*schedule.anchor));
  out.u8(static_cast<std::uint8_t>(schedule.missed));
  out.count(schedule.most_missed);
  out.u8(static_cast<std::uint8_t>(schedule.overlap));
  out.count(static_cast<std::uint64_t>(schedule.jitter.count()));
  out.u8(static_cast<std::uint8_t>(schedule.job.on_conflict));
  put_job(out, schedule.job);
}

const char* get_schedule(Decoder& in, ScheduleRecord& out) {
  out = ScheduleRecord();
  const std::uint8_t flags = in.u8();
  if (flags & ~schedule_flag::kAll) return "it has a flag that is not known";
  out.removed = (flags & schedule_flag::kRemoved) != 0;
  out.paused = (flags & schedule_flag::kPaused) != 0;
  Schedule& schedule = out.schedule;
  schedule.name = in.string();
  if (out.removed) return nullptr;
  schedule.owner = in.string();
  if (!get_u32(in, out.version)) return "its version is out of range";
  out.put_ms = in.i64();
  out.decided_ms = in.i64();
  schedule.cron = in.string();
  schedule.zone = in.string();
  if (!get_duration(in, schedule.every)) return "its period is out of range";
  if (flags & schedule_flag::kAnchor) schedule.anchor = to_time(in.i64());
  if (!get_enum(in, schedule.missed)) return "no such rule for what was missed";
  if (!get_u32(in, schedule.most_missed)) return "its most_missed is out of range";
  if (!get_enum(in, schedule.overlap)) return "no such rule for an overlap";
  if (!get_duration(in, schedule.jitter)) return "its jitter is out of range";
  OnConflict on_conflict{};
  if (!get_enum(in, on_conflict)) return "no such rule for a conflict";
  if (const char* wrong = get_job(in, schedule.job)) return wrong;
  schedule.job.on_conflict = on_conflict;
  return nullptr;
}

void put_decision(Encoder& out, const Decision& decision) {
  out.u8(static_cast<std::uint8_t>(decision.kind));
  out.i64(decision.due_ms);
  out.count(decision.version);
  if (decision.kind == DecisionKind::kMade || decision.kind == DecisionKind::kByHand) out.id(decision.job);
  if (decision.kind == DecisionKind::kNotMade) out.string(decision.note);
}

const char* get_decision(Decoder& in, Decision& out) {
  const std::uint8_t kind = in.u8();
  if (kind < 1 || kind > static_cast<std::uint8_t>(DecisionKind::kByHand)) return "a decision of an unknown kind";
  out.kind = static_cast<DecisionKind>(kind);
  out.due_ms = in.i64();
  if (!get_u32(in, out.version)) return "its version is out of range";
  if (out.kind == DecisionKind::kMade || out.kind == DecisionKind::kByHand) out.job = in.id();
  if (out.kind == DecisionKind::kNotMade) out.note = in.string();
  return nullptr;
}

std::size_t room_for(const Schedule& schedule) {
  std::size_t bytes = 1024 + schedule.name.size() + schedule.owner.size() + schedule.cron.size() + schedule.zone.size();
  const Job& job = schedule.job;
  bytes += job.body.size() + job.kind.size() + job.queue.size() + job.content_type.size() + job.unique_key.size() +
           job.group.size() + job.retry.waits.size() * 10;
  for (const auto& [name, value] : job.headers) bytes += name.size() + value.size() + 8;
  return bytes;
}

RecordRef append(Journal& journal, const ScheduleRecord& record) {
  put_schedule(begin(journal, RecordType::kSchedule), record);
  return journal.finish();
}

RecordRef append(Journal& journal, const DecisionsRecord& record) {
  Encoder& out = begin(journal, RecordType::kDecisions);
  out.string(record.name);
  out.i64(record.decided_ms);
  out.count(record.decisions.size());
  for (const Decision& decision : record.decisions) put_decision(out, decision);
  return journal.finish();
}

Status decode(const RecordView& view, ScheduleRecord& out) {
  constexpr RecordType type = RecordType::kSchedule;
  if (Status status = check_kind(view, type); !status) return status;
  Decoder in(view.payload);
  if (const char* wrong = get_schedule(in, out)) return malformed(view, type, wrong);
  return complete(in, view, type);
}

Status decode(const RecordView& view, DecisionsRecord& out) {
  constexpr RecordType type = RecordType::kDecisions;
  if (Status status = check_kind(view, type); !status) return status;
  Decoder in(view.payload);
  out = DecisionsRecord();
  out.name = in.string();
  out.decided_ms = in.i64();
  const std::uint64_t decisions = in.count();
  if (decisions > in.left()) return malformed(view, type, "it has more decisions than bytes");
  out.decisions.resize(static_cast<std::size_t>(decisions));
  for (Decision& decision : out.decisions) {
    if (const char* wrong = get_decision(in, decision)) return malformed(view, type, wrong);
  }
  return complete(in, view, type);
}

}  // namespace bide::engine::journal
