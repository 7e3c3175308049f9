#include "engine/journal/records.h"

#include <algorithm>

#include "engine/journal/layout.h"
#include "engine/journal/record_codec.h"
#include "engine/journal/record_fields.h"

namespace bide::engine::journal {
namespace {

static_assert(static_cast<std::uint8_t>(RecordType::kMark) == kMarkType);

// Bits of the flags byte of each record: a field whose bit is not set has its default and is not written.
namespace granted {
constexpr std::uint8_t kOutlivesProcess = 1, kWorker = 2, kAll = 3;
}  // namespace granted
namespace changed {
constexpr std::uint8_t kToken = 1, kDueIsWall = 2, kDead = 4, kPast = 8, kUniqueKey = 16, kAll = 31;
constexpr std::uint8_t kUnheard = 32;  // Version 2.
}  // namespace changed
namespace done {
constexpr std::uint8_t kResult = 1, kContentType = 2, kPast = 4, kAll = 7;
}  // namespace done

std::string_view name_of(RecordType type) {
  switch (type) {
    case RecordType::kMark:
      return "mark";
    case RecordType::kAccepted:
      return "accepted";
    case RecordType::kGranted:
      return "granted";
    case RecordType::kChanged:
      return "changed";
    case RecordType::kDone:
      return "done";
    case RecordType::kRemoved:
      return "removed";
    case RecordType::kQueue:
      return "queue";
    case RecordType::kClock:
      return "clock";
    case RecordType::kMoved:
      return "moved";
    case RecordType::kCancelAsked:
      return "cancel asked";
    case RecordType::kDelivered:
      return "delivered";
    case RecordType::kBound:
      return "bound";
    case RecordType::kStep:
      return "step";
    case RecordType::kRules:
      return "rules";
    case RecordType::kSchedule:
      return "schedule";
    case RecordType::kDecisions:
      return "decisions";
  }
  return "unknown";
}

std::string describe(const RecordView& view, RecordType type) {
  std::string text(name_of(type));
  text += " record at journal address ";
  text += std::to_string(view.at.address);
  return text;
}

}  // namespace

Error malformed(const RecordView& view, RecordType type, const char* what) {
  return {ErrorCode::kDamaged, describe(view, type) + ": " + what + "; `bide store check` says more, `bide store repair` keeps what can be read"};
}

Status check_kind(const RecordView& view, RecordType type, std::uint8_t newest) {
  if (view.type != static_cast<std::uint8_t>(type)) return malformed(view, type, "it is of another type");
  if (view.version == 0) return malformed(view, type, "version 0 never existed");
  if (view.version > newest) {
    return Error{ErrorCode::kNewerVersion,
                 describe(view, type) + ": version " + std::to_string(view.version) + ", written by a newer bide"};
  }
  return {};
}

Status complete(const Decoder& in, const RecordView& view, RecordType type) {
  if (in.done()) return {};
  return malformed(view, type, in.ok() ? "there are bytes after its last field" : "it ends in the middle of a field");
}

Encoder& begin(Journal& journal, RecordType type, std::uint8_t version) {
  return journal.begin(static_cast<std::uint8_t>(type), version);
}

namespace {

void put_grants(Encoder& out, const std::vector<Grant>& grants) {
  out.count(grants.size());
  for (const Grant& grant : grants) {
    out.id(grant.id);
    out.count(grant.token);
  }
}

const char* get_grants(Decoder& in, std::vector<Grant>& out) {
  const std::uint64_t grants = in.count();
  if (grants > in.left() / (JobId::kSize + 1)) return "it has more leases than bytes";
  out.resize(static_cast<std::size_t>(grants));
  for (Grant& grant : out) {
    grant.id = in.id();
    grant.token = in.count();
  }
  return nullptr;
}

}  // namespace

RecordRef append(Journal& journal, const Granted& record) {
  Encoder& out = begin(journal, RecordType::kGranted, record.outlives_process ? kSecondVersion : kFirstVersion);
  const std::uint8_t worker = record.worker.empty() ? 0 : granted::kWorker;
  out.u8(static_cast<std::uint8_t>((record.outlives_process ? granted::kOutlivesProcess : 0) | worker));
  out.i64(record.at_ms);
  if (worker) out.string(record.worker);
  if (record.outlives_process) out.count(record.lease_ms);
  put_grants(out, record.grants);
  return journal.finish();
}

Status decode(const RecordView& view, Granted& out) {
  constexpr RecordType type = RecordType::kGranted;
  if (Status status = check_kind(view, type, kSecondVersion); !status) return status;
  Decoder in(view.payload);
  const std::uint8_t flags = in.u8();
  if (flags & ~granted::kAll) return malformed(view, type, "it has a flag that is not known");
  out.outlives_process = (flags & granted::kOutlivesProcess) != 0;
  out.at_ms = in.i64();
  out.worker = flags & granted::kWorker ? in.string() : std::string_view();
  out.lease_ms = 0;
  if (view.version > 1 && !get_u32(in, out.lease_ms)) return malformed(view, type, "its lease time is out of range");
  if (const char* wrong = get_grants(in, out.grants)) return malformed(view, type, wrong);
  return complete(in, view, type);
}

RecordRef append(Journal& journal, const Changed& record) {
  std::uint8_t flags = 0;
  if (record.token != 0) flags |= changed::kToken;
  if (record.due_is_wall) flags |= changed::kDueIsWall;
  if (record.dead) flags |= changed::kDead;
  if (!is_empty(record.past)) flags |= changed::kPast;
  if (!record.unique_key.empty()) flags |= changed::kUniqueKey;
  if (record.past.unheard != 0) flags |= changed::kUnheard;
  Encoder& out = begin(journal, RecordType::kChanged, flags & changed::kUnheard ? kSecondVersion : kFirstVersion);
  out.id(record.id);
  out.u8(static_cast<std::uint8_t>(record.cause));
  out.u8(flags);
  out.i64(record.at_ms);
  put_time(out, record.due_ms, record.at_ms);
  out.count(record.attempts);
  if (flags & changed::kToken) out.count(record.token);
  if (flags & changed::kDead) out.u8(static_cast<std::uint8_t>(*record.dead));
  if (flags & changed::kPast) put_past(out, record.past);
  if (flags & changed::kUniqueKey) out.string(record.unique_key);
  if (flags & changed::kUnheard) out.count(record.past.unheard);
  return journal.finish();
}

Status decode(const RecordView& view, Changed& out) {
  constexpr RecordType type = RecordType::kChanged;
  if (Status status = check_kind(view, type, kSecondVersion); !status) return status;
  Decoder in(view.payload);
  out = Changed();
  out.id = in.id();
  const std::uint8_t cause = in.u8();
  if (cause < static_cast<std::uint8_t>(ChangeCause::kFault) ||
      cause > static_cast<std::uint8_t>(ChangeCause::kExpired)) {
    return malformed(view, type, "no such cause");
  }
  out.cause = static_cast<ChangeCause>(cause);
  const std::uint8_t flags = in.u8();
  const std::uint8_t known = view.version > 1 ? changed::kAll | changed::kUnheard : changed::kAll;
  if (flags & ~known) return malformed(view, type, "it has a flag that is not known");
  out.due_is_wall = (flags & changed::kDueIsWall) != 0;
  out.at_ms = in.i64();
  out.due_ms = get_time(in, out.at_ms);
  if (!get_u32(in, out.attempts)) return malformed(view, type, "its attempts are out of range");
  if (flags & changed::kToken) out.token = in.count();
  if (flags & changed::kDead) {
    const std::uint8_t dead = in.u8();
    if (dead > static_cast<std::uint8_t>(DeadReason::kPoison))
      return malformed(view, type, "no such reason to be dead");
    out.dead = static_cast<DeadReason>(dead);
  }
  if (flags & changed::kPast) {
    if (const char* wrong = get_past(in, out.past)) return malformed(view, type, wrong);
  }
  if (flags & changed::kUniqueKey) out.unique_key = in.string();
  if (flags & changed::kUnheard && !get_u32(in, out.past.unheard)) {
    return malformed(view, type, "its count of leases unheard of is out of range");
  }
  return complete(in, view, type);
}

RecordRef append(Journal& journal, const DoneRecord& record) {
  std::uint8_t flags = 0;
  if (!record.result.empty()) flags |= done::kResult;
  if (!record.content_type.empty()) flags |= done::kContentType;
  if (!is_empty(record.past)) flags |= done::kPast;
  Encoder& out = begin(journal, RecordType::kDone, flags & done::kPast ? kSecondVersion : kFirstVersion);
  out.id_and_bytes(record.id, flags);
  out.i64(record.at_ms);
  out.count(record.token);
  out.count(record.attempts);
  if (flags & done::kContentType) out.string(record.content_type);
  if (flags & done::kResult) out.string(record.result);
  if (flags & done::kPast) put_past(out, record.past);
  return journal.finish();
}

Status decode(const RecordView& view, DoneRecord& out) {
  constexpr RecordType type = RecordType::kDone;
  if (Status status = check_kind(view, type, kSecondVersion); !status) return status;
  Decoder in(view.payload);
  out.id = in.id();
  const std::uint8_t flags = in.u8();
  if (flags & ~done::kAll) return malformed(view, type, "it has a flag that is not known");
  out.at_ms = in.i64();
  out.token = in.count();
  if (!get_u32(in, out.attempts)) return malformed(view, type, "its attempts are out of range");
  out.content_type = flags & done::kContentType ? in.string() : std::string_view();
  out.result = flags & done::kResult ? in.string() : std::string_view();
  out.past = {};
  if (flags & done::kPast) {
    if (const char* wrong = get_past(in, out.past)) return malformed(view, type, wrong);
  }
  return complete(in, view, type);
}

RecordRef append(Journal& journal, const Removed& record) {
  Encoder& out = begin(journal, RecordType::kRemoved);
  out.u8(static_cast<std::uint8_t>(record.cause));
  out.i64(record.at_ms);
  out.count(record.ids.size());
  for (const JobId& id : record.ids) out.id(id);
  return journal.finish();
}

Status decode(const RecordView& view, Removed& out) {
  constexpr RecordType type = RecordType::kRemoved;
  if (Status status = check_kind(view, type); !status) return status;
  Decoder in(view.payload);
  const std::uint8_t cause = in.u8();
  if (cause < static_cast<std::uint8_t>(RemoveCause::kCancelled) ||
      cause > static_cast<std::uint8_t>(RemoveCause::kForgotten)) {
    return malformed(view, type, "no such cause");
  }
  out.cause = static_cast<RemoveCause>(cause);
  out.at_ms = in.i64();
  const std::uint64_t ids = in.count();
  if (ids > in.left() / JobId::kSize) return malformed(view, type, "it has more ids than bytes");
  out.ids.resize(static_cast<std::size_t>(ids));
  for (JobId& id : out.ids) id = in.id();
  return complete(in, view, type);
}

RecordRef append(Journal& journal, const QueueRecord& record) {
  Encoder& out = begin(journal, RecordType::kQueue);
  out.u8(record.paused ? 1 : 0);
  out.string(record.name);
  return journal.finish();
}

Status decode(const RecordView& view, QueueRecord& out) {
  constexpr RecordType type = RecordType::kQueue;
  if (Status status = check_kind(view, type); !status) return status;
  Decoder in(view.payload);
  const std::uint8_t paused = in.u8();
  if (paused > 1) return malformed(view, type, "it is neither paused nor not");
  out.paused = paused != 0;
  out.name = in.string();
  return complete(in, view, type);
}

RecordRef append(Journal& journal, const ClockStep& record) {
  begin(journal, RecordType::kClock).i64(record.by_ms);
  return journal.finish();
}

Status decode(const RecordView& view, ClockStep& out) {
  constexpr RecordType type = RecordType::kClock;
  if (Status status = check_kind(view, type); !status) return status;
  Decoder in(view.payload);
  out.by_ms = in.i64();
  return complete(in, view, type);
}

RecordRef append(Journal& journal, const CancelAsked& record) {
  Encoder& out = begin(journal, RecordType::kCancelAsked);
  out.id(record.id);
  out.i64(record.at_ms);
  return journal.finish();
}

Status decode(const RecordView& view, CancelAsked& out) {
  constexpr RecordType type = RecordType::kCancelAsked;
  if (Status status = check_kind(view, type); !status) return status;
  Decoder in(view.payload);
  out.id = in.id();
  out.at_ms = in.i64();
  return complete(in, view, type);
}

RecordRef append(Journal& journal, const Delivered& record) {
  put_grants(begin(journal, RecordType::kDelivered), record.leases);
  return journal.finish();
}

Status decode(const RecordView& view, Delivered& out) {
  constexpr RecordType type = RecordType::kDelivered;
  if (Status status = check_kind(view, type); !status) return status;
  Decoder in(view.payload);
  if (const char* wrong = get_grants(in, out.leases)) return malformed(view, type, wrong);
  return complete(in, view, type);
}

RecordRef append(Journal& journal, const Binding& record) {
  put_binding(begin(journal, RecordType::kBound), record);
  return journal.finish();
}

Status decode(const RecordView& view, Binding& out) {
  constexpr RecordType type = RecordType::kBound;
  if (Status status = check_kind(view, type); !status) return status;
  Decoder in(view.payload);
  if (const char* wrong = get_binding(in, out)) return malformed(view, type, wrong);
  return complete(in, view, type);
}

RecordRef append(Journal& journal, const QueueRules& record) {
  put_rules(begin(journal, RecordType::kRules), record);
  return journal.finish();
}

Status decode(const RecordView& view, QueueRules& out) {
  constexpr RecordType type = RecordType::kRules;
  if (Status status = check_kind(view, type); !status) return status;
  Decoder in(view.payload);
  if (const char* wrong = get_rules(in, out)) return malformed(view, type, wrong);
  return complete(in, view, type);
}

RecordRef append(Journal& journal, const StepRecord& record) {
  Encoder& out = begin(journal, RecordType::kStep);
  out.id(record.id);
  out.count(record.token);
  out.string(record.step.name);
  out.string(record.step.result);
  return journal.finish();
}

Status decode(const RecordView& view, StepRecord& out) {
  constexpr RecordType type = RecordType::kStep;
  if (Status status = check_kind(view, type); !status) return status;
  Decoder in(view.payload);
  out.id = in.id();
  out.token = in.count();
  out.step.name = in.string();
  out.step.result = in.string();
  return complete(in, view, type);
}

RecordRef append(Journal& journal, const Moved& record) {
  Encoder& out = begin(journal, RecordType::kMoved);
  out.count(record.from.address);
  out.count(record.from.bytes);
  out.u8(record.inner.type);
  out.u8(record.inner.version);
  out.raw(record.inner.payload);
  return journal.finish();
}

Status decode(const RecordView& view, Moved& out) {
  constexpr RecordType type = RecordType::kMoved;
  if (Status status = check_kind(view, type); !status) return status;
  Decoder in(view.payload);
  out.from.address = in.count();
  if (!get_u32(in, out.from.bytes)) return malformed(view, type, "the size it had is out of range");
  out.inner.type = in.u8();
  out.inner.version = in.u8();
  out.inner.payload = in.rest();
  out.inner.at = view.at;
  const auto inner = static_cast<RecordType>(out.inner.type);
  if (inner != RecordType::kAccepted && inner != RecordType::kChanged && inner != RecordType::kDone) {
    return malformed(view, type, "what is inside is of a type that is never moved");
  }
  return complete(in, view, type);
}

Result<RecordView> unwrap(const RecordView& view) {
  if (static_cast<RecordType>(view.type) != RecordType::kMoved) return view;
  Moved moved;
  if (Status decoded = decode(view, moved); !decoded) return decoded.error();
  return moved.inner;
}

namespace {

template <class Record>
Result<JobId> id_of(const RecordView& view) {
  Record record;
  if (Status decoded = decode(view, record); !decoded) return decoded.error();
  return record.id;
}

}  // namespace

Result<JobId> job_of(const RecordView& view) {
  const auto inner = unwrap(view);
  if (!inner) return inner.error();
  switch (static_cast<RecordType>(inner->type)) {
    case RecordType::kAccepted: return id_of<AcceptedBrief>(*inner);
    case RecordType::kChanged: return id_of<Changed>(*inner);
    case RecordType::kDone: return id_of<DoneRecord>(*inner);
    default: return JobId();
  }
}

}  // namespace bide::engine::journal
