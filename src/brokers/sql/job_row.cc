#include "brokers/sql/job_row.h"

#include "core/encoding.h"
#include "core/enums.h"

namespace bide::brokers::sql {
namespace {

// name, tab, value, newline: a name has no control characters, and a value no newline.
std::string text_of(const Headers& headers) {
  std::string text;
  for (const auto& [name, value] : headers) text += name + "\t" + value + "\n";
  return text;
}

Headers headers_of(std::string_view text) {
  Headers headers;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::size_t tab = std::min(line.find('\t'), line.size());
    headers.emplace_back(line.substr(0, tab), line.substr(std::min(tab + 1, line.size())));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return headers;
}

std::string encoded(const std::vector<AttemptError>& history) {
  std::string bytes;
  if (history.empty()) return bytes;
  core::Encoder out(bytes);
  out.u8(1);
  for (const AttemptError& error : history) {
    out.count(error.attempt);
    out.i64(error.at.time_since_epoch().count());
    out.u8(static_cast<std::uint8_t>(error.fault));
    out.string(error.text);
  }
  return bytes;
}

std::vector<AttemptError> history_of(std::string_view bytes) {
  std::vector<AttemptError> history;
  core::Decoder in(bytes);
  if (bytes.empty() || in.u8() != 1) return history;
  while (in.ok() && in.left() > 0) {
    AttemptError error;
    error.attempt = static_cast<std::uint32_t>(in.count());
    error.at = Time(Milliseconds(in.i64()));
    error.fault = static_cast<Fault>(std::min<std::uint8_t>(in.u8(), static_cast<std::uint8_t>(core::kLast<Fault>)));
    error.text = in.string();
    if (in.ok()) history.push_back(std::move(error));
  }
  return history;
}

std::optional<std::int64_t> ms_of(const std::optional<Time>& time) {
  if (!time) return std::nullopt;
  return time->time_since_epoch().count();
}

}  // namespace

JobRow JobRow::read(Rows& rows, std::size_t row, std::size_t at) {
  JobRow made;
  const auto integer = [&] { return rows.integer(row, at++); };
  const auto count = [&] { return static_cast<std::uint32_t>(rows.integer(row, at++)); };
  const auto bytes = [&] { return rows.take(row, at++); };
  Job& job = made.info.job;
  made.seq = integer();
  made.grants = integer();
  job.id = rows.id(row, at++);
  job.queue = bytes();
  job.kind = bytes();
  made.state = static_cast<RowState>(integer());
  job.priority = static_cast<int>(integer());
  made.due_ms = integer();
  made.info.attempts = count();
  made.info.counts.failed = count();
  made.info.counts.timed_out = count();
  made.info.counts.lost = count();
  made.info.counts.crashed = count();
  made.unheard = integer();
  made.flags = integer();
  made.client = static_cast<std::uint64_t>(integer());
  job.time_limit = Milliseconds(integer());
  made.deadline_ms = integer();
  made.limit_ms = integer();
  if (const auto expires = rows.integer_or_null(row, at++)) job.expires = Time(Milliseconds(*expires));
  made.finished_ms = rows.integer_or_null(row, at++);
  made.settled = integer();
  made.dead_reason = integer();
  job.content_type = bytes();
  job.headers = headers_of(bytes());
  // A policy that nobody can read was written by another language: the usual one.
  job.retry = RetryPolicy::parse(bytes()).value_or(RetryPolicy());
  job.unique_key = bytes();
  made.info.worker = bytes();
  made.info.note = bytes();
  made.info.history = history_of(bytes());
  made.info.result = bytes();
  made.info.result_content_type = bytes();
  made.body_bytes = static_cast<std::uint64_t>(integer());
  return made;
}

Values JobRow::changes() const {
  const auto integer = [](auto value) { return Value::integer(static_cast<std::int64_t>(value)); };
  return {Value::id(info.job.id),
          integer(state),
          integer(due_ms),
          Value::integer(ms_of(info.job.expires)),
          Value::integer(finished_ms),
          integer(grants),
          integer(info.attempts),
          integer(info.counts.failed),
          integer(info.counts.timed_out),
          integer(info.counts.lost),
          integer(info.counts.crashed),
          integer(flags),
          integer(unheard),
          integer(settled),
          integer(dead_reason),
          Value::bytes_or_null(info.note),
          Value::bytes_or_null(encoded(info.history))};
}

JobInfo JobRow::shown(std::int64_t now_ms) const {
  JobInfo made = info;
  made.due = Time(Milliseconds(due_ms));
  switch (state) {
    case RowState::kWaiting: made.state = due_ms <= now_ms ? JobState::kReady : JobState::kScheduled; break;
    case RowState::kRunning: made.state = JobState::kRunning; break;
    case RowState::kDone: made.state = JobState::kDone; break;
    case RowState::kDead: made.state = JobState::kDead; break;
  }
  if (finished_ms) made.finished = Time(Milliseconds(*finished_ms));
  if (state == RowState::kDead && dead_reason >= 0) made.dead_reason = static_cast<DeadReason>(dead_reason);
  return made;
}

void JobRow::charge(Fault fault, std::string error, std::int64_t now_ms) {
  AttemptCounts& counts = info.counts;
  std::uint32_t* const counters[] = {&counts.failed, &counts.timed_out, &counts.lost, &counts.crashed};
  *counters[static_cast<std::size_t>(fault)] += 1;
  info.history.push_back({info.attempts, Time(Milliseconds(now_ms)), fault, std::move(error)});
  if (info.history.size() > Limits::kHistory) info.history.erase(info.history.begin());
  info.note.clear();
  unheard = 0;
}

Values inserted(const Job& job) {
  Values values = {Value::id(job.id),
                   Value::text(job.queue),
          Value::text(job.kind),
          Value::text(job.retry.to_string()),
          Value::integer(ms_of(job.due)),
          Value::integer(job.delay.count()),
          Value::integer(ms_of(job.expires)),
          Value::integer(job.time_limit.count()),
          Value::integer(job.priority),
          Value::bytes_or_null(job.content_type),
          Value::bytes_or_null(text_of(job.headers)),
          Value::bytes_or_null(job.unique_key),
          Value::borrowed(job.body)};
  if (!job.past) return values;
  const JobPast& past = *job.past;
  const auto integer = [&](auto value) { values.push_back(Value::integer(static_cast<std::int64_t>(value))); };
  integer(past.dead ? RowState::kDead : RowState::kWaiting);
  values.push_back(Value::integer(ms_of(past.finished)));
  for (const std::uint32_t count :
       {past.attempts, past.counts.failed, past.counts.timed_out, past.counts.lost, past.counts.crashed}) {
    integer(count);
  }
  integer(past.dead ? static_cast<int>(*past.dead) : -1);
  values.push_back(Value::bytes_or_null(encoded(past.history)));
  return values;
}

}  // namespace bide::brokers::sql
