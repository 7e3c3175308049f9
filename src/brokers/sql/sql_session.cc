#include "brokers/sql/sql_session.h"

#include <algorithm>
#include <set>
#include <utility>

#include "brokers/database/weighted_turns.h"
#include "brokers/sql/sql_session_transact.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "core/retry_decision.h"

namespace bide::brokers::sql {

using database::Ending;
using database::Ends;
using database::Granted;
using database::GrantRequest;
using database::QueueTurn;

namespace {

constexpr std::uint64_t kGrantedBytes = 16 << 20;  // Of bodies in one step; at least one job.
constexpr std::int64_t kTurnMs = 1000;

Error lease_lost(const JobId& id) {
  return {ErrorCode::kLeaseLost, "the lease of job " + id.to_string() + " is lost: another attempt has it, or it is finished"};
}

}  // namespace

std::int64_t after(std::int64_t now_ms, Milliseconds wait) {
  return now_ms + wait.count() + (wait.count() > 0 ? 1 : 0);
}

std::string stamp_of(const JobRow& row, const std::map<std::uint64_t, std::int64_t>& seen_ms) {
  const auto seen = seen_ms.find(row.client);
  return std::to_string(row.deadline_ms) + "/" + (seen == seen_ms.end() ? "" : std::to_string(seen->second));
}

Error no_such_job(const JobId& id) {
  return {ErrorCode::kNotFound, "there is no job " + id.to_string() + "; it may be done and forgotten"};
}

std::vector<Value> list_of(const std::vector<JobId>& ids) {
  std::vector<Value> list;
  for (const JobId& id : ids) list.push_back(Value::id(id));
  return list;
}

Values Counts::values(std::int64_t slot) const {
  Values made = {Value::integer(slot)};
  for (const std::int64_t count : {accepted, done, cancelled, deleted, purged, forgotten, lost, timed_out, crashed}) {
    made.push_back(Value::integer(count));
  }
  return made;
}

SqlSession::SqlSession(std::unique_ptr<SqlConnection> connection, const SqlSettings& settings)
    : connection_(std::move(connection)), client_timeout_(settings.client_timeout),
      slot_(connection_->is_borrowed() ? connection_->number() : static_cast<std::int64_t>((random_.next() >> 1) | 1)) {}

Result<SqlSession::Locked> SqlSession::lock(const std::vector<JobId>& ids, std::string_view statement) {
  connection_->add_list(statement, list_of(ids));
  auto answers = connection_->run();
  if (!answers) return answers.error();
  Rows& rows = answers->back();
  Locked locked;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    locked.now_ms = rows.integer(i, 0);
    JobRow row = JobRow::read(rows, i, 1);
    const JobId id = row.info.job.id;
    locked.rows.emplace(id, std::move(row));
  }
  return locked;
}

void SqlSession::add_changes(Changes& changes) {
  connection_->add_each("done", std::move(changes.done));
  connection_->add_each("change", std::move(changes.changed));
  connection_->add_each("set_body", std::move(changes.bodies));
  if (!changes.removed.empty()) connection_->add_list("remove", list_of(changes.removed));
}

Result<std::vector<Rows>> SqlSession::write(Changes& changes) {
  add_changes(changes);
  if (changes.counts != Counts{}) connection_->add("count", changes.counts.values(slot_));
  return commit();
}

Result<std::vector<Rows>> SqlSession::commit() {
  for (const auto& [queue, told] : told_) {
    if (told.delay_ms == 0) {
      connection_->add_notice({.before = "q 0 " + queue});
      continue;
    }
    if (told.due_ms) connection_->add_notice({.before = "q ", .due_ms = told.due_ms, .behind = " " + queue});
    if (told.delay_ms) connection_->add_notice({.before = "q ", .delay_ms = told.delay_ms, .behind = " " + queue});
  }
  return connection_->commit();
}

// ---- Jobs in.

void SqlSession::tell_of(const std::string& queue, std::optional<std::int64_t> due_ms, std::int64_t delay_ms) {
  Told& told = told_[queue];
  if (due_ms) {
    told.due_ms = std::min(told.due_ms.value_or(*due_ms), *due_ms);
  } else {
    told.delay_ms = std::min(told.delay_ms.value_or(delay_ms), delay_ms);
  }
}

