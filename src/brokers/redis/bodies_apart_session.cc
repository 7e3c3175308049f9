#include "brokers/redis/bodies_apart_session.h"

#include <algorithm>
#include <utility>

#include "brokers/redis/script_arguments.h"

namespace bide::brokers::redis {

using database::BodyId;
using database::BodySession;
using database::Ending;
using database::Ends;
using database::Granted;
using database::GrantRequest;
using database::NewBody;
using database::QueueTurn;
using std::chrono::steady_clock;

namespace {

constexpr std::size_t kSweptAStep = 1000;
constexpr int kWriteTries = 3;
constexpr const char* kMissing = "its body is not in the database";

std::string reference_to(const BodyId& id, std::size_t size) {
  std::string text = id_bytes(id);
  for (int shift = 0; shift < 32; shift += 8) text.push_back(static_cast<char>(size >> shift & 0xff));
  return text;
}

// Of a step that was refused as a whole, before it did anything.
bool did_nothing(ErrorCode code) { return code == ErrorCode::kUnavailable || code == ErrorCode::kOverloaded; }

}  // namespace

BodiesApartSession::BodiesApartSession(const Settings& settings, ScriptSet scripts, std::unique_ptr<Connection> connection,
                                       std::int64_t server_since_ms, database::BodyStore& store, database::BodySet set)
    : RedisSession(settings, std::move(scripts), std::move(connection), server_since_ms), store_(store), set_(set) {}

void BodiesApartSession::interrupt() {
  RedisSession::interrupt();
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  if (bodies_) bodies_->interrupt();
}

template <class Request>
auto BodiesApartSession::ask_database(Request request) -> decltype(request(std::declval<BodySession&>())) {
  for (int tries = 1;; ++tries) {
    std::shared_ptr<BodySession> session;
    {
      const std::lock_guard lock(mutex_);
      if (interrupted_) return Error{ErrorCode::kUnavailable, "the session was ended"};
      session = bodies_;
    }
    if (!session) {
      auto opened = store_.connect();
      if (!opened) return opened.error();
      session = std::move(*opened);
      const std::lock_guard lock(mutex_);
      bodies_ = session;
      if (interrupted_) session->interrupt();
    }
    auto answer = request(*session);
    if (!session->is_broken()) return answer;
    {
      const std::lock_guard lock(mutex_);
      bodies_.reset();
    }
    // All of it may be done twice: what was written and is not known to be is an orphan.
    if (answer || tries > 1) return answer;
  }
}

template <class Step>
auto BodiesApartSession::write_first(const std::vector<NewBody>& bodies, Step step) -> decltype(step(std::vector<std::string>())) {
  for (int tries = 1;; ++tries) {
    const auto ids = ask_database([&](BodySession& on) { return on.write(set_, bodies, not_before_ms_); });
    // Whatever became of the bodies, no job has them.
    if (!ids && ids.error().code == ErrorCode::kUnconfirmed) return Error{ErrorCode::kUnavailable, ids.error().message};
    if (!ids) return ids.error();
    std::vector<std::string> references;
    for (std::size_t i = 0; i < bodies.size(); ++i) references.push_back(reference_to((*ids)[i], bodies[i].bytes.size()));
    oldest_body_ms_ = database::written_ms(ids->front());
    refused_before_ms_ = 0;
    auto answer = step(std::move(references));
    oldest_body_ms_ = 0;
    // The server forgets bodies of jobs that it did not accept by itself; here it has not heard of any.
    if (!answer && did_nothing(answer.error().code)) {
      (void)ask_database([&](BodySession& on) { return on.remove(set_, *ids); });
    }
    if (refused_before_ms_ == 0 || tries == kWriteTries) return answer;
    not_before_ms_ = refused_before_ms_;
  }
}

// ---- Jobs in.

Result<std::vector<Result<Enqueued>>> BodiesApartSession::enqueue(const std::vector<Job>& jobs) {
  std::vector<NewBody> bodies;
  for (const Job& job : jobs) {
    if (!job.body.empty()) bodies.push_back({job.id, job.body});
  }
  if (bodies.empty()) return RedisSession::enqueue(jobs);
  return write_first(bodies, [&](std::vector<std::string> references) {
    std::vector<Job> referring = jobs;
    auto next = references.begin();
    for (Job& job : referring) {
      if (!job.body.empty()) job.body = std::move(*next++);
    }
    return RedisSession::enqueue(referring);
  });
}

// ---- Leases.

Result<Granted> BodiesApartSession::grant(const GrantRequest& request, std::vector<QueueTurn>& turns) {
  // Not while the bodies cannot be had: leases would be given and given back.
  if (const auto there = ask_database([](BodySession&) { return Status(); }); !there) {
    return Error{ErrorCode::kUnavailable, there.error().message};
  }
  auto granted = RedisSession::grant(request, turns);
  if (!granted) return granted;
  std::vector<Job*> jobs;
  for (Lease& lease : granted->leases) jobs.push_back(&lease.job);
  const auto missing = fetch_bodies(jobs);
  // They are leased, and nobody has them.
  if (!missing) return Error{ErrorCode::kUnconfirmed, missing.error().message};
  if (missing->empty()) return granted;
  std::vector<Ending> endings;
  std::erase_if(granted->leases, [&](const Lease& lease) {
    if (std::find(missing->begin(), missing->end(), &lease.job) == missing->end()) return false;
    endings.push_back({.lease = {lease.job.id, lease.token}, .how = Ends::kDead, .is_settled = false, .error = kMissing, .reason = DeadReason::kDamaged});
    return true;
  });
  if (const auto ended = RedisSession::end(endings); !ended) return Error{ErrorCode::kUnconfirmed, ended.error().message};
  return granted;
}

Status BodiesApartSession::save_body(const LeaseRef& lease, const std::string& body) {
  if (body.empty()) return RedisSession::save_body(lease, body);
  return write_first({{lease.id, body}}, [&](std::vector<std::string> references) { return RedisSession::save_body(lease, references.front()); });
}

Result<std::vector<Status>> BodiesApartSession::end(const std::vector<Ending>& endings) {
  std::vector<NewBody> bodies;
  for (const Ending& ending : endings) {
    if (ending.body && !ending.body->empty()) bodies.push_back({ending.lease.id, *ending.body});
    for (const Job& effect : ending.effects) {
      if (!effect.body.empty()) bodies.push_back({effect.id, effect.body});
    }
  }
  if (bodies.empty()) return RedisSession::end(endings);
  return write_first(bodies, [&](std::vector<std::string> references) {
    std::vector<Ending> referring = endings;
    auto next = references.begin();
    for (Ending& ending : referring) {
      if (ending.body && !ending.body->empty()) ending.body = std::move(*next++);
      for (Job& effect : ending.effects) {
        if (!effect.body.empty()) effect.body = std::move(*next++);
      }
    }
    return RedisSession::end(referring);
  });
}

// ---- Looking around.

std::size_t BodiesApartSession::bytes_apart(const Job& job) const {
  std::size_t size = 0;
  if (job.body.size() != kReferenceBytes) return size;
  for (std::size_t i = kReferenceBytes; i > JobId::kSize; --i) size = size << 8 | static_cast<std::uint8_t>(job.body[i - 1]);
  return size;
}

Result<std::vector<Job*>> BodiesApartSession::fetch_bodies(const std::vector<Job*>& jobs) {
  std::vector<BodyId> ids;
  for (const Job* job : jobs) {
    if (!job->body.empty()) ids.push_back(id_in(job->body));
  }
  std::vector<Job*> missing;
  if (ids.empty()) return missing;
  auto bodies = ask_database([&](BodySession& on) { return on.read(set_, ids); });
  if (!bodies) return bodies.error();
  for (Job* job : jobs) {
    if (job->body.empty()) continue;
    const auto found = bodies->find(id_in(job->body));
    if (found == bodies->end()) {
      job->body.clear();
      missing.push_back(job);
    } else {
      job->body = std::move(found->second);
    }
  }
  return missing;
}

Result<JobInfo> BodiesApartSession::with_body(Result<JobInfo> info) {
  if (!info) return info;
  const auto missing = fetch_bodies({&info->job});
  if (!missing) return missing.error();
  if (!missing->empty()) info->note = kMissing;
  return info;
}

Result<JobInfo> BodiesApartSession::find(JobId id) { return with_body(RedisSession::find(id)); }
Result<JobInfo> BodiesApartSession::watch(JobId id) { return with_body(RedisSession::watch(id)); }

Result<JobPage> BodiesApartSession::list(const JobFilter& filter, const std::string& cursor, std::size_t limit) {
  auto page = RedisSession::list(filter, cursor, limit);
  if (!page || !filter.bodies) return page;
  std::vector<Job*> jobs;
  for (JobInfo& info : page->jobs) jobs.push_back(&info.job);
  const auto missing = fetch_bodies(jobs);
  if (!missing) return missing.error();
  for (JobInfo& info : page->jobs) {
    if (std::find(missing->begin(), missing->end(), &info.job) != missing->end()) info.note = kMissing;
  }
  return page;
}

// ---- Keeping order.

Result<std::size_t> BodiesApartSession::forget(const database::Retention& retention, std::size_t limit) {
  const auto forgotten = RedisSession::forget(retention, limit);
  if (!forgotten) return forgotten;
  const auto removed = remove_dropped(limit);
  if (!removed) return removed;
  if (Status swept = sweep_some(); !swept) return swept.error();
  return std::max(*forgotten, *removed);
}

Result<std::size_t> BodiesApartSession::remove_dropped(std::size_t limit) {
  const auto dropped = dropped_bodies(limit, 0, "");
  if (!dropped) return dropped.error();
  if (dropped->empty()) return std::size_t{0};
  std::vector<BodyId> ids;
  for (const std::string& entry : *dropped) ids.push_back(id_in(std::string_view(entry).substr(std::min<std::size_t>(8, entry.size()))));
  if (Status removed = ask_database([&](BodySession& on) { return on.remove(set_, ids); }); !removed) return removed.error();
  // Told afterwards: whoever dies before it has them removed again by another.
  if (const auto next = dropped_bodies(0, ids.size(), dropped->front()); !next) return next.error();
  return ids.size();
}

Status BodiesApartSession::sweep_some() {
  if (steady_clock::now() < next_sweep_) return {};
  const auto now_ms = ask_database([](BodySession& on) { return on.now_ms(); });
  if (!now_ms) return now_ms.error();
  const std::int64_t before_ms = std::max<std::int64_t>(0, *now_ms - settings_.orphan_age.count());
  const auto begun = sweep_bodies(before_ms, "", {});
  if (!begun) return begun.error();
  const auto bodies = ask_database([&](BodySession& on) { return on.list(set_, begun->last, before_ms, kSweptAStep); });
  if (!bodies) return bodies.error();
  // What came while this piece was looked at can wait: nothing of it is due yet.
  if (bodies->size() < kSweptAStep) next_sweep_ = steady_clock::now() + settings_.orphan_age / 60;
  if (bodies->empty()) return {};
  std::vector<std::pair<JobId, BodyId>> pairs;
  for (const database::WrittenBody& body : *bodies) pairs.emplace_back(body.job, body.id);
  const auto swept = sweep_bodies(before_ms, "", pairs);
  if (!swept) return swept.error();
  std::vector<BodyId> orphans;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!swept->needed[i]) orphans.push_back(pairs[i].second);
  }
  if (Status removed = ask_database([&](BodySession& on) { return on.remove(set_, orphans); }); !removed) return removed;
  const auto ended = sweep_bodies(before_ms, id_bytes(pairs.back().second), {});
  return ended ? Status() : ended.error();
}

}  // namespace bide::brokers::redis
