// The records of schedules, drawn in docs/formats/journal.md: what a schedule is, and what was decided about its due times.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bide/schedule.h"
#include "core/encoding.h"
#include "engine/journal/records.h"

namespace bide::engine::journal {

// A schedule from now on. What was decided about its due times before stays known.
struct ScheduleRecord {
  Schedule schedule;  // Removed: with its name only.
  bool removed = false;
  bool paused = false;
  std::uint32_t version = 1;
  std::int64_t put_ms = 0;      // When this version was put: the anchor of a period that has none of its own.
  std::int64_t decided_ms = 0;  // Its due times up to this one are decided.
};

// What became of a due time.
enum class DecisionKind : std::uint8_t {
  kMade = 1,     // A job.
  kNotMade = 2,  // None, for the reason in the note.
  kWaits = 3,    // For the end of the job before it.
  kByHand = 4,   // A job beside the due times.
};

struct Decision {
  DecisionKind kind = DecisionKind::kMade;
  std::int64_t due_ms = 0;
  std::uint32_t version = 1;  // Of the schedule.
  JobId job;
  std::string note;
};

// In the batch of the jobs that it names.
struct DecisionsRecord {
  std::string name;
  std::int64_t decided_ms = 0;
  std::vector<Decision> decisions;
};

RecordRef append(Journal& journal, const ScheduleRecord& record);
RecordRef append(Journal& journal, const DecisionsRecord& record);
Status decode(const RecordView& view, ScheduleRecord& out);
Status decode(const RecordView& view, DecisionsRecord& out);

// As in record_fields.h; the snapshot has them too.
void put_schedule(Encoder& out, const ScheduleRecord& record);
const char* get_schedule(Decoder& in, ScheduleRecord& out);
void put_decision(Encoder& out, const Decision& decision);
const char* get_decision(Decoder& in, Decision& out);

// Upper bound for the record of a schedule.
std::size_t room_for(const Schedule& schedule);

}  // namespace bide::engine::journal