void SqlSession::tell_of(const Job& job) {
  // With a wait it is worth telling, too: the next job that others know of may be due later.
  const auto due = job.due ? std::optional(job.due->time_since_epoch().count()) : std::nullopt;
  tell_of(job.queue, due, job.delay.count());
}

void SqlSession::tell_of(const JobRow& row, std::int64_t now_ms) {
  tell_of(row.info.job.queue, row.due_ms <= now_ms ? std::nullopt : std::optional(row.due_ms), 0);
}

void SqlSession::tell_end(const JobRow& row) {
  if (row.has(JobRow::kWatched)) connection_->add_notice({.before = "e " + row.info.job.id.to_string()});
}

Result<std::vector<Result<Enqueued>>> SqlSession::enqueue(const std::vector<Job>& jobs) {
  bool is_careful = connection_->is_borrowed() || std::any_of(jobs.begin(), jobs.end(), [](const Job& job) { return !job.unique_key.empty(); });
  return transact<std::vector<Result<Enqueued>>>([&] { return try_enqueue(jobs, std::exchange(is_careful, true)); });
}

Result<std::vector<std::optional<Result<Enqueued>>>> SqlSession::find_taken(const std::vector<const Job*>& jobs) {
  std::vector<Value> ids, keys;
  for (const Job* job : jobs) {
    ids.push_back(Value::id(job->id));
    if (!job->unique_key.empty()) keys.push_back(Value::bytes(job->unique_key));
  }
  connection_->add_list("existing", std::move(ids));
  const bool has_keys = !keys.empty();
  if (has_keys) connection_->add_list("holders", std::move(keys));
  const auto answers = connection_->run();
  if (!answers) return answers.error();
  const Rows& existing = (*answers)[answers->size() - (has_keys ? 2 : 1)];
  std::set<JobId> there;
  for (std::size_t i = 0; i < existing.size(); ++i) there.insert(existing.id(i, 0));
  std::map<std::string, JobId> holders;
  for (std::size_t i = 0; has_keys && i < answers->back().size(); ++i) {
    holders.emplace(answers->back().bytes(i, 0), answers->back().id(i, 1));
  }
  std::vector<std::optional<Result<Enqueued>>> taken;
  for (const Job* job : jobs) {
    if (there.contains(job->id)) {
      taken.push_back(Result<Enqueued>(Enqueued{job->id, true}));
      continue;
    }
    const bool wants_key = !job->unique_key.empty() && !(job->past && job->past->dead);
    const auto holder = wants_key ? holders.find(job->unique_key) : holders.end();
    if (holder != holders.end()) {
      taken.push_back(Result<Enqueued>(Error{ErrorCode::kAlreadyExists, "the unique key " + core::quoted(job->unique_key) +
                                                                            " is held by job " + holder->second.to_string()}));
      continue;
    }
    there.insert(job->id);
    if (wants_key) holders.emplace(job->unique_key, job->id);
    taken.emplace_back();
  }
  return taken;
}

Result<std::vector<Result<Enqueued>>> SqlSession::try_enqueue(const std::vector<Job>& jobs, bool is_careful) {
  std::vector<std::optional<Result<Enqueued>>> taken(jobs.size());
  if (is_careful) {
    std::vector<const Job*> all;
    for (const Job& job : jobs) all.push_back(&job);
    auto found = find_taken(all);
    if (!found) return found.error();
    taken = std::move(*found);
  }
  std::vector<Result<Enqueued>> results;
  std::vector<Values> rows, moved;
  Changes changes;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (taken[i]) {
      results.push_back(*taken[i]);
      continue;
    }
    (jobs[i].past ? moved : rows).push_back(inserted(jobs[i]));
    results.push_back(Enqueued{jobs[i].id});
    tell_of(jobs[i]);
  }
  changes.counts.accepted = static_cast<std::int64_t>(rows.size() + moved.size());
  connection_->add_each("insert", std::move(rows));
  connection_->add_each("insert_past", std::move(moved));
  if (const auto written = write(changes); !written) return written.error();
  return results;
}

// ---- Leases.

