// ScriptedStore: a JobStore whose steps a test writes. What it does not write succeeds and does nothing.

#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "brokers/database/job_store.h"

namespace bide::brokers::database {

// Shared by all sessions; the functions may be called from any thread.
struct Script {
  std::function<Result<Granted>(const GrantRequest&)> grant = [](const GrantRequest&) { return Granted(); };
  std::function<Result<std::vector<Status>>(const std::vector<Ending>&)> end = [](const std::vector<Ending>& endings) {
    return std::vector<Status>(endings.size());
  };
  std::function<Result<std::vector<LeaseRef>>()> leases_of = [] { return std::vector<LeaseRef>(); };
  std::function<Status()> keep_alive = [] { return Status(); };
  std::function<Status()> save_body = [] { return Status(); };
  std::function<Status()> pause = [] { return Status(); };
  std::function<Result<JobInfo>()> find = [] { return JobInfo(); };
  std::function<Status()> close_client = [] { return Status(); };
  std::function<Result<Overdue>()> overdue = [] { return Overdue(); };
  std::function<Result<JobInfo>(JobId)> watch = [](JobId) { return JobInfo(); };
  std::function<Result<std::vector<Result<Enqueued>>>(const std::vector<Job>&)> enqueue = [](const std::vector<Job>& jobs) {
    std::vector<Result<Enqueued>> results;
    for (const Job& job : jobs) results.push_back(Enqueued{job.id});
    return results;
  };
};

class ScriptedSession : public Session {
 public:
  explicit ScriptedSession(std::shared_ptr<Script> script) : script_(std::move(script)) {}

  bool is_broken() const override { return is_interrupted(); }
  void interrupt() override {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
    changed_.notify_all();
  }
  Result<std::vector<Result<Enqueued>>> enqueue(const std::vector<Job>& jobs) override { return script_->enqueue(jobs); }
  Result<Granted> grant(const GrantRequest& request, std::vector<QueueTurn>&) override { return script_->grant(request); }
  Result<std::vector<LeaseRef>> leases_of(ClientId) override { return script_->leases_of(); }
  Result<std::vector<Extended>> extend(const std::vector<LeaseRef>& leases) override { return std::vector<Extended>(leases.size()); }
  Status mark_delivered(const std::vector<LeaseRef>&) override { return {}; }
  Status save_body(const LeaseRef&, const std::string&) override { return script_->save_body(); }
  Result<std::vector<Status>> end(const std::vector<Ending>& endings) override { return script_->end(endings); }
  Status keep_alive(ClientId, const std::vector<std::string>&, Milliseconds) override { return script_->keep_alive(); }
  Status close_client(ClientId, const std::string&) override { return script_->close_client(); }
  Result<Overdue> overdue(Milliseconds, std::size_t) override { return script_->overdue(); }
  Result<std::size_t> forget(const Retention&, std::size_t) override { return std::size_t{0}; }
  Result<JobInfo> find(JobId) override { return script_->find(); }
  Result<JobInfo> watch(JobId id) override { return script_->watch(id); }
  Result<JobPage> list(const JobFilter&, const std::string&, std::size_t) override { return JobPage(); }
  Result<std::vector<QueueInfo>> queues() override { return std::vector<QueueInfo>(); }
  Result<AuditReport> audit() override { return AuditReport(); }
  Result<std::vector<Status>> cancel(const std::vector<JobId>& ids, const CancelOptions&) override { return std::vector<Status>(ids.size()); }
  Status reschedule(JobId, Time) override { return {}; }
  Result<std::vector<Status>> replay(const std::vector<JobId>& ids, const ReplayOptions&) override { return std::vector<Status>(ids.size()); }
  Status pause(const std::string&, bool) override { return script_->pause(); }
  Result<std::uint64_t> purge(const std::string&, std::size_t) override { return std::uint64_t{0}; }
  Status listen() override { return {}; }
  Result<std::vector<Notice>> wait(Milliseconds at_most) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, at_most, [this] { return interrupted_; });
    return std::vector<Notice>();
  }

 private:
  bool is_interrupted() const {
    const std::lock_guard lock(mutex_);
    return interrupted_;
  }

  const std::shared_ptr<Script> script_;
  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  bool interrupted_ = false;
};

class ScriptedStore : public JobStore {
 public:
  explicit ScriptedStore(std::shared_ptr<Script> script) : script_(std::move(script)) {}
  Result<std::unique_ptr<Session>> connect() override {
    return std::unique_ptr<Session>(std::make_unique<ScriptedSession>(script_));
  }
  Capabilities capabilities() const override { return {}; }

 private:
  const std::shared_ptr<Script> script_;
};

}  // namespace bide::brokers::database
