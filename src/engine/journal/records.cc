#include "engine/journal/records.h"

#include <algorithm>

#include "engine/journal/layout.h"
#include "engine/journal/record_fields.h"

namespace bide::engine::journal {
namespace {

static_assert(static_cast<std::uint8_t>(RecordType::kMark) == kMarkType);

// A type is written in version 1 unless it says something that only a later version can.
constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kDoneWithPast = 2;  // So that a bide that does not know it says so, and not that it is damaged.
constexpr std::uint8_t kNewestVersion = 2;  // Of accepted, granted and changed.

// Bits of the flags byte of each record: a field whose bit is not set has its default and is not written.
namespace accepted {
constexpr std::uint8_t kQueue = 1, kUniqueKey = 2, kPriority = 4, kExpires = 8, kTimeLimit = 16, kRetry = 32,
                       kContentType = 64, kHeaders = 128;
// The second flags byte.
constexpr std::uint8_t kDueIsWall = 1, kAttempts = 2, kToken = 4, kPast = 8, kAllOfSecond = 15;
// The third one, in version 2.
constexpr std::uint8_t kGroup = 1, kAfter = 2, kFlow = 4, kUniqueFor = 8, kAllOfThird = 15;
}  // namespace accepted
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
  }
  return "unknown";
}

std::string describe(const RecordView& view, RecordType type) {
  std::string text(name_of(type));
  text += " record at journal address ";
  text += std::to_string(view.at.address);
  return text;
}

Error malformed(const RecordView& view, RecordType type, const char* what) {
  return {ErrorCode::kDamaged, describe(view, type) + ": " + what + "; `bide store check` says more, `bide store repair` keeps what can be read"};
}

Status check_kind(const RecordView& view, RecordType type, std::uint8_t newest = kVersion) {
  if (view.type != static_cast<std::uint8_t>(type)) return malformed(view, type, "it is of another type");
  if (view.version == 0) return malformed(view, type, "version 0 never existed");
  if (view.version > newest) {
    return Error{ErrorCode::kNewerVersion,
                 describe(view, type) + ": version " + std::to_string(view.version) + ", written by a newer bide"};
  }
  return {};
}

// The last word of every decoder.
Status complete(const Decoder& in, const RecordView& view, RecordType type) {
  if (in.done()) return {};
  return malformed(view, type, in.ok() ? "there are bytes after its last field" : "it ends in the middle of a field");
}

Encoder& begin(Journal& journal, RecordType type, std::uint8_t version = kVersion) {
  return journal.begin(static_cast<std::uint8_t>(type), version);
}

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

// What recovery needs stands first, so that it need not look at the rest.
struct AcceptedFront {
  AcceptedBrief brief;
  std::int64_t accepted_ms = 0;
  std::uint8_t flags = 0;
  std::uint8_t more_flags = 0;
};

const char* get_relations(Decoder& in, std::uint8_t flags, AcceptedBrief& brief) {
  if (flags & accepted::kGroup) brief.group = in.string();
  if (flags & accepted::kAfter) {
    const std::uint64_t ids = in.count();
    if (ids > in.left() / JobId::kSize) return "it waits for more jobs than it has bytes";
    brief.after = in.raw(static_cast<std::size_t>(ids) * JobId::kSize);
    const std::uint8_t after_death = in.u8();
    if (after_death > static_cast<std::uint8_t>(AfterDeath::kRun)) return "no such rule for the death of another job";
    brief.after_death = static_cast<AfterDeath>(after_death);
  }
  if (flags & accepted::kFlow) brief.flow = in.id();
  if (flags & accepted::kUniqueFor && !get_duration(in, brief.unique_for)) return "its unique_for is out of range";
  return nullptr;
}

const char* get_front(Decoder& in, std::uint8_t version, AcceptedFront& out) {
  AcceptedBrief& brief = out.brief;
  brief.id = in.id();
  out.flags = in.u8();
  out.more_flags = in.u8();
  if (out.more_flags & ~accepted::kAllOfSecond) return "it has a flag that is not known";
  const std::uint8_t third_flags = version > 1 ? in.u8() : 0;
  if (third_flags & ~accepted::kAllOfThird) return "it has a flag that is not known";
  out.accepted_ms = in.i64();
  brief.due_ms = get_time(in, out.accepted_ms);
  brief.kind = in.string();
  brief.queue = out.flags & accepted::kQueue ? in.string() : std::string_view(default_job().queue);
  brief.unique_key = out.flags & accepted::kUniqueKey ? in.string() : std::string_view();
  brief.priority = out.flags & accepted::kPriority ? static_cast<std::int8_t>(in.u8()) : 0;
  if (brief.priority < -100 || brief.priority > 100) return "its priority is out of range";
  if (const char* wrong = get_relations(in, third_flags, brief)) return wrong;
  brief.attempts = 0;
  if (out.more_flags & accepted::kAttempts && !get_u32(in, brief.attempts)) return "its attempts are out of range";
  brief.token = out.more_flags & accepted::kToken ? in.count() : 0;
  brief.due_is_wall = (out.more_flags & accepted::kDueIsWall) != 0;
  brief.has_expiry = (out.flags & accepted::kExpires) != 0;
  return nullptr;
}

