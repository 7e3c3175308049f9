// RemoteBroker: a bide server, through its HTTP API, as a broker and an inspector.
//
// Jobs get their ids here, so that a request whose answer was lost can be sent again without harm; settlements are told
// apart by their tokens. Calls wait for a server that is away, as long as patience lasts. Leases outlive the server's
// process: its restart is nothing but a pause for whoever works here.

#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "brokers/remote/api_caller.h"
#include "brokers/remote/coalescer.h"
#include "brokers/remote/held_leases.h"
#include "brokers/remote/poller.h"
#include "brokers/remote/remote_url.h"
#include "core/job_ids.h"
#include "platform/clock.h"
#include "platform/random.h"

namespace bide::brokers::remote {

class RemoteBroker : public Broker, public Inspector {
 public:
  // Jobs that are not answered yet hold at most so much memory; beyond it enqueue says kOverloaded.
  static constexpr std::size_t kWaitingBytes = 64 * 1024 * 1024;

  // kUnavailable: nobody answers there. kPermissionDenied: the token is not good.
  static Result<std::shared_ptr<RemoteBroker>> open(RemoteSettings settings,
                                                    const platform::Clock& clock = platform::real_clock());
  // Waits for the answers to what was asked, and gives back the leases that are still held.
  ~RemoteBroker() override;

  // As if the process were killed: without a word. From then on nothing works any more.
  void vanish();

  // Broker.
  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override;
  void publish(std::vector<Job> events, Completion<std::vector<Result<Published>>> done) override;
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override;
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override;
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override;
  void save_body(LeaseRef lease, std::string body, Completion<void> done) override;
  void save_step(LeaseRef lease, Step step, Completion<void> done) override;
  // Goes with the next extend.
  void report_progress(LeaseRef lease, Progress progress) override;
  Pressure pressure() const override;
  Capabilities capabilities() const override { return capabilities_; }

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

 private:
  class Handle;

  RemoteBroker(std::shared_ptr<ApiCaller> caller, Capabilities capabilities, const platform::Clock& clock);

  struct Watching;
  void watch_on(JobId id, std::shared_ptr<Watching> watching);
  JobId next_id();
  // The clock has jumped: leases may be lost by now.
  void look_again();
  std::int64_t now_ms() const { return clock_.now().elapsed_us / 1000; }
  Time wall_now() const { return Time(Milliseconds(clock_.now().wall_us / 1000)); }
  void give_back(std::vector<LeaseRef> leases, std::function<void()> done);
  void return_held_leases();
  std::vector<std::shared_ptr<Poller>> pollers() const;

  const std::shared_ptr<ApiCaller> caller_;  // Shared with subscriptions, which may outlive us.
  const Capabilities capabilities_;
  const platform::Clock& clock_;
  std::shared_ptr<void> clock_watch_;
  HeldLeases held_;
  Coalescer<Result<Enqueued>> enqueues_;
  Coalescer<Status> settlements_;
  Coalescer<Result<Extended>> extensions_;

  mutable std::mutex mutex_;  // Guards everything below.
  bool vanished_ = false;
  core::JobIdSource ids_;
  platform::SystemRandom random_;
  std::vector<std::shared_ptr<Poller>> pollers_;  // Also those that ended and whose leases are still out.
  mutable Pressure pressure_;
  mutable std::int64_t pressure_asked_ms_ = 0;  // 0: never.
};

}  // namespace bide::brokers::remote
