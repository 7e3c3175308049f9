#include <algorithm>

#include "engine/journal/layout.h"
#include "engine/journal/record_codec.h"
#include "engine/journal/record_fields.h"
#include "engine/journal/records.h"

namespace bide::engine::journal {
namespace {

// Bits of the flags byte of each record: a field whose bit is not set has its default and is not written.
namespace accepted {
constexpr std::uint8_t kQueue = 1, kUniqueKey = 2, kPriority = 4, kExpires = 8, kTimeLimit = 16, kRetry = 32,
                       kContentType = 64, kHeaders = 128;
// The second flags byte.
constexpr std::uint8_t kDueIsWall = 1, kAttempts = 2, kToken = 4, kPast = 8, kAllOfSecond = 15;
// The third one, in version 2.
constexpr std::uint8_t kGroup = 1, kAfter = 2, kFlow = 4, kUniqueFor = 8, kEdited = 16, kAllOfThird = 31;
}  // namespace accepted

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
  brief.edited = (third_flags & accepted::kEdited) != 0;
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

std::uint8_t third_flags_of(const Job& job, bool edited = false) {
  std::uint8_t flags = edited ? accepted::kEdited : 0;
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

void put_front(Encoder& out, const Job& job, const Acceptance& how, std::uint8_t flags, std::uint8_t more_flags,
               std::uint8_t third_flags) {
  out.id_and_bytes(job.id, flags, more_flags);
  if (third_flags != 0) out.u8(third_flags);
  out.i64(how.accepted_ms);
  put_time(out, how.due_ms, how.accepted_ms);
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

  const std::uint8_t third_flags = use_written ? 0 : third_flags_of(job, how.edited);

  Encoder& out = begin(journal, RecordType::kAccepted, third_flags != 0 ? kSecondVersion : kFirstVersion);
  put_front(out, job, how, flags, more_flags, third_flags);
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
  if (Status status = check_kind(view, type, kSecondVersion); !status) return status;
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
  if (Status status = check_kind(view, type, kSecondVersion); !status) return status;
  Decoder in(view.payload);
  AcceptedFront front;
  if (const char* wrong = get_front(in, view.version, front)) return malformed(view, type, wrong);
  out = Accepted();
  out.how.due_ms = front.brief.due_ms;
  out.how.accepted_ms = front.accepted_ms;
  out.how.due_is_wall = front.brief.due_is_wall;
  out.how.attempts = front.brief.attempts;
  out.how.token = front.brief.token;
  out.how.edited = front.brief.edited;
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

void put_job(Encoder& out, const Job& job) {
  const std::uint8_t flags = flags_of(job) & static_cast<std::uint8_t>(~accepted::kExpires);
  const std::uint8_t third_flags = third_flags_of(job);
  std::string payload;
  Encoder in_payload(payload);
  put_front(in_payload, job, {}, flags, 0, third_flags);
  put_first_fields(in_payload, job, flags);
  put_relations(in_payload, job, third_flags);
  put_last_fields(in_payload, job, flags);
  out.u8(third_flags != 0 ? kSecondVersion : kFirstVersion);
  out.string(payload);
}

const char* get_job(Decoder& in, Job& out) {
  RecordView view;
  view.type = static_cast<std::uint8_t>(RecordType::kAccepted);
  view.version = in.u8();
  view.payload = in.string();
  Accepted record;
  if (!in.ok() || !decode(view, record)) return "its job is not right";
  out = std::move(record.job);
  out.due.reset();
  return nullptr;
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
          .unique_for = job.unique_for,
          .edited = how.edited};
}

}  // namespace bide::engine::journal