Result<Granted> SqlSession::grant(const GrantRequest& request, std::vector<QueueTurn>& turns) {
  const std::vector<QueueTurn> before = turns;
  return transact<Granted>([&]() -> Result<Granted> {
    turns = before;
    auto ready = pick(turns, request.room);
    if (!ready) return ready.error();
    Chosen chosen = choose(request, turns, std::move(*ready));

    std::vector<Values> given;
    std::vector<JobId> ids;
    for (const JobRow& row : chosen.given) {
      ids.push_back(row.info.job.id);
      given.push_back({Value::id(row.info.job.id), Value::integer(static_cast<std::int64_t>(request.client)),
                       Value::integer(request.lease.count()), Value::integer(request.outlives_process ? JobRow::kOutlives : 0),
                       Value::bytes(request.worker)});
    }
    if (!given.empty() && !is_known_) {
      connection_->add("know_client", {Value::integer(static_cast<std::int64_t>(request.client))});
    }
    connection_->add_each("grant", std::move(given));
    connection_->add_each("change", std::move(chosen.put_off));
    if (!ids.empty()) connection_->add_list("bodies", list_of(ids));
    const std::size_t asked = ask_next_due(turns);
    auto written = connection_->commit();
    if (!written) return written.error();
    if (!ids.empty()) is_known_ = true;

    Granted& granted = chosen.granted;
    const std::size_t first = written->size() - asked;
    for (std::size_t i = first; i < written->size(); ++i) {
      const Rows& next = (*written)[i];
      granted.now = Time(Milliseconds(next.integer(0, 0)));
      const auto due_ms = next.columns() > 1 ? next.integer_or_null(0, 1) : std::nullopt;
      if (!due_ms) continue;
      const Milliseconds wait(std::max<std::int64_t>(0, *due_ms - next.integer(0, 0)));
      granted.next_due = std::min(granted.next_due.value_or(wait), wait);
    }
    if (!ids.empty()) {
      std::map<JobId, std::string> bodies;
      Rows& rows = (*written)[first - 1];
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const JobId id = rows.id(i, 0);
        bodies.emplace(id, rows.take(i, 1));
      }
      for (JobRow& row : chosen.given) {
        row.grants += 1;
        Lease lease{.job = std::move(row.info.job),
                    .token = row.token(),
                    .attempt = row.info.attempts + 1,
                    .due = Time(Milliseconds(row.due_ms)),
                    .counts = row.info.counts,
                    .history = std::move(row.info.history)};
        lease.job.body = std::move(bodies[lease.job.id]);
        granted.leases.push_back(std::move(lease));
      }
    }
    return std::move(granted);
  });
}

Result<SqlSession::Ready> SqlSession::pick(const std::vector<QueueTurn>& turns, int room) {
  Ready ready;
  ready.rows.resize(turns.size());
  const auto take = [&](Rows& rows, std::size_t turn) {
    for (std::size_t row = 0; row < rows.size(); ++row) {
      ready.now_ms = rows.integer(row, 0);
      ready.rows[turn].push_back(JobRow::read(rows, row, 1));
    }
  };
  if (!connection_->picks_by_priority()) {
    for (const QueueTurn& turn : turns) connection_->add("pick", {Value::text(turn.name), Value::integer(room)});
    auto answers = connection_->run();
    if (!answers) return answers.error();
    for (std::size_t i = 0; i < turns.size(); ++i) take((*answers)[answers->size() - turns.size() + i], i);
    return ready;
  }
  priorities_.clear();
  for (std::size_t i = 0; i < turns.size(); ++i) {
    std::int64_t below = core::kHighestPriority + 1;
    while (ready.rows[i].size() < static_cast<std::size_t>(room)) {
      connection_->add("next_priority", {Value::text(turns[i].name), Value::integer(below)});
      const auto found = connection_->run();
      if (!found) return found.error();
      if (found->back().size() == 0) break;
      below = found->back().integer(0, 0);
      priorities_.emplace_back(turns[i].name, below);
      const auto left = room - static_cast<std::int64_t>(ready.rows[i].size());
      connection_->add("pick_priority", {Value::text(turns[i].name), Value::integer(below), Value::integer(left)});
      auto answers = connection_->run();
      if (!answers) return answers.error();
      take(answers->back(), i);
    }
  }
  return ready;
}