std::uint8_t flags_of(const Job& job) {
  const Job& usual = default_job();
  std::uint8_t flags = 0;
  if (job.queue != usual.queue) flags |= accepted::kQueue;
  if (!job.unique_key.empty()) flags |= accepted::kUniqueKey;
  if (job.priority != 0) flags |= accepted::kPriority;
  if (job.expires) flags |= accepted::kExpires;
  if (job.time_limit != usual.time_limit) flags |= accepted::kTimeLimit;
  if (job.retry != usual.retry) flags |= accepted::kRetry;
  if (job.content_type != usual.content_type) flags |= accepted::kContentType;
  if (!job.headers.empty()) flags |= accepted::kHeaders;
  return flags;
}

std::uint8_t third_flags_of(const Job& job) {
  std::uint8_t flags = 0;
  if (!job.group.empty()) flags |= accepted::kGroup;
  if (!job.after.empty()) flags |= accepted::kAfter;
  if (!job.flow.is_nil()) flags |= accepted::kFlow;
  if (job.unique_for.count() > 0) flags |= accepted::kUniqueFor;
  return flags;
}

void put_relations(Encoder& out, const Job& job, std::uint8_t flags) {
  if (flags & accepted::kGroup) out.string(job.group);
  if (flags & accepted::kAfter) {
    out.count(job.after.size());
    for (const JobId& id : job.after) out.id(id);
    out.u8(static_cast<std::uint8_t>(job.after_death));
  }
  if (flags & accepted::kFlow) out.id(job.flow);
  if (flags & accepted::kUniqueFor) out.count(static_cast<std::uint64_t>(job.unique_for.count()));
}

// The fields before those that depend on its acceptance, and those behind them.
void put_first_fields(Encoder& out, const Job& job, std::uint8_t flags) {
  out.string(job.kind);
  if (flags & accepted::kQueue) out.string(job.queue);
  if (flags & accepted::kUniqueKey) out.string(job.unique_key);
  if (flags & accepted::kPriority) {
    out.u8(static_cast<std::uint8_t>(static_cast<std::int8_t>(std::clamp(job.priority, -100, 100))));
  }
}

void put_last_fields(Encoder& out, const Job& job, std::uint8_t flags) {
  if (flags & accepted::kTimeLimit) out.count(static_cast<std::uint64_t>(job.time_limit.count()));
  if (flags & accepted::kRetry) put_retry(out, job.retry);
  if (flags & accepted::kContentType) out.string(job.content_type);
  if (flags & accepted::kHeaders) {
    out.count(job.headers.size());
    for (const auto& [name, value] : job.headers) {
      out.string(name);
      out.string(value);
    }
  }
  out.string(job.body);
}

}  // namespace

std::uint8_t encode_fields(const Job& job, std::string& into) {
  constexpr std::size_t kWorthWritingTwice = 4096;
  const std::uint8_t flags = flags_of(job);
  if (job.body.size() > kWorthWritingTwice || flags & accepted::kExpires || third_flags_of(job) != 0) return flags;
  Encoder out(into);
  put_first_fields(out, job, flags);
  put_last_fields(out, job, flags);
  return flags;
}

RecordRef append(Journal& journal, const Job& job, const Acceptance& how, const JobFields& written) {
  std::uint8_t more_flags = 0;
  if (how.due_is_wall) more_flags |= accepted::kDueIsWall;
  if (how.attempts != 0) more_flags |= accepted::kAttempts;
  if (how.token != 0) more_flags |= accepted::kToken;
  if (!is_empty(how.past)) more_flags |= accepted::kPast;
  const bool use_written = !written.bytes.empty() && (more_flags & ~accepted::kDueIsWall) == 0;
  const std::uint8_t flags = use_written ? written.flags : flags_of(job);

  const std::uint8_t third_flags = use_written ? 0 : third_flags_of(job);

  Encoder& out = begin(journal, RecordType::kAccepted, third_flags != 0 ? kNewestVersion : kVersion);
  out.id_and_bytes(job.id, flags, more_flags);
  if (third_flags != 0) out.u8(third_flags);
  out.i64(how.accepted_ms);
  put_time(out, how.due_ms, how.accepted_ms);
  if (use_written) {
    out.raw(written.bytes);
    return journal.finish();
  }
  put_first_fields(out, job, flags);
  put_relations(out, job, third_flags);
  if (more_flags & accepted::kAttempts) out.count(how.attempts);
  if (more_flags & accepted::kToken) out.count(how.token);
  if (more_flags & accepted::kPast) put_past(out, how.past);
  if (flags & accepted::kExpires) put_time(out, to_ms(*job.expires), how.accepted_ms);
  put_last_fields(out, job, flags);
  return journal.finish();
}

