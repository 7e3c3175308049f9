// Records: what can happen to a job, as it is written down. Each is a struct with an encoder and a decoder; together
// with the journal they are the whole on-disk format, drawn in docs/formats/journal.md.
//
// A record says what *is* from now on, not what to do: applying it needs no clock, no randomness and no other record.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/inspector.h"
#include "bide/job.h"
#include "bide/queue_rules.h"
#include "bide/result.h"
#include "engine/journal/journal.h"

namespace bide::engine::journal {

enum class RecordType : std::uint8_t {
  kMark = 1,      // Nothing: carries the synced point of its batch.
  kAccepted = 2,  // A job, whole.
  kGranted = 3,   // Leases were given: attempts are counted.
  kChanged = 4,   // A job is scheduled again, or dead.
  kDone = 5,
  kRemoved = 6,  // Jobs are gone: cancelled, deleted, purged, forgotten.
  kQueue = 7,    // A queue is paused or not.
  kClock = 8,    // The wall clock was stepped.
  kMoved = 9,    // Compaction: a record in a new place.
  kCancelAsked = 10,  // Somebody wants a running job to end: if this attempt does not finish it, none will.
  kDelivered = 11,    // Leases that outlive the process have reached their workers.
  kBound = 12,        // Which events a queue gets: its Binding, whole.
  kRules = 13,        // The rules of a queue, whole.
  kSchedule = 14,     // A schedule, whole; see schedule_records.h.
  kDecisions = 15,    // What became of due times of a schedule.
  kStep = 17,         // What a step of a running job came to.
};

// How a job's attempts went so far; read back when it is leased, shown or changed again.
struct Past {
  AttemptCounts counts;
  std::vector<AttemptError> history;  // At most Limits::kHistory, newest last.
  std::string note;
  std::uint32_t unheard = 0;  // Leases in a row that nobody has heard of; see docs/decisions/0010.
};

// How a job was accepted.
struct Acceptance {
  std::int64_t due_ms = 0;
  std::int64_t accepted_ms = 0;
  bool due_is_wall = false;  // A time of the wall clock; otherwise it moves when the clock is stepped.
  Past past;                 // Not empty when an attempt replaced the body.
  std::uint32_t attempts = 0;
  std::uint64_t token = 0;  // Not 0: the settle that replaced the body; ends that lease.
  bool edited = false;      // The job is there already, and waits or is dead: it is like this from now on.
};

struct Accepted {
  Job job;  // With id; delay is 0 and due is set.
  Acceptance how;
};

struct Grant {
  JobId id;
  std::uint64_t token = 0;
};

struct Granted {
  std::int64_t at_ms = 0;
  bool outlives_process = false;
  std::string worker;
  std::vector<Grant> grants;
  std::uint32_t lease_ms = 0;  // Written when it outlives the process; 0: not known, in a record of version 1.
};

enum class ChangeCause : std::uint8_t {
  kFault = 1,     // An attempt failed, timed out, was lost or crashed; see past.history.back().
  kReturned = 2,  // Given back, not charged.
  kRescheduled = 3,
  kReplayed = 4,
  kExpired = 5,
};

struct Changed {
  JobId id;
  ChangeCause cause = ChangeCause::kFault;
  std::uint64_t token = 0;  // The lease that ended with this; 0 when none did.
  std::int64_t at_ms = 0;
  std::int64_t due_ms = 0;
  bool due_is_wall = false;
  std::optional<DeadReason> dead;  // Empty: scheduled.
  std::uint32_t attempts = 0;      // Started, from now on.
  std::string unique_key;          // Replayed: the key that it holds again.
  Past past;
};

struct DoneRecord {
  JobId id;
  std::uint64_t token = 0;
  std::int64_t at_ms = 0;
  std::uint32_t attempts = 0;
  std::string result;
  std::string content_type;
  Past past;
};

enum class RemoveCause : std::uint8_t { kCancelled = 1, kDeleted = 2, kPurged = 3, kForgotten = 4 };

struct Removed {
  RemoveCause cause = RemoveCause::kCancelled;
  std::int64_t at_ms = 0;
  std::vector<JobId> ids;
};

struct QueueRecord {
  std::string name;
  bool paused = false;
};

struct ClockStep {
  std::int64_t by_ms = 0;
};

struct CancelAsked {
  JobId id;
  std::int64_t at_ms = 0;
};

struct Delivered {
  std::vector<Grant> leases;
};

// Kept until the job is done or gone.
struct StepRecord {
  JobId id;
  std::uint64_t token = 0;  // Of the lease.
  Step step;
};

// A copy of an Accepted, Changed or Done record that is still needed, with its own payload inside.
struct Moved {
  RecordRef from;
  RecordView inner;  // payload points into the journal's buffer or the caller's.
};

// Those fields of a job that are the same whenever it is accepted, as its record has them.
struct JobFields {
  std::uint8_t flags = 0;
  std::string_view bytes = {};  // Empty: not written ahead.
};
// Writes them behind `into` and gives their flags. It may write nothing: a large job is not worth copying twice.
std::uint8_t encode_fields(const Job& job, std::string& into);

// Append to the journal's batch. An accepted job is given by its parts, so that it need not be copied together.
RecordRef append(Journal& journal, const Job& job, const Acceptance& how, const JobFields& written = {});
inline RecordRef append(Journal& journal, const Accepted& record) { return append(journal, record.job, record.how); }
RecordRef append(Journal& journal, const Granted& record);
RecordRef append(Journal& journal, const Changed& record);
RecordRef append(Journal& journal, const DoneRecord& record);
RecordRef append(Journal& journal, const Removed& record);
RecordRef append(Journal& journal, const QueueRecord& record);
RecordRef append(Journal& journal, const ClockStep& record);
RecordRef append(Journal& journal, const Moved& record);
RecordRef append(Journal& journal, const CancelAsked& record);
RecordRef append(Journal& journal, const Delivered& record);
RecordRef append(Journal& journal, const Binding& record);
RecordRef append(Journal& journal, const StepRecord& record);
RecordRef append(Journal& journal, const QueueRules& record);

// kDamaged when the payload is not what its type says; kNewerVersion when its version is not known.
Status decode(const RecordView& view, Accepted& out);
Status decode(const RecordView& view, Granted& out);
Status decode(const RecordView& view, Changed& out);
Status decode(const RecordView& view, DoneRecord& out);
Status decode(const RecordView& view, Removed& out);
Status decode(const RecordView& view, QueueRecord& out);
Status decode(const RecordView& view, ClockStep& out);
Status decode(const RecordView& view, Moved& out);
Status decode(const RecordView& view, CancelAsked& out);
Status decode(const RecordView& view, Delivered& out);
Status decode(const RecordView& view, Binding& out);
Status decode(const RecordView& view, StepRecord& out);
Status decode(const RecordView& view, QueueRules& out);

// Only what recovery needs of an Accepted record: nothing is allocated, the views point into the payload.
struct AcceptedBrief {
  JobId id;
  std::string_view kind;
  std::string_view queue;
  std::string_view unique_key;
  std::int64_t due_ms = 0;
  std::int64_t accepted_ms = 0;
  bool due_is_wall = false;
  bool has_expiry = false;
  int priority = 0;
  std::uint32_t attempts = 0;
  std::uint32_t crashed = 0;
  std::uint64_t token = 0;
  std::string_view group = {};
  std::string_view after = {};  // Ids, one behind the other.
  AfterDeath after_death = AfterDeath::kHold;
  JobId flow = {};
  Milliseconds unique_for{0};
  bool edited = false;
};
Status decode(const RecordView& view, AcceptedBrief& out);
AcceptedBrief brief_of(const Job& job, const Acceptance& how);

// The record inside a Moved; any other record itself.
Result<RecordView> unwrap(const RecordView& view);
// The job that an Accepted, Changed or Done record, moved or not, belongs to; nil for every other record.
Result<JobId> job_of(const RecordView& view);

}  // namespace bide::engine::journal
