// SqlSession: keeping order, and what people do by hand.

#include <algorithm>
#include <set>
#include <utility>

#include "brokers/sql/sql_session.h"
#include "brokers/sql/sql_session_transact.h"
#include "core/number_text.h"
#include "core/quote.h"

namespace bide::brokers::sql {

using database::ClientId;
using database::Notice;
using database::Overdue;
using database::OverdueLease;

namespace {

std::string_view name_of(const JobRow& row) {
  constexpr std::string_view kNames[] = {"waiting", "running", "done", "dead"};
  return kNames[static_cast<std::size_t>(row.state)];
}

Error wrong_state(const JobRow& row, const std::string& allowed) {
  return {ErrorCode::kWrongState,
          "job " + row.info.job.id.to_string() + " is " + std::string(name_of(row)) + "; this works for " + allowed + " jobs"};
}

std::vector<JobId> without_repetitions(const std::vector<JobId>& ids) {
  const std::set<JobId> unique(ids.begin(), ids.end());
  return {unique.begin(), unique.end()};
}

Notice parsed(const std::string& text) {
  // q WAIT QUEUE or e ID
  if (text.starts_with("e ")) {
    const auto id = JobId::parse(std::string_view(text).substr(2));
    if (id) return {.kind = Notice::Kind::kEnded, .id = *id};
  }
  const std::size_t space = text.find(' ', 2);
  if (!text.starts_with("q ") || space == std::string::npos) return {};
  Notice notice{.kind = Notice::Kind::kQueue, .queue = text.substr(space + 1)};
  const auto wait_ms = core::parse_integer<std::int64_t>(std::string_view(text).substr(2, space - 2));
  if (!wait_ms) return {};
  notice.wait = Milliseconds(std::clamp<std::int64_t>(*wait_ms, 0, Milliseconds(Limits::kDelay).count()));
  return notice;
}

}  // namespace

Status SqlSession::keep_alive(ClientId client, const std::vector<std::string>& queues, Milliseconds client_timeout) {
  return do_transact([&]() -> Status {
    std::string lines;
    for (const std::string& queue : queues) lines += queue + "\n";
    connection_->add("pulse", {Value::integer(client_timeout.count())});
    connection_->add("keep_alive", {Value::integer(static_cast<std::int64_t>(client)), Value::bytes(lines)});
    const auto written = connection_->commit();
    return written ? Status() : Status(written.error());
  });
}

Status SqlSession::close_client(ClientId client, const std::string& note) {
  return do_transact([&]() -> Status {
    connection_->add("client_leases", {Value::integer(static_cast<std::int64_t>(client))});
    auto answers = connection_->run();
    if (!answers) return answers.error();
    Rows& rows = answers->back();
    Changes changes;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::int64_t now_ms = rows.integer(i, 0);
      JobRow row = JobRow::read(rows, i, 1);
      if (row.has(JobRow::kOutlives)) continue;
      if (row.has(JobRow::kCancel)) {
        remove(row, changes);
        changes.counts.cancelled += 1;
        continue;
      }
      row.state = RowState::kWaiting;
      row.info.attempts -= 1;
      row.info.note = note;
      row.settled = -1;
      row.flags &= JobRow::kWatched;
      changes.changed.push_back(row.changes());
      tell_of(row, now_ms);
    }
    connection_->add("remove_client", {Value::integer(static_cast<std::int64_t>(client))});
    const auto written = write(changes);
    return written ? Status() : Status(written.error());
  });
}

Result<Overdue> SqlSession::overdue(Milliseconds client_timeout, std::size_t limit) {
  const Value timeout = Value::integer(client_timeout.count());
  return transact<Overdue>([&]() -> Result<Overdue> {
    connection_->add("pulse", {timeout});
    connection_->add("overdue", {timeout, Value::integer(static_cast<std::int64_t>(limit))});
    connection_->add("next_lease_end", {});
    connection_->add("forget_clients", {timeout});
    auto answers = connection_->commit();
    if (!answers) return answers.error();
    Overdue overdue;
    Rows& rows = (*answers)[answers->size() - 3];
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::int64_t now_ms = rows.integer(i, 0);
      const bool is_gone = rows.integer(i, 1) != 0;
      const auto seen_ms = rows.integer_or_null(i, 2);
      const JobRow row = JobRow::read(rows, i, 3);
      const bool outlives = row.has(JobRow::kOutlives);
      overdue.leases.push_back({.lease = {row.info.job.id, row.token()},
                                .info = row.shown(now_ms),
                                .fault = is_gone && !outlives       ? Fault::kCrashed
                                         : row.limit_ms <= now_ms ? Fault::kTimedOut
                                                                  : Fault::kLost,
                                .cancel_requested = row.has(JobRow::kCancel),
                                .is_unheard = outlives && is_gone && !row.has(JobRow::kDelivered),
                                .unheard_before = static_cast<std::uint32_t>(row.unheard),
                                .stamp = stamp_of(row, seen_ms ? std::map{std::pair(row.client, *seen_ms)} : std::map<std::uint64_t, std::int64_t>())});
    }
    const Rows& next = (*answers)[answers->size() - 2];
    if (const auto end_ms = next.integer_or_null(0, 1)) {
      overdue.next = Milliseconds(std::max<std::int64_t>(0, *end_ms - next.integer(0, 0)));
    }
    return overdue;
  });
}

