// Engine: the embedded broker. One thread owns the Ledger. It takes all waiting requests, applies them, and makes them
// durable with one write and one sync (group commit), then completes them. A large commit is written and synced by the
// committer's thread while the next step is collected, and its completions run on a third thread.
//
//   auto engine = bide::engine::Engine::open({.directory = "./data"});

#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "engine/backup_thread.h"
#include "engine/committer.h"
#include "engine/request_queue.h"
#include "engine/ledger.h"
#include "engine/options.h"
#include "engine/completion_thread.h"
#include "platform/task_thread.h"

namespace bide::engine {

Error unconfirmed(const Error& error);
Error not_begun(const Error& error);

class Engine : public Broker, public Inspector {
 public:
  // See Ledger::open for the errors.
  static Result<std::unique_ptr<Engine>> open(EngineOptions options);
  // Completes all requests, returns the leases of this process, and closes the store.
  ~Engine() override;

  // Broker.
  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override;
  void publish(std::vector<Job> events, Completion<std::vector<Result<Published>>> done) override;
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override;
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override;
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override;
  void mark_delivered(std::vector<LeaseRef> leases) override;
  void save_body(LeaseRef lease, std::string body, Completion<void> done) override;
  void save_step(LeaseRef lease, bide::Step step, Completion<void> done) override;
  void report_progress(LeaseRef lease, Progress progress) override;
  Pressure pressure() const override;
  Capabilities capabilities() const override;

  // Inspector.
  void queues(Completion<std::vector<QueueInfo>> done) override;
  void find(JobId id, Completion<JobInfo> done) override;
  void list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done) override;
  void explain(JobId id, Completion<Explanation> done) override;
  void audit(Completion<AuditReport> done) override;
  GiveUp watch(JobId id, Completion<JobInfo> done) override;
  void cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) override;
  void reschedule(JobId id, Time due, Completion<void> done) override;
  void edit(JobId id, JobEdit edit, Completion<void> done) override;
  void replay(std::vector<JobId> ids, ReplayOptions options, Completion<std::vector<Status>> done) override;
  void pause(std::string queue, bool paused, Completion<void> done) override;
  void purge(std::string queue, Completion<std::uint64_t> done) override;
  void bind(Binding binding, Completion<void> done) override;
  void bindings(Completion<std::vector<Binding>> done) override;
  void put_rules(QueueRules rules, Completion<void> done) override;
  void rules(Completion<std::vector<QueueRules>> done) override;
  void put_schedule(Schedule schedule, Completion<PutSchedule> done) override;
  void schedules(Completion<std::vector<ScheduleInfo>> done) override;
  void remove_schedule(std::string name, Completion<void> done) override;
  void pause_schedule(std::string name, bool paused, Completion<void> done) override;
  void run_schedule(std::string name, Completion<JobId> done) override;

  void backup(std::string target, Completion<void> done) override;
  void backup_info(Completion<BackupInfo> done) override;

  // For a server that leases jobs to other processes: the worker of these leases has stopped or crashed.
  void end_leases(std::vector<LeaseRef> leases, WorkerEnd how, Completion<void> done);

  // What opening found.
  const OpenReport& open_report() const { return open_report_; }
  // Blocks until the engine sleeps: every request is completed, and jobs that are due have been delivered to whoever has
  // credit.
  void wait_until_idle();
  // Blocks until housekeeping has nothing left to do.
  void tidy_up();
  // As bytes on disk: the journal with room written ahead, and the part of it that is needed.
  struct DiskUse {
    std::uint64_t journal_bytes = 0;
    std::uint64_t live_bytes = 0;
  };
  DiskUse disk_use();

 private:
  Engine(EngineOptions options, std::unique_ptr<platform::Random> random, std::unique_ptr<Ledger> ledger);
  template <class T, class Run>
  void submit(Completion<T> done, Run run, std::uint64_t bytes = 0);
  // Fills in the deferred bodies on another thread. If one cannot be read, `again` asks the ledger without deferring.
  template <class T>
  Completion<T> filled_in(std::shared_ptr<DeferredBodies> deferred, Completion<T> done, std::function<void(Completion<T>)> again);
  // A step of the ledger: what has been applied, and what to complete when it is durable.
  struct Step {
    std::vector<Request> requests;
    std::vector<Delivery> deliveries;
    Ledger::Callbacks callbacks;
    bool is_large = false;
  };

  Time wall_time() const;
  void run();
  void run_step(std::vector<Request>& requests);
  void keep(std::vector<Request>& requests);
  Status collect(std::vector<Request>& requests);
  Status commit();
  Status timed(const std::function<Status()>& commit) const;
  Status finish_commit();
  void complete(Step step, const Status& committed);
  void run_completions(Step& step, const Status& committed) const;
  void fail(const Error& error);
  Status tidy(bool busy);
  std::optional<std::chrono::microseconds> time_to_sleep() const;

  EngineOptions options_;
  const std::unique_ptr<platform::Random> random_;
  const bool virtual_time_;
  OpenReport open_report_;
  std::shared_ptr<RequestQueue> requests_ = std::make_shared<RequestQueue>();
  std::shared_ptr<void> clock_watch_;
  std::atomic<std::uint32_t> last_subscription_ = 0;
  std::atomic<std::uint64_t> last_watch_ = 0;

  mutable std::mutex mutex_;  // Guards everything up to the next blank line.
  Pressure pressure_;

  // Of the engine's thread.
  std::unique_ptr<Ledger> ledger_;
  std::optional<Error> failure_;
  Step collected_;               // Applied, not yet on its way to the disk.
  std::optional<Step> committing_;  // Being written and synced.
  std::optional<Step> committed_;   // Durable, to be completed.
  std::int64_t busy_until_us_ = 0;  // Housekeeping waits until then for a quiet moment.
  bool more_to_tidy_ = false;
  std::uint64_t steps_ = 0;

  Committer committer_;
  CompletionThread completions_;
  platform::TaskThread reads_;  // Of large bodies.
  BackupThread backups_{options_.directory};
  std::thread thread_;
};

template <class T, class Run>
void Engine::submit(Completion<T> done, Run run, std::uint64_t bytes) {
  struct Call {
    Run run;
    Completion<T> done;
    std::optional<Result<T>> result;
  };
  auto call = std::make_shared<Call>(Call{std::move(run), std::move(done), std::nullopt});
  Request request{[call](Ledger& ledger) { call->result.emplace(call->run(ledger)); },
                  [call](const Status& committed) {
                    // What was refused was refused, also if nothing can be confirmed any more.
                    if (call->result && (committed || !*call->result)) return call->done(std::move(*call->result));
                    call->done(call->result ? unconfirmed(committed.error()) : not_begun(committed.error()));
                  }};
  if (!requests_->post(std::move(request), bytes)) {
    call->done(Error{ErrorCode::kUnavailable, "the engine is closed"});
  }
}

}  // namespace bide::engine