std::size_t SqlSession::ask_next_due(const std::vector<QueueTurn>& turns) {
  if (!connection_->picks_by_priority()) {
    for (const QueueTurn& turn : turns) connection_->add("next_due", {Value::text(turn.name)});
    return turns.size();
  }
  for (const auto& [queue, priority] : priorities_) connection_->add("next_due_of", {Value::text(queue), Value::integer(priority)});
  connection_->add("now", {});
  return priorities_.size() + 1;
}

SqlSession::Chosen SqlSession::choose(const GrantRequest& request, std::vector<QueueTurn>& turns, Ready picked) {
  std::vector<std::vector<JobRow>>& ready = picked.rows;
  const std::int64_t now_ms = picked.now_ms;
  Chosen chosen;
  std::vector<std::size_t> next(turns.size());
  std::set<JobId> seen;  // A queue may be named twice.
  std::uint64_t bytes = 0;
  bool last_chance = request.may_take_last_chance;
  const auto room = static_cast<std::size_t>(request.room);
  while (chosen.given.size() + chosen.granted.expired.size() < room && (chosen.given.empty() || bytes < kGrantedBytes)) {
    QueueTurn* const turn = database::next_turn(turns, [&](std::size_t i) { return next[i] < ready[i].size(); });
    if (turn == nullptr) break;
    const auto index = static_cast<std::size_t>(turn - turns.data());
    JobRow& row = ready[index][next[index]++];
    const JobInfo& info = row.info;
    if (!seen.insert(info.job.id).second) continue;
    if (info.job.expires && info.attempts == 0 && info.job.expires->time_since_epoch().count() <= now_ms) {
      chosen.granted.expired.emplace_back(LeaseRef{info.job.id, row.token()}, row.shown(now_ms));
      continue;
    }
    // Not fetched ahead: if its worker were killed before the handler began, the job would be dead without having run.
    if (request.free_handlers >= 0 && chosen.given.size() >= static_cast<std::size_t>(request.free_handlers) &&
        core::would_die_by_crash(info.job.retry, info.counts)) {
      chosen.granted.held_back = true;
      break;
    }
    if (core::is_last_chance(info.counts) && !std::exchange(last_chance, false)) {
      row.due_ms = now_ms + kTurnMs + static_cast<std::int64_t>(random_.next() % kTurnMs);
      row.info.note = database::kOneAtATimeNote;
      chosen.put_off.push_back(row.changes());
      continue;
    }
    bytes += row.body_bytes;
    chosen.given.push_back(std::move(row));
  }
  return chosen;
}

Result<std::vector<LeaseRef>> SqlSession::leases_of(database::ClientId client) {
  return transact<std::vector<LeaseRef>>([&]() -> Result<std::vector<LeaseRef>> {
    connection_->add("client_leases", {Value::integer(static_cast<std::int64_t>(client))});
    auto answers = connection_->commit();
    if (!answers) return answers.error();
    std::vector<LeaseRef> leases;
    for (std::size_t i = 0; i < answers->back().size(); ++i) {
      const JobRow row = JobRow::read(answers->back(), i, 1);
      leases.push_back({row.info.job.id, row.token()});
    }
    return leases;
  });
}

namespace {

std::vector<JobId> ids_of(const std::vector<LeaseRef>& leases) {
  std::set<JobId> ids;
  for (const LeaseRef& lease : leases) ids.insert(lease.id);
  return {ids.begin(), ids.end()};
}

}  // namespace

Result<std::vector<Extended>> SqlSession::extend(const std::vector<LeaseRef>& leases) {
  return transact<std::vector<Extended>>([&]() -> Result<std::vector<Extended>> {
    const auto locked = lock(ids_of(leases), "lock_free");
    if (!locked) return locked.error();
    // What somebody has locked is about to change; until then it is held.
    const auto seen = locked->rows.size() == ids_of(leases).size() ? locked : lock(ids_of(leases), "find");
    if (!seen) return seen.error();
    std::vector<Extended> answers;
    std::set<JobId> held;
    for (const LeaseRef& lease : leases) {
      const auto found = seen->rows.find(lease.id);
      const bool is_held = found != seen->rows.end() && found->second.state == RowState::kRunning && found->second.token() == lease.token;
      answers.push_back({.lost = !is_held, .cancel_requested = is_held && found->second.has(JobRow::kCancel)});
      if (is_held && locked->rows.contains(lease.id)) held.insert(lease.id);
    }
    if (!held.empty()) connection_->add_list("extend", list_of({held.begin(), held.end()}));
    if (const auto written = connection_->commit(); !written) return written.error();
    return answers;
  });
}

