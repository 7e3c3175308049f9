// BodiesApartSession: jobs in Redis, their bodies in a database. Redis has a reference in place of each body.
//
//   1. the bodies are written and committed   a process that dies here leaves bodies without a job: orphans
//   2. the script accepts the job             from here on it can be seen, and its body is there
//   3. the script that ends the job, or gives it another body, notes the old one as dropped, in the same step
//   4. what was dropped for body_retention is removed from the database
//
// Orphans: the sweep goes through the bodies in the order in which they were written, once, behind everybody who writes by
// orphan_age. It first tells Redis, which from then on refuses to accept bodies as old as that: so a body that no job needs by
// then never will be needed, however long a process stood still between the first step and the second.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "brokers/database/body_store.h"
#include "brokers/redis/redis_session.h"

namespace bide::brokers::redis {

class BodiesApartSession : public RedisSession {
 public:
  BodiesApartSession(const Settings& settings, ScriptSet scripts, std::unique_ptr<Connection> connection,
                     std::int64_t server_since_ms, database::BodyStore& store, database::BodySet set);

  void interrupt() override;

  Result<std::vector<Result<Enqueued>>> enqueue(const std::vector<Job>& jobs) override;
  Result<database::Granted> grant(const database::GrantRequest& request, std::vector<database::QueueTurn>& turns) override;
  Status save_body(const LeaseRef& lease, const std::string& body) override;
  Result<std::vector<Status>> end(const std::vector<database::Ending>& endings) override;
  // Also removes dropped bodies and orphans.
  Result<std::size_t> forget(const database::Retention& retention, std::size_t limit) override;
  Result<JobInfo> find(JobId id) override;
  Result<JobInfo> watch(JobId id) override;
  Result<JobPage> list(const JobFilter& filter, const std::string& cursor, std::size_t limit) override;

 protected:
  std::size_t bytes_apart(const Job& job) const override;

 private:
  // Runs `request` on a connection to the database, once more on a new one if it was gone. A database that is away does not end
  // the session: leases are kept alive meanwhile.
  template <class Request>
  auto ask_database(Request request) -> decltype(request(std::declval<database::BodySession&>()));
  // Writes the bodies, then runs the step with references to them; again, when it took so long that it was refused.
  template <class Step>
  auto write_first(const std::vector<database::NewBody>& bodies, Step step) -> decltype(step(std::vector<std::string>()));
  // Replaces references by what they refer to; the jobs whose body is missing.
  Result<std::vector<Job*>> fetch_bodies(const std::vector<Job*>& jobs);
  Result<JobInfo> with_body(Result<JobInfo> info);
  Result<std::size_t> remove_dropped(std::size_t limit);
  Status sweep_some();

  database::BodyStore& store_;
  const database::BodySet set_;
  std::int64_t not_before_ms_ = 0;  // Bodies are written as if it were at least so late.
  std::chrono::steady_clock::time_point next_sweep_ = {};

  std::mutex mutex_;  // Guards everything below, which only the session's thread changes.
  std::shared_ptr<database::BodySession> bodies_;
  bool interrupted_ = false;
};

}  // namespace bide::brokers::redis
