// SqlSession: looking around.

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "brokers/sql/sql_session.h"
#include "brokers/sql/sql_session_transact.h"
#include "core/broker_answers.h"
#include "core/number_text.h"
#include "core/quote.h"

namespace bide::brokers::sql {

namespace {

constexpr std::size_t kRowsAtOnce = 500;

// Where a page ends: the time that it is sorted by and the id of its last job.
struct Place {
  std::int64_t ms = 0;
  JobId id = {};
};

std::string to_cursor(const Place& place) { return std::to_string(place.ms) + "." + place.id.to_string(); }

std::optional<Place> from_cursor(const std::string& cursor) {
  const std::size_t dot = cursor.find('.');
  if (dot == std::string::npos) return std::nullopt;
  const auto ms = core::parse_integer<std::int64_t>(std::string_view(cursor).substr(0, dot));
  const auto id = JobId::parse(std::string_view(cursor).substr(dot + 1));
  if (!ms || !id) return std::nullopt;
  return Place{*ms, *id};
}

bool is_finished_state(JobState state) { return state == JobState::kDone || state == JobState::kDead; }

bool has_error(const JobRow& row, const std::string& error) {
  if (error.empty()) return true;
  const auto& history = row.info.history;
  return row.state != RowState::kDone && !history.empty() && history.back().text.find(error) != std::string::npos;
}

JobInfo brief_of_done(JobInfo info) {
  if (info.state != JobState::kDone) return info;
  info.job.content_type.clear();
  return info;
}

}  // namespace

Result<JobInfo> SqlSession::find(JobId id) {
  return transact<JobInfo>([&]() -> Result<JobInfo> {
    connection_->add_list("find", list_of({id}));
    connection_->add_list("bodies", list_of({id}));
    auto answers = connection_->commit();
    if (!answers) return answers.error();
    Rows& rows = (*answers)[answers->size() - 2];
    if (rows.size() == 0) return no_such_job(id);
    const std::int64_t now_ms = rows.integer(0, 0);
    JobInfo info = JobRow::read(rows, 0, 1).shown(now_ms);
    if (answers->back().size() > 0) info.job.body = answers->back().take(0, 1);
    return brief_of_done(std::move(info));
  });
}

Result<JobInfo> SqlSession::watch(JobId id) {
  return transact<JobInfo>([&]() -> Result<JobInfo> {
    auto locked = lock({id});
    if (!locked) return locked.error();
    const auto found = locked->rows.find(id);
    if (found == locked->rows.end()) return no_such_job(id);
    const JobRow& row = found->second;
    if (row.state != RowState::kDone && !row.has(JobRow::kWatched)) {
      connection_->add_each("set_flags", {{Value::id(id), Value::integer(JobRow::kWatched)}});
    }
    connection_->add_list("bodies", list_of({id}));
    auto answers = connection_->commit();
    if (!answers) return answers.error();
    JobInfo info = row.shown(locked->now_ms);
    if (answers->back().size() > 0) info.job.body = answers->back().take(0, 1);
    return brief_of_done(std::move(info));
  });
}

Result<JobPage> SqlSession::list(const JobFilter& filter, const std::string& cursor, std::size_t limit) {
  std::int64_t states = 0;
  for (const JobState state : filter.states) states |= std::int64_t{1} << static_cast<unsigned>(state);
  if (states == 0) states = 31;
  const bool newest_first = !filter.states.empty() && std::all_of(filter.states.begin(), filter.states.end(), is_finished_state);
  std::optional<Place> after;
  if (!cursor.empty()) {
    after = from_cursor(cursor);
    if (!after) return Error{ErrorCode::kInvalidArgument, "cursor " + core::quoted(cursor) + " is not one that was given out"};
  }
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(), kMost = std::numeric_limits<std::int64_t>::max();
  const auto ms_or = [](const std::optional<Time>& time, std::int64_t other) {
    return time ? time->time_since_epoch().count() : other;
  };
  if (!after) after = Place{newest_first ? kMost : kLeast, JobId()};
  JobPage page;
  std::size_t bytes = 0;
  for (;;) {
    const std::size_t asked = filter.error.empty() ? limit + 1 : kRowsAtOnce;
    auto found = transact<std::vector<std::pair<Place, JobRow>>>([&]() -> Result<std::vector<std::pair<Place, JobRow>>> {
      connection_->add(newest_first ? "list_newest" : "list_due",
                       {Value::integer(states), Value::text(filter.queue), Value::text(filter.kind),
                        Value::integer(ms_or(filter.since, kLeast)), Value::integer(ms_or(filter.until, kMost)),
                        Value::bytes(filter.error), Value::integer(after->ms), Value::id(after->id),
                        Value::integer(static_cast<std::int64_t>(asked))});
      auto answers = connection_->run();
      if (!answers) return answers.error();
      Rows& rows = answers->back();
      std::vector<std::pair<Place, JobRow>> read;
      std::vector<JobId> ids;
      std::uint64_t fetched = bytes;
      std::int64_t now_ms = 0;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        now_ms = rows.integer(i, 0);
        JobRow row = JobRow::read(rows, i, 1);
        if (fetched < JobPage::kMostBytes && filter.bodies && row.state != RowState::kDone && has_error(row, filter.error)) {
          ids.push_back(row.info.job.id);
          fetched += row.body_bytes;
        }
        const Place place{row.finished_ms.value_or(row.due_ms), row.info.job.id};
        row.info = row.shown(now_ms);
        read.emplace_back(place, std::move(row));
      }
      if (!ids.empty()) connection_->add_list("bodies", list_of(ids));
      answers = connection_->commit();
      if (!answers) return answers.error();
      std::map<JobId, std::string> bodies;
      for (std::size_t i = 0; !ids.empty() && i < answers->back().size(); ++i) {
        const JobId id = answers->back().id(i, 0);
        bodies.emplace(id, answers->back().take(i, 1));
      }
      for (auto& [place, row] : read) {
        if (const auto body = bodies.find(row.info.job.id); body != bodies.end()) row.info.job.body = std::move(body->second);
      }
      return read;
    });
    if (!found) return found.error();
    for (auto& [place, row] : *found) {
      if (!has_error(row, filter.error)) {
        after = place;
        continue;
      }
      if (page.jobs.size() == limit || bytes >= JobPage::kMostBytes) {
        page.next = to_cursor(*after);
        return page;
      }
      JobInfo info = brief_of_done(std::move(row.info));
      if (!filter.bodies) info.result = {};
      bytes += core::shown_bytes(info);
      page.jobs.push_back(std::move(info));
      after = place;
    }
    if (found->size() < asked) return page;
  }
}

