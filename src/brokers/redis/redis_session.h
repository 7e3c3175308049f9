// RedisSession: one connection to the server, and the steps on it; see database::Session.

#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
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

  const Settings settings_;
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
