// RedisSession, looking around and putting things right by hand, and being told.

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include "brokers/redis/job_string.h"
#include "brokers/redis/redis_session.h"
#include "brokers/redis/script_arguments.h"
#include "core/broker_answers.h"
#include "core/quote.h"

namespace bide::brokers::redis {

using database::Notice;

namespace {

constexpr std::size_t kMemberBytes = 8 + JobId::kSize;  // <place><id>
constexpr std::int64_t kEndOfTime = std::int64_t{1} << 52;
constexpr std::size_t kListedAtOnce = 200;

Error unknown_job(const JobId& id) { return {ErrorCode::kNotFound, "there is no job " + id.to_string()}; }

Error wrong_state(const JobId& id, std::int64_t state, std::string_view allowed) {
  const auto known = static_cast<JobState>(std::clamp<std::int64_t>(state, 0, 4));
  return {ErrorCode::kWrongState, "job " + id.to_string() + " is " + std::string(to_string(known)) +
                                      "; this works for " + std::string(allowed) + " jobs"};
}

// The place behind which a page begins: time and <place><id>, as "time.hex".
struct Position {
  std::int64_t time_ms = 0;
  std::string member = {};

  std::string to_cursor() const {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text = std::to_string(time_ms) + ".";
    for (const char c : member) {
      text += kDigits[static_cast<std::uint8_t>(c) >> 4];
      text += kDigits[static_cast<std::uint8_t>(c) & 15];
    }
    return text;
  }