Status SqlSession::mark_delivered(const std::vector<LeaseRef>& leases) {
  const auto marked = transact<bool>([&]() -> Result<bool> {
    const auto locked = lock(ids_of(leases));
    if (!locked) return locked.error();
    std::vector<Values> flags;
    for (const LeaseRef& lease : leases) {
      const auto found = locked->rows.find(lease.id);
      if (found == locked->rows.end() || found->second.state != RowState::kRunning || found->second.token() != lease.token) continue;
      if (!found->second.has(JobRow::kDelivered)) flags.push_back({Value::id(lease.id), Value::integer(JobRow::kDelivered)});
    }
    connection_->add_each("set_flags", std::move(flags));
    if (const auto written = connection_->commit(); !written) return written.error();
    return true;
  });
  return marked ? Status() : Status(marked.error());
}

Status SqlSession::save_body(const LeaseRef& lease, const std::string& body) {
  const auto saved = transact<bool>([&]() -> Result<bool> {
    const auto locked = lock({lease.id});
    if (!locked) return locked.error();
    const auto found = locked->rows.find(lease.id);
    if (found == locked->rows.end()) return no_such_job(lease.id);
    if (found->second.state != RowState::kRunning || found->second.token() != lease.token) return lease_lost(lease.id);
    connection_->add_each("set_body", {{Value::id(lease.id), Value::borrowed(body)}});
    connection_->add_each("set_flags", {{Value::id(lease.id), Value::integer(JobRow::kDelivered)}});
    if (const auto written = connection_->commit(); !written) return written.error();
    return true;
  });
  return saved ? Status() : Status(saved.error());
}

// ---- Ends.

void SqlSession::remove(JobRow& row, Changes& changes) {
  changes.removed.push_back(row.info.job.id);
  tell_end(row);
}

Status SqlSession::apply(const Ending& ending, Locked& locked, Changes& changes) {
  const auto found = locked.rows.find(ending.lease.id);
  if (found == locked.rows.end()) return no_such_job(ending.lease.id);
  JobRow& row = found->second;
  const RowState from = ending.how == Ends::kExpired ? RowState::kWaiting : RowState::kRunning;
  if (row.token() != ending.lease.token) return lease_lost(ending.lease.id);
  if (row.state != from) {
    const bool is_repeated = ending.is_settled && row.settled == static_cast<std::int64_t>(ending.how);
    return is_repeated ? Status() : Status(lease_lost(ending.lease.id));
  }
  if (from == RowState::kWaiting && row.info.attempts != 0) return lease_lost(ending.lease.id);
  if (!ending.stamp.empty() && ending.stamp != stamp_of(row, locked.seen_ms)) return lease_lost(ending.lease.id);
  const bool goes_on = ending.how == Ends::kRetry || ending.how == Ends::kReturned || ending.how == Ends::kUnheard;
  if (!ending.is_settled && (ending.how == Ends::kRetry || ending.how == Ends::kDead)) {
    changes.counts.lost += ending.fault == Fault::kLost;
    changes.counts.timed_out += ending.fault == Fault::kTimedOut;
    changes.counts.crashed += ending.fault == Fault::kCrashed;
  }
  if (row.has(JobRow::kCancel) && (goes_on || (!ending.is_settled && ending.how == Ends::kDead))) {
    remove(row, changes);
    locked.rows.erase(found);
    changes.counts.cancelled += 1;
    return {};
  }
  row.settled = ending.is_settled ? static_cast<std::int64_t>(ending.how) : -1;
  row.flags &= JobRow::kWatched;
  switch (ending.how) {
    case Ends::kDone:
      row.state = RowState::kDone;
      changes.counts.done += 1;
      changes.done.push_back({Value::id(ending.lease.id), Value::integer(row.settled), Value::bytes_or_null(ending.result),
                              Value::bytes_or_null(ending.content_type)});
      tell_end(row);
      return {};
    case Ends::kRetry:
      row.charge(ending.fault, ending.error, locked.now_ms);
      row.state = RowState::kWaiting;
      row.due_ms = after(locked.now_ms, ending.after);
      if (ending.body) changes.bodies.push_back({Value::id(ending.lease.id), Value::borrowed(*ending.body)});
      break;
    case Ends::kDead:
      row.charge(ending.fault, ending.error, locked.now_ms);
      row.dead_reason = static_cast<std::int64_t>(ending.reason);
      row.state = RowState::kDead;
      row.finished_ms = locked.now_ms;
      break;
    case Ends::kReturned:
      row.info.attempts -= 1;
      row.info.note = ending.note;
      row.unheard = 0;
      row.state = RowState::kWaiting;
      if (ending.after.count() > 0) row.due_ms = after(locked.now_ms, ending.after);
      break;
    case Ends::kExpired:
      row.dead_reason = static_cast<std::int64_t>(DeadReason::kExpired);
      row.info.note = database::kExpiredNote;
      row.state = RowState::kDead;
      row.finished_ms = locked.now_ms;
      break;
    case Ends::kUnheard:
      row.unheard += 1;
      row.info.note = ending.note;
      row.state = RowState::kWaiting;
      break;
  }
  changes.changed.push_back(row.changes());
  if (row.state == RowState::kWaiting) tell_of(row, locked.now_ms);
  if (row.state == RowState::kDead) tell_end(row);
  return {};
}

