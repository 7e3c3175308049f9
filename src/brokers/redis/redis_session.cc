#include "brokers/redis/redis_session.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "brokers/redis/job_string.h"
#include "brokers/redis/script_arguments.h"
#include "core/job_rules.h"
#include "core/retry_decision.h"

namespace bide::brokers::redis {

using database::ClientId;
using database::Ending;
using database::Ends;
using database::Granted;
using database::GrantRequest;
using database::Overdue;
using database::OverdueLease;
using database::QueueTurn;

namespace {

constexpr std::size_t kGrantedBytes = 16 << 20;
constexpr std::size_t kLeasesAtOnce = 1000;

Error no_such_job(const JobId& id) { return {ErrorCode::kNotFound, "there is no job " + id.to_string()}; }

Error lease_lost(const JobId& id) {
  return {ErrorCode::kLeaseLost, "the lease of job " + id.to_string() + " is lost: another attempt has it, or it is finished"};
}

Status status_of(std::int64_t answer, const JobId& id) {
  if (answer > 0) return {};
  return answer == 0 ? lease_lost(id) : no_such_job(id);
}

Error bodies_are_old() { return {ErrorCode::kUnavailable, "it took so long that its bodies may have been swept; nothing was done"}; }

Error unexpected() { return {ErrorCode::kIoError, "the script answered what this version does not understand"}; }

}  // namespace

RedisSession::RedisSession(const Settings& settings, ScriptSet scripts, std::unique_ptr<Connection> connection,
                           std::int64_t server_since_ms)
    : settings_(settings),
      prefix_("{" + settings.prefix + "}:"),
      scripts_(std::move(scripts)),
      connection_(std::move(connection)),
      server_since_ms_(server_since_ms) {}

void RedisSession::interrupt() {
  is_interrupted_ = true;
  waker_.wake();
  connection_->interrupt();
}

Error RedisSession::failed(Error error) {
  const bool away = error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kUnconfirmed;
  if (away || error.code == ErrorCode::kPermissionDenied) is_broken_ = true;
  return error;
}

Result<Reply> RedisSession::run(Script script, const std::vector<std::string_view>& arguments, Wait wait) {
  if (is_interrupted_) return failed({ErrorCode::kUnavailable, "the session was ended"});
  Result<Reply> reply = scripts_.run(*connection_, script, prefix_, arguments);
  if (!reply) return failed(reply.error());
  if (wait == Wait::kConfirmed) {
    if (Status copied = await_copies(); !copied) return failed(copied.error());
  }
  return reply;
}

Status RedisSession::await_copies() {
  if (settings_.replicas == 0 && !settings_.fsync) return {};
  const std::string replicas = std::to_string(settings_.replicas);
  const std::string at_most = std::to_string(std::max<std::int64_t>(1, settings_.patience.count() * 9 / 10));
  const Result<Reply> reply = settings_.fsync ? connection_->run({"WAITAOF", "1", replicas, at_most})
                                              : connection_->run({"WAIT", replicas, at_most});
  if (!reply) return Error{ErrorCode::kUnconfirmed, reply.error().message};
  const std::int64_t copies = settings_.fsync ? reply->at(1).integer : reply->integer;
  const bool synced = !settings_.fsync || reply->at(0).integer >= 1;
  if (copies >= static_cast<std::int64_t>(settings_.replicas) && synced) return {};
  return Error{ErrorCode::kUnconfirmed, "it was done, but only " + std::to_string(copies) + " of " + replicas +
                                            " replicas have confirmed it" + (synced ? "" : ", and it is not on disk yet")};
}

bool RedisSession::is_refused(const Reply& reply) {
  if (reply.kind != Reply::Kind::kText) return false;
  std::from_chars(reply.text.data(), reply.text.data() + reply.text.size(), refused_before_ms_);
  return true;
}

// ---- Jobs in.

Result<std::vector<Result<Enqueued>>> RedisSession::enqueue(const std::vector<Job>& jobs) {
  ScriptArguments arguments;
  arguments.add(oldest_body_ms_);
  for (const Job& job : jobs) arguments.add_job(job);
  const Result<Reply> reply = run(Script::kEnqueue, arguments.all());
  if (!reply) return reply.error();
  if (is_refused(*reply)) return bodies_are_old();
  if (reply->items.size() != jobs.size()) return unexpected();
  std::vector<Result<Enqueued>> results;
  results.reserve(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Reply& answer = reply->items[i];
    if (answer.kind == Reply::Kind::kText) {
      results.push_back(key_is_held(jobs[i].unique_key, answer.text));
    } else {
      results.push_back(Enqueued{jobs[i].id, answer.integer == 0});
    }
  }
  return results;
}

// ---- Leases.

Result<Granted> RedisSession::grant(const GrantRequest& request, std::vector<QueueTurn>& turns) {
  ScriptArguments arguments;
  arguments.add(client_bytes(request.client));
  arguments.add(request.worker);
  arguments.add(request.lease.count());
  arguments.add(request.outlives_process ? 1 : 0);
  arguments.add(request.room);
  arguments.add(request.free_handlers);
  arguments.add(request.may_take_last_chance ? 1 : 0);
  arguments.add(core::kMaxCrashes);
  arguments.add(static_cast<std::int64_t>(random_.next() % 1'000'000));
  arguments.add(std::string(database::kOneAtATimeNote));
  arguments.add(kGrantedBytes);
  for (const QueueTurn& turn : turns) {
    arguments.add(turn.name);
    arguments.add(turn.weight);
    arguments.add(turn.score);
  }
  // Copies are waited for where something is confirmed to somebody.
  Result<Reply> reply = run(Script::kGrant, arguments.all(), Wait::kNone);
  if (!reply) return reply.error();
  if (reply->items.size() != 6) return unexpected();
  Granted granted;
  const std::int64_t now_ms = reply->at(5).integer;
  granted.now = Time(Milliseconds(now_ms));
  granted.held_back = reply->at(2).integer == 1;
  if (const std::int64_t next = reply->at(3).integer; next >= 0) granted.next_due = Milliseconds(next);
  for (std::size_t i = 0; i < turns.size(); ++i) turns[i].score = static_cast<int>(reply->at(4).at(i).integer);
  const std::vector<Reply>& leases = reply->at(0).items;
  granted.leases.reserve(leases.size() / 3);
  for (std::size_t i = 0; i + 2 < leases.size(); i += 3) {
    Result<StoredJob> stored = decode_job(id_in(leases[i].text), leases[i + 2].text, now_ms, true);
    if (!stored) return stored.error();
    JobInfo& info = stored->info;
    granted.leases.push_back({.job = std::move(info.job),
                              .token = static_cast<std::uint64_t>(leases[i + 1].integer),
                              .attempt = info.attempts + 1,
                              .due = info.due,
                              .counts = info.counts,
                              .history = std::move(info.history)});
  }
  const std::vector<Reply>& expired = reply->at(1).items;
  for (std::size_t i = 0; i + 2 < expired.size(); i += 3) {
    Result<StoredJob> stored = decode_job(id_in(expired[i].text), expired[i + 2].text, now_ms, true);
    if (!stored) return stored.error();
    const LeaseRef lease{stored->info.job.id, static_cast<std::uint64_t>(expired[i + 1].integer)};
    granted.expired.emplace_back(lease, std::move(stored->info));
  }
  return granted;
}

Result<std::vector<LeaseRef>> RedisSession::leases_of(ClientId client) {
  const std::string bytes = client_bytes(client);
  const Result<Reply> reply = run(Script::kClientLeases, {bytes, "0"}, Wait::kNone);
  if (!reply) return reply.error();
  std::vector<LeaseRef> leases;
  for (std::size_t i = 0; i + 1 < reply->items.size(); i += 2) {
    leases.push_back({id_in(reply->items[i].text), static_cast<std::uint64_t>(reply->items[i + 1].integer)});
  }
  return leases;
}

Result<std::vector<Extended>> RedisSession::extend(const std::vector<LeaseRef>& leases) {
  ScriptArguments arguments;
  arguments.add(1);
  for (const LeaseRef& lease : leases) arguments.add_lease(lease);
  const Result<Reply> reply = run(Script::kExtend, arguments.all(), Wait::kNone);
  if (!reply) return reply.error();
  if (reply->items.size() != leases.size()) return unexpected();
  std::vector<Extended> answers;
  for (const Reply& answer : reply->items) {
    answers.push_back({.lost = answer.integer == 0, .cancel_requested = answer.integer == 2});
  }
  return answers;
}

Status RedisSession::mark_delivered(const std::vector<LeaseRef>& leases) {
  ScriptArguments arguments;
  arguments.add(0);
  for (const LeaseRef& lease : leases) arguments.add_lease(lease);
  const Result<Reply> reply = run(Script::kExtend, arguments.all(), Wait::kNone);
  return reply ? Status() : reply.error();
}

Status RedisSession::save_body(const LeaseRef& lease, const std::string& body) {
  const std::string id = id_bytes(lease.id);
  const Result<Reply> reply = run(Script::kSaveBody, {id, std::to_string(lease.token), body, std::to_string(oldest_body_ms_)});
  if (!reply) return reply.error();
  if (is_refused(*reply)) return bodies_are_old();
  return status_of(reply->integer, lease.id);
}

Result<std::vector<Status>> RedisSession::end(const std::vector<Ending>& endings) {
  ScriptArguments arguments;
  arguments.add(settings_.done_limit);
  arguments.add(oldest_body_ms_);
  for (const Ending& ending : endings) arguments.add_ending(ending);
  const Result<Reply> reply = run(Script::kEnd, arguments.all());
  if (!reply) return reply.error();
  if (is_refused(*reply)) return bodies_are_old();
  if (reply->items.size() != endings.size()) return unexpected();
  std::vector<Status> statuses;
  statuses.reserve(endings.size());
  for (std::size_t i = 0; i < endings.size(); ++i) {
    statuses.push_back(status_of(reply->items[i].integer, endings[i].lease.id));
  }
  return statuses;
}

// ---- Keeping order.

Status RedisSession::keep_alive(ClientId client, const std::vector<std::string>& queues, Milliseconds client_timeout) {
  std::string lines;
  for (const std::string& queue : queues) lines += queue + "\n";
  const std::string bytes = client_bytes(client);
  const Result<Reply> reply = run(Script::kKeepAlive, {bytes, std::to_string(client_timeout.count()), lines}, Wait::kNone);
  return reply ? Status() : reply.error();
}

// Several steps: whoever is stopped between them leaves leases whose client is gone, which overdue() finds.
Status RedisSession::close_client(ClientId client, const std::string& note) {
  const std::string bytes = client_bytes(client);
  while (true) {
    const Result<Reply> reply = run(Script::kClientLeases, {bytes, "1"}, Wait::kNone);
    if (!reply) return reply.error();
    if (reply->items.empty()) return {};
    std::vector<Ending> endings;
    for (std::size_t i = 0; i + 1 < reply->items.size(); i += 2) {
      Ending& ending = endings.emplace_back();
      ending.lease = {id_in(reply->items[i].text), static_cast<std::uint64_t>(reply->items[i + 1].integer)};
      ending.how = Ends::kReturned;
      ending.is_settled = false;
      ending.note = note;
    }
    if (const auto ended = end(endings); !ended) return ended.error();
  }
}

Result<Overdue> RedisSession::overdue(Milliseconds client_timeout, std::size_t limit) {
  const Result<Reply> reply =
      run(Script::kOverdue, {std::to_string(client_timeout.count()), std::to_string(std::min(limit, kLeasesAtOnce)),
                             std::to_string(server_since_ms_)}, Wait::kNone);
  if (!reply) return reply.error();
  Overdue overdue;
  const std::vector<Reply>& found = reply->at(0).items;
  const std::int64_t now_ms = reply->at(2).integer;
  if (reply->at(1).integer >= 0) overdue.next = Milliseconds(reply->at(1).integer);
  for (std::size_t i = 0; i + 3 < found.size(); i += 4) {
    Result<StoredJob> stored = decode_job(id_in(found[i].text), found[i + 3].text, now_ms, false);
    if (!stored) return stored.error();
    overdue.leases.push_back({.lease = {stored->info.job.id, stored->token},
                              .info = std::move(stored->info),
                              .fault = static_cast<Fault>(found[i + 1].integer),
                              .cancel_requested = (stored->flags & StoredJob::kCancelRequested) != 0,
                              .is_unheard = found[i + 2].integer == 1,
                              .unheard_before = stored->unheard});
  }
  return overdue;
}

Result<std::size_t> RedisSession::forget(const database::Retention& retention, std::size_t limit) {
  const Result<Reply> reply = run(Script::kForget, {std::to_string(retention.done.count()),
                                                    std::to_string(retention.dead.count()), std::to_string(limit)}, Wait::kNone);
  if (!reply) return reply.error();
  return static_cast<std::size_t>(reply->integer);
}

Result<std::vector<std::string>> RedisSession::dropped_bodies(std::size_t limit, std::size_t removed, const std::string& first) {
  Result<Reply> reply = run(Script::kDroppedBodies, {std::to_string(settings_.body_retention.count()), std::to_string(limit),
                                                     std::to_string(removed), first}, Wait::kNone);
  if (!reply) return reply.error();
  std::vector<std::string> entries;
  for (Reply& entry : reply->items) entries.push_back(std::move(entry.text));
  return entries;
}

Result<RedisSession::Swept> RedisSession::sweep_bodies(std::int64_t before_ms, const std::string& last,
                                                       const std::vector<std::pair<JobId, JobId>>& bodies) {
  ScriptArguments arguments;
  arguments.add(before_ms);
  arguments.add(last);
  for (const auto& [job, body] : bodies) {
    arguments.add_id(job);
    arguments.add_id(body);
  }
  const Result<Reply> reply = run(Script::kSweepBodies, arguments.all(), Wait::kNone);
  if (!reply) return reply.error();
  Swept swept{.last = id_in(reply->at(0).text), .needed = {}};
  for (const Reply& needed : reply->at(1).items) swept.needed.push_back(needed.integer == 1);
  if (swept.needed.size() != bodies.size()) return unexpected();
  return swept;
}

}  // namespace bide::brokers::redis