Result<std::size_t> SqlSession::forget(const database::Retention& retention, std::size_t limit) {
  return transact<std::size_t>([&]() -> Result<std::size_t> {
    const Value most = Value::integer(static_cast<std::int64_t>(limit));
    const bool forgets_dead = retention.dead.count() > 0;
    connection_->add("old", {Value::integer(2), Value::integer(retention.done.count()), most});
    if (forgets_dead) connection_->add("old", {Value::integer(3), Value::integer(retention.dead.count()), most});
    connection_->add("old_counters", {});
    const auto answers = connection_->run();
    if (!answers) return answers.error();
    Changes changes;
    std::size_t old = 0;
    const std::size_t first = answers->size() - (forgets_dead ? 3 : 2);
    for (std::size_t which = first; which + 1 < answers->size(); ++which) {
      const Rows& rows = (*answers)[which];
      old = std::max(old, rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) changes.removed.push_back(rows.id(i, 0));
      if (which > first) changes.counts.forgotten += static_cast<std::int64_t>(rows.size());
    }
    // The counters of connections that are long gone are kept in one row.
    const Rows& counters = answers->back();
    std::vector<Value> slots;
    Counts sums;
    for (std::size_t i = 0; i < counters.size(); ++i) {
      slots.push_back(Value::integer(counters.integer(i, 0)));
      std::int64_t* const fields[] = {&sums.accepted,  &sums.done, &sums.cancelled, &sums.deleted, &sums.purged,
                                      &sums.forgotten, &sums.lost, &sums.timed_out, &sums.crashed};
      for (std::size_t field = 0; field < std::size(fields); ++field) *fields[field] += counters.integer(i, field + 1);
    }
    if (!slots.empty()) {
      connection_->add_list("remove_counters", std::move(slots));
      connection_->add("count", sums.values(0));
    }
    if (const auto written = write(changes); !written) return written.error();
    return old;
  });
}

// ---- By hand.

Result<std::vector<Status>> SqlSession::cancel(const std::vector<JobId>& ids, const CancelOptions& options) {
  return transact<std::vector<Status>>([&]() -> Result<std::vector<Status>> {
    auto locked = lock(without_repetitions(ids));
    if (!locked) return locked.error();
    Changes changes;
    std::vector<Values> asked;
    std::vector<Status> statuses;
    for (const JobId& id : ids) {
      const auto found = locked->rows.find(id);
      if (found == locked->rows.end()) {
        statuses.push_back(no_such_job(id));
        continue;
      }
      JobRow& row = found->second;
      if (options.state && row.shown(locked->now_ms).state != *options.state) {
        statuses.push_back(wrong_state(row, std::string(to_string(*options.state))));
      } else if (row.state == RowState::kDone) {
        statuses.push_back(wrong_state(row, "scheduled, ready, running and dead"));
      } else if (row.state == RowState::kRunning) {
        asked.push_back({Value::id(id), Value::integer(JobRow::kCancel)});
        statuses.push_back({});
      } else {
        (row.state == RowState::kDead ? changes.counts.deleted : changes.counts.cancelled) += 1;
        remove(row, changes);
        locked->rows.erase(found);
        statuses.push_back({});
      }
    }
    connection_->add_each("set_flags", std::move(asked));
    if (const auto written = write(changes); !written) return written.error();
    return statuses;
  });
}