Result<std::vector<QueueInfo>> SqlSession::queues() {
  return transact<std::vector<QueueInfo>>([&]() -> Result<std::vector<QueueInfo>> {
    connection_->add("queues", {});
    connection_->add("paused", {});
    connection_->add("client_queues", {Value::integer(client_timeout_.count())});
    const auto answers = connection_->commit();
    if (!answers) return answers.error();
    std::map<std::string, QueueInfo> infos;
    const Rows& rows = (*answers)[answers->size() - 3];
    const auto count = [&](std::size_t row, std::size_t column) { return static_cast<std::uint64_t>(rows.integer(row, column)); };
    for (std::size_t i = 0; i < rows.size(); ++i) {
      QueueInfo& info = infos[rows.bytes(i, 0)];
      info.scheduled = count(i, 1);
      info.ready = count(i, 2);
      info.running = count(i, 3);
      info.done = count(i, 4);
      info.dead = count(i, 5);
      if (const auto oldest = rows.integer_or_null(i, 6)) info.oldest_ready = Time(Milliseconds(*oldest));
    }
    const Rows& paused = (*answers)[answers->size() - 2];
    for (std::size_t i = 0; i < paused.size(); ++i) infos[paused.bytes(i, 0)].paused = true;
    for (std::size_t i = 0; i < answers->back().size(); ++i) {
      std::string_view left = answers->back().bytes(i, 0);
      while (!left.empty()) {
        const std::size_t end = std::min(left.find('\n'), left.size());
        infos[std::string(left.substr(0, end))].workers += 1;
        left.remove_prefix(std::min(end + 1, left.size()));
      }
    }
    std::vector<QueueInfo> all;
    for (auto& [name, info] : infos) {
      info.name = name;
      all.push_back(std::move(info));
    }
    return all;
  });
}

Result<AuditReport> SqlSession::audit() {
  return transact<AuditReport>([&]() -> Result<AuditReport> {
    connection_->add("audit", {});
    const auto answers = connection_->commit();
    if (!answers) return answers.error();
    const Rows& rows = answers->back();
    const auto count = [&](std::size_t column) { return static_cast<std::uint64_t>(rows.integer(0, column)); };
    AuditReport report;
    report.accepted = count(0);
    report.done = count(1);
    report.removed = count(2) + count(3) + count(4) + count(5);
    report.live = count(9) + count(10) + count(11) + count(13);
    report.details = {{"cancelled", count(2)},
                      {"deleted", count(3)},
                      {"purged", count(4)},
                      {"forgotten", count(5)},
                      {"duplicate_starts_lost", count(6)},
                      {"duplicate_starts_timed_out", count(7)},
                      {"duplicate_starts_crashed", count(8)},
                      {"scheduled", count(9)},
                      {"ready", count(10)},
                      {"running", count(11)},
                      {"done_remembered", count(12)},
                      {"dead", count(13)}};
    if (report.accepted != report.done + report.removed + report.live) {
      report.problems.push_back(std::to_string(report.accepted) + " jobs were accepted, and " +
                                std::to_string(report.done + report.removed + report.live) + " are accounted for");
    }
    return report;
  });
}

}  // namespace bide::brokers::sql