  static Result<Position> from_cursor(std::string_view cursor) {
    const Error invalid{ErrorCode::kInvalidArgument, "cursor " + core::quoted(cursor) + " is not one that was given out"};
    Position position;
    const auto [end, error] = std::from_chars(cursor.data(), cursor.data() + cursor.size(), position.time_ms);
    if (error != std::errc() || position.time_ms < 0 || position.time_ms > kEndOfTime) return invalid;
    cursor.remove_prefix(static_cast<std::size_t>(end - cursor.data()));
    if (cursor.size() != 1 + 2 * kMemberBytes || cursor.front() != '.') return invalid;
    for (std::size_t i = 1; i < cursor.size(); i += 2) {
      unsigned byte = 0;
      const auto read = std::from_chars(cursor.data() + i, cursor.data() + i + 2, byte, 16);
      if (read.ec != std::errc() || read.ptr != cursor.data() + i + 2) return invalid;
      position.member.push_back(static_cast<char>(byte));
    }
    return position;
  }
};

bool matches(const JobInfo& info, const JobFilter& filter) {
  if (!filter.kind.empty() && info.job.kind != filter.kind) return false;
  if (filter.error.empty()) return true;
  return !info.history.empty() && info.history.back().text.find(filter.error) != std::string::npos;
}

}  // namespace

// ---- Single jobs and lists.

Result<JobInfo> RedisSession::find(JobId id, bool watched) {
  const std::string bytes = id_bytes(id);
  const Result<Reply> reply = run(Script::kFind, {bytes, watched ? "1" : "0"}, Wait::kNone);
  if (!reply) return reply.error();
  if (reply->at(1).is_nil()) return unknown_job(id);
  Result<StoredJob> stored = decode_job(id, reply->at(1).text, reply->at(0).integer, true);
  if (!stored) return stored.error();
  stored->info.worker = reply->at(2).text;
  return std::move(stored->info);
}

Result<JobInfo> RedisSession::find(JobId id) { return find(id, false); }
Result<JobInfo> RedisSession::watch(JobId id) { return find(id, true); }

Result<JobPage> RedisSession::list(const JobFilter& filter, const std::string& cursor, std::size_t limit) {
  Position at;
  if (!cursor.empty()) {
    const Result<Position> given = Position::from_cursor(cursor);
    if (!given) return given.error();
    at = *given;
  }
  std::string states;
  for (const JobState state : filter.states) states += std::to_string(static_cast<int>(state));
  const bool backwards = !states.empty() && states.find_first_of("012") == std::string::npos;
  if (states.empty()) states = "01234";
  const auto ms_of = [](const std::optional<Time>& time, std::int64_t otherwise) {
    return std::clamp<std::int64_t>(time ? time->time_since_epoch().count() : otherwise, 0, kEndOfTime);
  };
  limit = std::clamp<std::size_t>(limit, 1, 1000);

  JobPage page;
  std::size_t bytes = 0;
  Position last;  // Of the page.
  while (true) {
    ScriptArguments arguments;
    arguments.add(backwards ? 1 : 0);
    arguments.add(states);
    arguments.add(filter.queue);
    arguments.add(ms_of(filter.since, 0));
    arguments.add(ms_of(filter.until, kEndOfTime));
    arguments.add(at.time_ms);
    arguments.add(at.member);
    arguments.add(std::min(limit + 1, kListedAtOnce));
    arguments.add(filter.bodies ? 1 : 0);
    const Result<Reply> reply = run(Script::kList, arguments.all(), Wait::kNone);
    if (!reply) return reply.error();
    const std::vector<Reply>& rows = reply->at(0).items;
    const std::int64_t now_ms = reply->at(1).integer;
    std::map<std::pair<std::string, std::string>, std::string> workers;
    const std::vector<Reply>& names = reply->at(2).items;
    for (std::size_t i = 0; i + 2 < names.size(); i += 3) workers[{names[i].text, names[i + 1].text}] = names[i + 2].text;
    for (std::size_t i = 0; i + 2 < rows.size(); i += 3) {
      at = {rows[i].integer, rows[i + 1].text};
      const JobId id = id_in(std::string_view(at.member).substr(std::min<std::size_t>(8, at.member.size())));
      Result<StoredJob> stored = decode_job(id, rows[i + 2].text, now_ms, filter.bodies);
      if (!stored) return stored.error();
      JobInfo& info = stored->info;
      if (!matches(info, filter)) continue;
      if (page.jobs.size() == limit || bytes >= JobPage::kMostBytes) {
        page.next = last.to_cursor();
        return page;
      }
      if (info.state == JobState::kRunning) info.worker = workers[{stored->client, std::to_string(stored->worker)}];
      if (!filter.bodies) info.result.clear();
      bytes += core::shown_bytes(info) + bytes_apart(info.job);
      page.jobs.push_back(std::move(info));
      last = at;
    }
    if (reply->at(3).integer == 0) return page;
  }
}

// ---- Queues and sums.

struct RedisSession::QueueTable {
  std::vector<QueueInfo> queues = {};
  std::map<std::string, std::uint64_t> counters = {};
  std::uint64_t leases = 0;
};

Result<RedisSession::QueueTable> RedisSession::read_queues() {
  const Result<Reply> reply = run(Script::kQueues, {}, Wait::kNone);
  if (!reply) return reply.error();
  QueueTable table;
  const std::vector<Reply>& rows = reply->at(0).items;
  for (std::size_t i = 0; i + 8 < rows.size(); i += 9) {
    const auto number = [&](std::size_t column) { return static_cast<std::uint64_t>(rows[i + column].integer); };
    QueueInfo& info = table.queues.emplace_back();
    info.name = rows[i].text;
    info.paused = number(1) == 1;
    info.scheduled = number(2);
    info.ready = number(3);
    info.running = number(4);
    info.dead = number(5);
    info.done = number(6);
    if (rows[i + 7].integer >= 0) info.oldest_ready = Time(Milliseconds(rows[i + 7].integer));
    info.workers = static_cast<int>(number(8));
  }
  std::sort(table.queues.begin(), table.queues.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  const std::vector<Reply>& counters = reply->at(1).items;
  for (std::size_t i = 0; i + 1 < counters.size(); i += 2) {
    const std::string& text = counters[i + 1].text;
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    table.counters[counters[i].text] = static_cast<std::uint64_t>(std::max<std::int64_t>(0, value));
  }
  table.leases = static_cast<std::uint64_t>(reply->at(2).integer);
  return table;
}

Result<std::vector<QueueInfo>> RedisSession::queues() {
  Result<QueueTable> table = read_queues();
  if (!table) return table.error();
  return std::move(table->queues);
}

Result<AuditReport> RedisSession::audit() {
  Result<QueueTable> table = read_queues();
  if (!table) return table.error();
  AuditReport report;
  report.accepted = table->counters["accepted"];
  report.done = table->counters["done"];
  for (const char* why : {"cancelled", "deleted", "purged", "forgotten"}) {
    report.removed += table->counters[why];
    report.details[why] = table->counters[why];
  }
  for (const QueueInfo& queue : table->queues) {
    report.details["scheduled"] += queue.scheduled;
    report.details["ready"] += queue.ready;
    report.details["running"] += queue.running;
    report.details["dead"] += queue.dead;
    report.details["done_remembered"] += queue.done;
  }
  std::map<std::string, std::uint64_t>& details = report.details;
  report.live = details["scheduled"] + details["ready"] + details["running"] + details["dead"];
  if (details["running"] != table->leases) {
    report.problems.push_back(std::to_string(details["running"]) + " jobs are counted as running, and there are " +
                              std::to_string(table->leases) + " leases");
  }
  if (report.accepted != report.done + report.removed + report.live) {
    report.problems.push_back(std::to_string(report.accepted) + " jobs were accepted, but " + std::to_string(report.done) +
                              " are done, " + std::to_string(report.removed) + " removed and " +
                              std::to_string(report.live) + " live");
  }
  return report;
}

// ---- By hand.

Result<std::vector<Status>> RedisSession::cancel(const std::vector<JobId>& ids, const CancelOptions& options) {
  ScriptArguments arguments;
  arguments.add(options.state ? static_cast<int>(*options.state) : -1);
  for (const JobId& id : ids) arguments.add_id(id);
  const Result<Reply> reply = run(Script::kCancel, arguments.all());
  if (!reply) return reply.error();
  const std::string_view allowed = options.state ? to_string(*options.state) : "scheduled, ready, running and dead";
  std::vector<Status> statuses;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::int64_t answer = reply->at(i).integer;
    if (answer == -1) statuses.push_back({});
    else if (answer == -2) statuses.push_back(unknown_job(ids[i]));
    else statuses.push_back(wrong_state(ids[i], answer, allowed));
  }
  return statuses;
}

Status RedisSession::reschedule(JobId id, Time due) {
  const std::string bytes = id_bytes(id);
  const std::int64_t due_ms = std::clamp<std::int64_t>(due.time_since_epoch().count(), 0, kEndOfTime);
  const Result<Reply> reply = run(Script::kReschedule, {bytes, std::to_string(due_ms), std::to_string(Milliseconds(Limits::kDelay).count())});
  if (!reply) return reply.error();
  if (reply->integer == -1) return {};
  if (reply->integer == -2) return unknown_job(id);
  if (reply->integer == -3) return Error{ErrorCode::kInvalidArgument, "due: too far away; at most 100 years from now"};
  return wrong_state(id, reply->integer, "scheduled and ready");
}

Result<std::vector<Status>> RedisSession::replay(const std::vector<JobId>& ids, const ReplayOptions& options) {
  ScriptArguments arguments;
  arguments.add(options.keep_attempts ? 1 : 0);
  arguments.add(options.delay.count());
  for (const JobId& id : ids) arguments.add_id(id);
  const Result<Reply> reply = run(Script::kReplay, arguments.all());
  if (!reply) return reply.error();
  std::vector<Status> statuses;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Reply& answer = reply->at(i);
    if (answer.kind == Reply::Kind::kText) {
      statuses.push_back(Error{ErrorCode::kAlreadyExists, "job " + ids[i].to_string() +
                                                              " cannot be replayed: its unique key is held by job " +
                                                              id_in(answer.text).to_string()});
    } else if (answer.integer == -1) {
      statuses.push_back({});
    } else if (answer.integer == -2) {
      statuses.push_back(unknown_job(ids[i]));
    } else {
      statuses.push_back(wrong_state(ids[i], answer.integer, "dead"));
    }
  }
  return statuses;
}