// Locked, so that a client that is heard of again waits until its fate is decided.
Status SqlSession::read_clients(Locked& locked, const std::vector<Ending>& endings) {
  std::set<std::uint64_t> clients;
  for (const Ending& ending : endings) {
    const auto found = locked.rows.find(ending.lease.id);
    if (!ending.stamp.empty() && found != locked.rows.end()) clients.insert(found->second.client);
  }
  if (clients.empty()) return {};
  std::vector<Value> list;
  for (const std::uint64_t client : clients) list.push_back(Value::integer(static_cast<std::int64_t>(client)));
  connection_->add_list("clients_seen", std::move(list));
  const auto answers = connection_->run();
  if (!answers) return answers.error();
  const Rows& rows = answers->back();
  for (std::size_t i = 0; i < rows.size(); ++i) locked.seen_ms[static_cast<std::uint64_t>(rows.integer(i, 0))] = rows.integer(i, 1);
  return {};
}

Result<std::vector<Status>> SqlSession::end(const std::vector<Ending>& endings) {
  return transact<std::vector<Status>>([&]() -> Result<std::vector<Status>> {
    std::vector<LeaseRef> leases;
    for (const Ending& ending : endings) leases.push_back(ending.lease);
    // An end that nobody asked for does not wait for those who have the job locked: they are doing something with it.
    const bool is_asked = std::any_of(endings.begin(), endings.end(), [](const Ending& ending) { return ending.is_settled; });
    auto locked = lock(ids_of(leases), is_asked ? "lock" : "lock_free");
    if (!locked) return locked.error();
    if (Status stamped = read_clients(*locked, endings); !stamped) return stamped.error();
    Changes changes;
    std::vector<Status> statuses;
    std::vector<const Job*> effects;
    for (const Ending& ending : endings) {
      // A repeated settle succeeds and makes nothing a second time.
      const auto found = locked->rows.find(ending.lease.id);
      const RowState from = ending.how == Ends::kExpired ? RowState::kWaiting : RowState::kRunning;
      const bool is_first = found != locked->rows.end() && found->second.state == from;
      statuses.push_back(apply(ending, *locked, changes));
      if (!statuses.back() || !is_first) continue;
      for (const Job& effect : ending.effects) effects.push_back(&effect);
    }
    if (!effects.empty()) {
      add_changes(changes);
      const Counts counts = changes.counts;
      changes = {};
      changes.counts = counts;
      // After the ends are written: a key that one of them frees is free.
      const auto taken = find_taken(effects);
      if (!taken) return taken.error();
      std::vector<Values> rows;
      for (std::size_t i = 0; i < effects.size(); ++i) {
        if ((*taken)[i]) continue;
        rows.push_back(inserted(*effects[i]));
        tell_of(*effects[i]);
      }
      changes.counts.accepted += static_cast<std::int64_t>(rows.size());
      connection_->add_each("insert", std::move(rows));
    }
    if (const auto written = write(changes); !written) return written.error();
    return statuses;
  });
}

}  // namespace bide::brokers::sql
