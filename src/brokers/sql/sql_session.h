// SqlSession: the steps of a JobStore as transactions. Rows are locked and read, what becomes of them is decided here, and
// they are written back: the rules are in C++ once, and both dialects run the same ones.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "brokers/database/job_store.h"
#include "brokers/sql/job_row.h"
#include "brokers/sql/sql_connection.h"
#include "platform/random.h"

namespace bide::brokers::sql {

// What a transaction adds to the counters of bide.counters.
struct Counts {
  std::int64_t accepted = 0;
  std::int64_t done = 0;
  std::int64_t cancelled = 0;
  std::int64_t deleted = 0;
  std::int64_t purged = 0;
  std::int64_t forgotten = 0;
  std::int64_t lost = 0;
  std::int64_t timed_out = 0;
  std::int64_t crashed = 0;

  Values values(std::int64_t slot) const;
  friend bool operator==(const Counts&, const Counts&) = default;
};

class SqlSession : public database::Session {
 public:
  SqlSession(std::unique_ptr<SqlConnection> connection, const SqlSettings& settings);

  bool is_broken() const override { return connection_->is_lost(); }
  void interrupt() override { connection_->interrupt(); }

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

  Status listen() override { return connection_->listen(); }
  Result<std::vector<database::Notice>> wait(Milliseconds at_most) override;

 private:
  struct Locked {
    std::int64_t now_ms = 0;  // 0 when there is no row.
    std::map<JobId, JobRow> rows;
    std::map<std::uint64_t, std::int64_t> seen_ms;  // Of clients, where it matters.
  };
  // What a step has decided, to be written by one commit.
  struct Changes {
    std::vector<Values> done;
    std::vector<Values> changed;
    std::vector<Values> bodies;
    std::vector<JobId> removed;
    Counts counts;
  };

  // Runs a step within begin() until it succeeds, or fails for a reason that is not another transaction.
  template <class Step>
  auto transact_as(Step step) -> decltype(step());
  template <class T, class Step>
  Result<T> transact(Step step);
  template <class Step>
  Status do_transact(Step step);
  // `statement`: lock, lock_free or find.
  Result<Locked> lock(const std::vector<JobId>& ids, std::string_view statement = "lock");
  Result<std::vector<Rows>> write(Changes& changes);  // Commits.
  void add_changes(Changes& changes);
  Result<std::vector<Rows>> commit();  // With what is to be told.

  // What is given of what is ready.
  struct Chosen {
    std::vector<JobRow> given;
    std::vector<Values> put_off;  // For `change`.
    database::Granted granted;
  };
  struct Ready {
    std::int64_t now_ms = 0;  // 0 when there is no row.
    std::vector<std::vector<JobRow>> rows;  // For each queue, in order.
  };
  Result<Ready> pick(const std::vector<database::QueueTurn>& turns, int room);
  Chosen choose(const database::GrantRequest& request, std::vector<database::QueueTurn>& turns, Ready picked);
  // How many statements were added.
  std::size_t ask_next_due(const std::vector<database::QueueTurn>& turns);

  Result<std::vector<Result<Enqueued>>> try_enqueue(const std::vector<Job>& jobs, bool is_careful);
  // Which of the jobs are there already, or have a unique key that is held: a result for those, nothing for the others.
  Result<std::vector<std::optional<Result<Enqueued>>>> find_taken(const std::vector<const Job*>& jobs);
  void tell_of(const Job& job);
  void tell_of(const JobRow& row, std::int64_t now_ms);  // It waits again.
  void tell_of(const std::string& queue, std::optional<std::int64_t> due_ms, std::int64_t delay_ms);
  void tell_end(const JobRow& row);
  Status apply(const database::Ending& ending, Locked& locked, Changes& changes);
  Status read_clients(Locked& locked, const std::vector<database::Ending>& endings);
  void remove(JobRow& row, Changes& changes);

  const std::unique_ptr<SqlConnection> connection_;
  const Milliseconds client_timeout_;
  platform::SystemRandom random_;
  const std::int64_t slot_;  // Of the counters.
  bool is_known_ = false;    // The client, to the server.
  std::vector<std::pair<std::string, std::int64_t>> priorities_;  // That the last pick went through.
  // To be told with the commit: for each queue the earliest that has become available, by the clock and by its delay.
  struct Told {
    std::optional<std::int64_t> due_ms;
    std::optional<std::int64_t> delay_ms;
  };
  std::map<std::string, Told> told_;
};

// For both halves of the session.
Error no_such_job(const JobId& id);
std::vector<Value> list_of(const std::vector<JobId>& ids);
// A wait begins within the millisecond that has begun: it is counted from the end of it.
std::int64_t after(std::int64_t now_ms, Milliseconds wait);
// What overdue() saw of a lease and its client.
std::string stamp_of(const JobRow& row, const std::map<std::uint64_t, std::int64_t>& seen_ms);

}  // namespace bide::brokers::sql