Status RedisSession::pause(const std::string& queue, bool paused) {
  const Result<Reply> reply = run(Script::kPause, {queue, paused ? "1" : "0"});
  return reply ? Status() : reply.error();
}

Result<std::uint64_t> RedisSession::purge(const std::string& queue, std::size_t limit) {
  const Result<Reply> reply = run(Script::kPurge, {queue, std::to_string(limit)});
  if (!reply) return reply.error();
  return static_cast<std::uint64_t>(reply->integer);
}

// ---- Being told.

Status RedisSession::listen() {
  const Result<Reply> reply = connection_->run({"SUBSCRIBE", prefix_ + "notices"});
  if (!reply) return failed(reply.error());
  heard_ = asked_ = std::chrono::steady_clock::now();
  return {};
}

Result<std::vector<Notice>> RedisSession::wait(Milliseconds at_most) {
  std::array<platform::Readiness, 2> ready = {
      platform::Readiness{.descriptor = connection_->descriptor(), .read = true},
      platform::Readiness{.descriptor = waker_.descriptor(), .read = true}};
  platform::wait_ready(ready, std::min(at_most, settings_.patience / 2));
  if (is_interrupted_) return failed({ErrorCode::kUnavailable, "the session was ended"});
  const auto now = std::chrono::steady_clock::now();
  std::vector<Notice> notices;
  if (!ready[0].read) {
    // A server that is gone without a word is noticed by its silence.
    if (now - heard_ > 2 * settings_.patience) {
      return failed({ErrorCode::kUnavailable, "Redis at " + connection_->host().to_string() + " is silent"});
    }
    if (now - std::max(heard_, asked_) > settings_.patience / 2) {
      asked_ = now;
      connection_->append({"PING"});
      if (Status sent = connection_->flush(); !sent) return failed(sent.error());
    }
    return notices;
  }
  heard_ = now;
  const Result<std::vector<Reply>> replies = connection_->arrived();
  if (!replies) return failed(replies.error());
  for (const Reply& reply : *replies) {
    if (reply.at(0).text != "message") continue;
    const std::string& text = reply.at(2).text;
    Notice notice;
    if (text.starts_with('e')) {
      notice.kind = Notice::Kind::kEnded;
      notice.id = id_in(std::string_view(text).substr(1));
    } else if (text.starts_with('q')) {
      std::int64_t due_ms = 0;
      const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), due_ms);
      if (error != std::errc() || end == text.data() + text.size()) continue;
      notice.kind = Notice::Kind::kQueue;
      notice.due = Time(Milliseconds(due_ms));
      notice.queue.assign(end + 1, text.data() + text.size());
    }
    notices.push_back(std::move(notice));
  }
  return notices;
}

}  // namespace bide::brokers::redis