Status decode(const RecordView& view, AcceptedBrief& out) {
  constexpr RecordType type = RecordType::kAccepted;
  if (Status status = check_kind(view, type, kNewestVersion); !status) return status;
  Decoder in(view.payload);
  AcceptedFront front;
  if (const char* wrong = get_front(in, view.version, front)) return malformed(view, type, wrong);
  if (front.more_flags & accepted::kPast) {
    AttemptCounts counts;
    if (const char* wrong = get_counts(in, counts)) return malformed(view, type, wrong);
    front.brief.crashed = counts.crashed;
  }
  if (!in.ok()) return malformed(view, type, "it ends in the middle of a field");
  out = front.brief;
  out.accepted_ms = front.accepted_ms;
  return {};
}

Status decode(const RecordView& view, Accepted& out) {
  constexpr RecordType type = RecordType::kAccepted;
  if (Status status = check_kind(view, type, kNewestVersion); !status) return status;
  Decoder in(view.payload);
  AcceptedFront front;
  if (const char* wrong = get_front(in, view.version, front)) return malformed(view, type, wrong);
  out = Accepted();
  out.how.due_ms = front.brief.due_ms;
  out.how.accepted_ms = front.accepted_ms;
  out.how.due_is_wall = front.brief.due_is_wall;
  out.how.attempts = front.brief.attempts;
  out.how.token = front.brief.token;
  Job& job = out.job;
  job.id = front.brief.id;
  job.kind = front.brief.kind;
  job.queue = front.brief.queue;
  job.unique_key = front.brief.unique_key;
  job.priority = front.brief.priority;
  job.group = front.brief.group;
  for (Decoder ids(front.brief.after); ids.left() > 0;) job.after.push_back(ids.id());
  job.after_death = front.brief.after_death;
  job.flow = front.brief.flow;
  job.unique_for = front.brief.unique_for;
  job.due = to_time(out.how.due_ms);
  if (front.more_flags & accepted::kPast) {
    if (const char* wrong = get_past(in, out.how.past)) return malformed(view, type, wrong);
  }
  if (front.flags & accepted::kExpires) job.expires = to_time(get_time(in, out.how.accepted_ms));
  if (front.flags & accepted::kTimeLimit && !get_duration(in, job.time_limit)) {
    return malformed(view, type, "its time limit is out of range");
  }
  if (front.flags & accepted::kRetry) {
    if (const char* wrong = get_retry(in, job.retry)) return malformed(view, type, wrong);
  }
  if (front.flags & accepted::kContentType) job.content_type = in.string();
  if (front.flags & accepted::kHeaders) {
    const std::uint64_t headers = in.count();
    if (headers > in.left() / 2) return malformed(view, type, "it has more headers than bytes");
    job.headers.resize(static_cast<std::size_t>(headers));
    for (auto& [name, value] : job.headers) {
      name = in.string();
      value = in.string();
    }
  }
  job.body = in.string();
  return complete(in, view, type);
}

RecordRef append(Journal& journal, const Granted& record) {
  Encoder& out = begin(journal, RecordType::kGranted, record.outlives_process ? kNewestVersion : kVersion);
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
  if (Status status = check_kind(view, type, kNewestVersion); !status) return status;
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
  Encoder& out = begin(journal, RecordType::kChanged, flags & changed::kUnheard ? kNewestVersion : kVersion);
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
  if (Status status = check_kind(view, type, kNewestVersion); !status) return status;
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
  Encoder& out = begin(journal, RecordType::kDone, flags & done::kPast ? kDoneWithPast : kVersion);
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
  if (Status status = check_kind(view, type, kDoneWithPast); !status) return status;
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

static_assert(sizeof(JobId) == JobId::kSize);

AcceptedBrief brief_of(const Job& job, const Acceptance& how) {
  return {.id = job.id,
          .kind = job.kind,
          .queue = job.queue,
          .unique_key = job.unique_key,
          .due_ms = how.due_ms,
          .accepted_ms = how.accepted_ms,
          .due_is_wall = how.due_is_wall,
          .has_expiry = job.expires.has_value(),
          .priority = job.priority,
          .attempts = how.attempts,
          .crashed = how.past.counts.crashed,
          .token = how.token,
          .group = job.group,
          .after = {reinterpret_cast<const char*>(job.after.data()), job.after.size() * JobId::kSize},
          .after_death = job.after_death,
          .flow = job.flow,
          .unique_for = job.unique_for};
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