Status SqlSession::reschedule(JobId id, Time due) {
  return do_transact([&]() -> Status {
    auto locked = lock({id});
    if (!locked) return locked.error();
    const auto found = locked->rows.find(id);
    if (found == locked->rows.end()) return no_such_job(id);
    JobRow& row = found->second;
    if (row.state != RowState::kWaiting) return wrong_state(row, "scheduled and ready");
    const std::int64_t due_ms = due.time_since_epoch().count();
    if (due_ms - locked->now_ms > Milliseconds(Limits::kDelay).count()) {
      return Error{ErrorCode::kInvalidArgument, "due: too far away; at most 100 years from now"};
    }
    row.due_ms = std::max(due_ms, locked->now_ms);
    Changes changes;
    changes.changed.push_back(row.changes());
    tell_of(row, locked->now_ms);
    const auto written = write(changes);
    return written ? Status() : Status(written.error());
  });
}

Result<std::vector<Status>> SqlSession::replay(const std::vector<JobId>& ids, const ReplayOptions& options) {
  return transact<std::vector<Status>>([&]() -> Result<std::vector<Status>> {
    auto locked = lock(without_repetitions(ids));
    if (!locked) return locked.error();
    std::vector<Value> keys;
    for (const auto& [id, row] : locked->rows) {
      if (!row.info.job.unique_key.empty()) keys.push_back(Value::bytes(row.info.job.unique_key));
    }
    std::map<std::string, JobId> holders;
    if (!keys.empty()) {
      connection_->add_list("holders", std::move(keys));
      const auto held = connection_->run();
      if (!held) return held.error();
      for (std::size_t i = 0; i < held->back().size(); ++i) holders.emplace(held->back().bytes(i, 0), held->back().id(i, 1));
    }
    Changes changes;
    std::vector<Status> statuses;
    for (const JobId& id : ids) {
      const auto found = locked->rows.find(id);
      if (found == locked->rows.end()) {
        statuses.push_back(no_such_job(id));
        continue;
      }
      JobRow& row = found->second;
      if (row.state != RowState::kDead) {
        statuses.push_back(wrong_state(row, "dead"));
        continue;
      }
      const std::string& key = row.info.job.unique_key;
      const auto holder = key.empty() ? holders.end() : holders.find(key);
      if (holder != holders.end()) {
        statuses.push_back(Error{ErrorCode::kAlreadyExists, "job " + id.to_string() + " cannot be replayed: its unique key " +
                                                                core::quoted(key) + " is held by job " + holder->second.to_string()});
        continue;
      }
      if (!key.empty()) holders.emplace(key, id);
      if (!options.keep_attempts) {
        row.info.attempts = 0;
        row.info.counts = {};
      }
      row.state = RowState::kWaiting;
      row.due_ms = after(locked->now_ms, options.delay);
      row.info.job.expires.reset();
      row.finished_ms.reset();
      row.dead_reason = -1;
      row.settled = -1;
      row.unheard = 0;
      row.grants += 1;  // A settle from before must not pass for a repeated one.
      row.info.note = "replayed";
      changes.changed.push_back(row.changes());
      tell_of(row, locked->now_ms);
      statuses.push_back({});
    }
    if (const auto written = write(changes); !written) return written.error();
    return statuses;
  });
}

Status SqlSession::pause(const std::string& queue, bool paused) {
  return do_transact([&]() -> Status {
    connection_->add("pause", {Value::text(queue), Value::integer(paused ? 1 : 0)});
    if (!paused) tell_of(queue, std::nullopt, 0);
    const auto written = commit();
    return written ? Status() : Status(written.error());
  });
}

Result<std::uint64_t> SqlSession::purge(const std::string& queue, std::size_t limit) {
  return transact<std::uint64_t>([&]() -> Result<std::uint64_t> {
    connection_->add("waiting", {Value::text(queue), Value::integer(static_cast<std::int64_t>(limit))});
    const auto answers = connection_->run();
    if (!answers) return answers.error();
    const Rows& rows = answers->back();
    Changes changes;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      changes.removed.push_back(rows.id(i, 0));
      if ((rows.integer(i, 1) & JobRow::kWatched) != 0) connection_->add_notice({.before = "e " + rows.id(i, 0).to_string()});
    }
    changes.counts.purged = static_cast<std::int64_t>(rows.size());
    if (const auto written = write(changes); !written) return written.error();
    return static_cast<std::uint64_t>(rows.size());
  });
}

Result<std::vector<Notice>> SqlSession::wait(Milliseconds at_most) {
  const auto heard = connection_->wait(at_most);
  if (!heard) return heard.error();
  std::vector<Notice> notices;
  if (heard->missed) notices.push_back({});
  for (const std::string& text : heard->notices) notices.push_back(parsed(text));
  return notices;
}

}  // namespace bide::brokers::sql
