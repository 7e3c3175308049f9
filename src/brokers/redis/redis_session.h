// RedisSession: one connection to the server, and the steps on it; see database::Session.

#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "brokers/database/job_store.h"
#include "brokers/redis/connection.h"
#include "brokers/redis/redis_url.h"
#include "brokers/redis/script_set.h"
#include "platform/local_socket.h"
#include "platform/random.h"

namespace bide::brokers::redis {

class RedisSession : public database::Session {
 public:
  // `server_since_ms`: since when the server can have heard of anybody.
  RedisSession(const Settings& settings, ScriptSet scripts, std::unique_ptr<Connection> connection,
               std::int64_t server_since_ms);

  bool is_broken() const override { return is_broken_; }
  void interrupt() override;

  Result<std::vector<Result<Enqueued>>> enqueue(const std::vector<Job>& jobs) override;

  Result<database::Granted> grant(const database::GrantRequest& request, std::vector<database::QueueTurn>& turns) override;
  Result<std::vector<LeaseRef>> leases_of(database::ClientId client) override;
  Result<std::vector<Extended>> extend(const std::vector<LeaseRef>& leases) override;
  Status mark_delivered(const std::vector<LeaseRef>& leases) override;
  Status save_body(const LeaseRef& lease, const std::string& body) override;
  Result<std::vector<Status>> end(const std::vector<database::Ending>& endings) override;

  Status keep_alive(database::ClientId client, const std::vector<std::string>& queues, Milliseconds client_timeout) override;
  Status close_client(database::ClientId client, const std::string& note) override;
  Result<database::Overdue> overdue(Milliseconds client_timeout, std::size_t limit) override;
  Result<std::size_t> forget(const database::Retention& retention, std::size_t limit) override;

  Result<JobInfo> find(JobId id) override;
  Result<JobInfo> watch(JobId id) override;
  Result<JobPage> list(const JobFilter& filter, const std::string& cursor, std::size_t limit) override;
  Result<std::vector<QueueInfo>> queues() override;
  Result<AuditReport> audit() override;

  Result<std::vector<Status>> cancel(const std::vector<JobId>& ids, const CancelOptions& options) override;
  Status reschedule(JobId id, Time due) override;
  Result<std::vector<Status>> replay(const std::vector<JobId>& ids, const ReplayOptions& options) override;
  Status pause(const std::string& queue, bool paused) override;
  Result<std::uint64_t> purge(const std::string& queue, std::size_t limit) override;

  Status listen() override;
  Result<std::vector<database::Notice>> wait(Milliseconds at_most) override;

 protected:
  // Bodies that are in a database are given to the steps as references to them; see BodiesApartSession.
  static constexpr std::size_t kReferenceBytes = JobId::kSize + 4;
  // When the oldest of those was written that the next step is given; 0: it is given none.
  std::int64_t oldest_body_ms_ = 0;
  // The step was refused, and did nothing: bodies that were written before this time may have been swept.
  std::int64_t refused_before_ms_ = 0;

  // Bodies that no job has needed for so long; of the answer before, `removed` are gone, the first of which was `first`.
  Result<std::vector<std::string>> dropped_bodies(std::size_t limit, std::size_t removed, const std::string& first);
  struct Swept {
    JobId last = {};           // Bodies up to this one have been looked at.
    std::vector<bool> needed;  // For each that was given.
  };
  Result<Swept> sweep_bodies(std::int64_t before_ms, const std::string& last, const std::vector<std::pair<JobId, JobId>>& bodies);

  // Of its body, as far as they are not in it.
  virtual std::size_t bytes_apart(const Job&) const { return 0; }

  const Settings settings_;

 private:
  struct QueueTable;

  // Runs a script; kConfirmed waits for replicas or the disk as the settings say.
  enum class Wait { kNone, kConfirmed };
  Result<Reply> run(Script script, const std::vector<std::string_view>& arguments, Wait wait = Wait::kConfirmed);
  Status await_copies();
  // Remembers that the connection is of no more use.
  Error failed(Error error);
  Result<JobInfo> find(JobId id, bool watched);
  Result<QueueTable> read_queues();
  // The answer says that the step was refused; see refused_before_ms_.
  bool is_refused(const Reply& reply);

  const std::string prefix_;
  const ScriptSet scripts_;
  const std::unique_ptr<Connection> connection_;
  const std::int64_t server_since_ms_;
  platform::SystemRandom random_;
  platform::Waker waker_;
  std::atomic<bool> is_broken_ = false;
  std::atomic<bool> is_interrupted_ = false;

  // While it listens.
  std::chrono::steady_clock::time_point heard_ = {};
  std::chrono::steady_clock::time_point asked_ = {};
};

}  // namespace bide::brokers::redis
