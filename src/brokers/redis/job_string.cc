#include "brokers/redis/job_string.h"

#include <algorithm>
#include <utility>

#include "core/encoding.h"
#include "core/enums.h"
#include "core/job_rules.h"

namespace bide::brokers::redis {

namespace {

using core::Decoder;
using core::Encoder;

enum class StoredState : std::uint8_t { kWaiting = 1, kRunning, kDone, kDead };
enum class Tag : std::uint8_t { kFault = 1, kNote, kContentType, kResult };

constexpr std::size_t kClientBytes = 8;

void put_u16(Encoder& out, std::size_t value) {
  out.u8(static_cast<std::uint8_t>(value & 0xff));
  out.u8(static_cast<std::uint8_t>(value >> 8));
}

std::uint16_t get_u16(Decoder& in) {
  const std::uint8_t low = in.u8();
  return static_cast<std::uint16_t>(low | in.u8() << 8);
}

Time time_of(std::int64_t ms) { return Time(Milliseconds(ms)); }

// What scripts do not look at.
std::string encode_spec(const Job& job) {
  static const RetryPolicy usual;
  std::string bytes;
  Encoder out(bytes);
  out.string(job.kind);
  out.string(job.content_type);
  out.string(job.retry == usual ? std::string() : job.retry.to_string());
  out.count(job.headers.size());
  for (const auto& [name, value] : job.headers) {
    out.string(name);
    out.string(value);
  }
  return bytes;
}

bool decode_spec(std::string_view bytes, Job& job) {
  Decoder in(bytes);
  job.kind = in.string();
  job.content_type = in.string();
  if (const std::string_view text = in.string(); !text.empty()) {
    Result<RetryPolicy> retry = RetryPolicy::parse(text);
    if (!retry) return false;
    job.retry = std::move(*retry);
  }
  const std::uint64_t headers = in.count();
  if (headers > bytes.size()) return false;
  job.headers.reserve(headers);
  for (std::uint64_t i = 0; i < headers; ++i) {
    const std::string_view name = in.string();
    job.headers.emplace_back(name, in.string());
  }
  return in.ok();
}

std::string encode_history(const std::vector<AttemptError>& history) {
  std::string tail;
  Encoder out(tail);
  for (const AttemptError& error : history) {
    out.u8(static_cast<std::uint8_t>(Tag::kFault));
    out.u32(static_cast<std::uint32_t>(13 + error.text.size()));
    out.u32(error.attempt);
    out.i64(error.at.time_since_epoch().count());
    out.u8(static_cast<std::uint8_t>(error.fault));
    out.raw(error.text);
  }
  return tail;
}

bool decode_tail(std::string_view bytes, JobInfo& info) {
  while (!bytes.empty()) {
    Decoder in(bytes);
    const auto tag = static_cast<Tag>(in.u8());
    const std::uint32_t size = in.u32();
    if (!in.ok() || size > in.left()) return false;
    const std::string_view piece = bytes.substr(bytes.size() - in.left(), size);
    bytes.remove_prefix(bytes.size() - in.left() + size);
    if (tag == Tag::kNote) info.note = piece;
    if (tag == Tag::kContentType) info.result_content_type = piece;
    if (tag == Tag::kResult) info.result = piece;
    if (tag != Tag::kFault) continue;
    Decoder fault(piece);
    AttemptError error;
    error.attempt = fault.u32();
    error.at = time_of(fault.i64());
    const std::uint8_t kind = fault.u8();
    if (!fault.ok() || kind > static_cast<std::uint8_t>(core::kLast<Fault>)) return false;
    error.fault = static_cast<Fault>(kind);
    error.text = fault.rest();
    info.history.push_back(std::move(error));
  }
  return true;
}

}  // namespace

std::string encode_new_job(const Job& job) {
  static const JobPast none;
  const JobPast& past = job.past ? *job.past : none;
  const std::string spec = encode_spec(job);
  const std::string tail = encode_history(past.history);
  std::string bytes;
  bytes.reserve(91 + job.queue.size() + job.unique_key.size() + spec.size() + job.body.size() + tail.size());
  Encoder out(bytes);
  out.u8(static_cast<std::uint8_t>(past.dead ? StoredState::kDead : StoredState::kWaiting));
  out.u8(static_cast<std::uint8_t>(job.priority - core::kLowestPriority));
  out.u8(0);   // Flags.
  out.u8(0);   // How the last attempt ended.
  out.u64(0);  // Token.
  out.i64(past.dead && past.finished ? past.finished->time_since_epoch().count() : 0);
  out.raw(std::string(kClientBytes, '\0'));
  put_u16(out, 0);  // Worker.
  out.u32(0);       // Lease.
  out.u32(past.attempts);
  out.u32(past.counts.failed);
  out.u32(past.counts.timed_out);
  out.u32(past.counts.lost);
  out.u32(past.counts.crashed);
  out.u8(0);  // Unheard.
  out.u8(static_cast<std::uint8_t>(past.dead.value_or(DeadReason{})));
  out.u32(job.retry.max_attempts);
  out.i64(job.time_limit.count());
  out.i64(job.expires ? std::max<std::int64_t>(1, job.expires->time_since_epoch().count()) : 0);
  out.u8(static_cast<std::uint8_t>(job.queue.size()));
  put_u16(out, job.unique_key.size());
  out.u32(static_cast<std::uint32_t>(spec.size()));
  out.u32(static_cast<std::uint32_t>(job.body.size()));
  out.u32(static_cast<std::uint32_t>(tail.size()));
  out.raw(job.queue);
  out.raw(job.unique_key);
  out.raw(spec);
  out.raw(job.body);
  out.raw(tail);
  return bytes;
}

Result<StoredJob> decode_job(const JobId& id, std::string_view bytes, std::int64_t now_ms, bool has_body) {
  const Error damaged{ErrorCode::kDamaged, "what Redis has of job " + id.to_string() + " is not a job"};
  StoredJob stored;
  JobInfo& info = stored.info;
  Job& job = info.job;
  Decoder in(bytes);
  job.id = id;
  const std::int64_t due_ms = in.i64();
  info.due = time_of(due_ms);
  stored.place = in.u64();
  const std::uint8_t state = in.u8();
  job.priority = in.u8() + core::kLowestPriority;
  stored.flags = in.u8();
  (void)in.u8();  // How the last attempt ended is for scripts.
  stored.token = in.u64();
  const std::int64_t since_ms = in.i64();
  for (std::size_t i = 0; i < kClientBytes; ++i) stored.client.push_back(static_cast<char>(in.u8()));
  stored.worker = get_u16(in);
  (void)in.u32();  // Lease.
  info.attempts = in.u32();
  info.counts.failed = in.u32();
  info.counts.timed_out = in.u32();
  info.counts.lost = in.u32();
  info.counts.crashed = in.u32();
  stored.unheard = in.u8();
  const std::uint8_t reason = in.u8();
  (void)in.u32();  // The policy says it, too.
  job.time_limit = Milliseconds(in.i64());
  const std::int64_t expires_ms = in.i64();
  if (expires_ms != 0) job.expires = time_of(expires_ms);
  const std::size_t queue_size = in.u8();
  const std::size_t key_size = get_u16(in);
  const std::size_t spec_size = in.u32();
  const std::size_t body_size = has_body ? in.u32() : in.u32() * 0;
  const std::size_t tail_size = in.u32();
  if (!in.ok() || queue_size + key_size + spec_size + body_size + tail_size > in.left()) return damaged;
  std::string_view rest = in.rest();
  const auto next = [&rest](std::size_t size) {
    const std::string_view piece = rest.substr(0, size);
    rest.remove_prefix(size);
    return piece;
  };
  job.queue = next(queue_size);
  job.unique_key = next(key_size);
  if (!decode_spec(next(spec_size), job)) return damaged;
  job.body = next(body_size);
  if (!decode_tail(next(tail_size), info)) return damaged;

  switch (static_cast<StoredState>(state)) {
    case StoredState::kWaiting: info.state = due_ms > now_ms ? JobState::kScheduled : JobState::kReady; break;
    case StoredState::kRunning: info.state = JobState::kRunning; break;
    case StoredState::kDone: info.state = JobState::kDone; break;
    case StoredState::kDead: info.state = JobState::kDead; break;
    default: return damaged;
  }
  if (info.state == JobState::kDone || info.state == JobState::kDead) info.finished = time_of(since_ms);
  if (info.state == JobState::kDead) {
    if (reason > static_cast<std::uint8_t>(core::kLast<DeadReason>)) return damaged;
    info.dead_reason = static_cast<DeadReason>(reason);
  }
  return stored;
}

}  // namespace bide::brokers::redis
