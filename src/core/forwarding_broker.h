// ForwardingBroker, ForwardingInspector: pass every call on to another broker or inspector. A wrapper derives from
// them, says which one, and overrides the calls that it treats differently.

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"

namespace bide::core {

class ForwardingBroker : public Broker {
 public:
  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override {
    next_broker().enqueue(std::move(jobs), std::move(done));
  }
  void publish(std::vector<Job> events, Completion<std::vector<Result<Published>>> done) override {
    next_broker().publish(std::move(events), std::move(done));
  }
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override {
    return next_broker().subscribe(std::move(options), std::move(sink));
  }
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override {
    next_broker().extend(std::move(leases), std::move(done));
  }
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override {
    next_broker().settle(std::move(settlements), std::move(done));
  }
  void mark_delivered(std::vector<LeaseRef> leases) override { next_broker().mark_delivered(std::move(leases)); }
  void save_body(LeaseRef lease, std::string body, Completion<void> done) override {
    next_broker().save_body(lease, std::move(body), std::move(done));
  }
  void save_step(LeaseRef lease, Step step, Completion<void> done) override {
    next_broker().save_step(lease, std::move(step), std::move(done));
  }
  void report_progress(LeaseRef lease, Progress progress) override {
    next_broker().report_progress(lease, std::move(progress));
  }
  Pressure pressure() const override { return next_broker().pressure(); }
  Capabilities capabilities() const override { return next_broker().capabilities(); }

 protected:
  // Asked for with each call, on the caller's thread: it may change.
  virtual Broker& next_broker() const = 0;
};

class ForwardingInspector : public Inspector {
 public:
  void queues(Completion<std::vector<QueueInfo>> done) override { next_inspector().queues(std::move(done)); }
  void find(JobId id, Completion<JobInfo> done) override { next_inspector().find(id, std::move(done)); }
  void list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done) override {
    next_inspector().list(std::move(filter), std::move(cursor), limit, std::move(done));
  }
  void explain(JobId id, Completion<Explanation> done) override { next_inspector().explain(id, std::move(done)); }
  void audit(Completion<AuditReport> done) override { next_inspector().audit(std::move(done)); }
  GiveUp watch(JobId id, Completion<JobInfo> done) override { return next_inspector().watch(id, std::move(done)); }
  void cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) override {
    next_inspector().cancel(std::move(ids), options, std::move(done));
  }
  void reschedule(JobId id, Time due, Completion<void> done) override {
    next_inspector().reschedule(id, due, std::move(done));
  }
  void edit(JobId id, JobEdit edit, Completion<void> done) override {
    next_inspector().edit(id, std::move(edit), std::move(done));
  }
  void replay(std::vector<JobId> ids, ReplayOptions options, Completion<std::vector<Status>> done) override {
    next_inspector().replay(std::move(ids), options, std::move(done));
  }
  void pause(std::string queue, bool paused, Completion<void> done) override {
    next_inspector().pause(std::move(queue), paused, std::move(done));
  }
  void purge(std::string queue, Completion<std::uint64_t> done) override {
    next_inspector().purge(std::move(queue), std::move(done));
  }
  void bind(Binding binding, Completion<void> done) override {
    next_inspector().bind(std::move(binding), std::move(done));
  }
  void bindings(Completion<std::vector<Binding>> done) override { next_inspector().bindings(std::move(done)); }
  void put_rules(QueueRules rules, Completion<void> done) override {
    next_inspector().put_rules(std::move(rules), std::move(done));
  }
  void rules(Completion<std::vector<QueueRules>> done) override { next_inspector().rules(std::move(done)); }
  void put_schedule(Schedule schedule, Completion<PutSchedule> done) override {
    next_inspector().put_schedule(std::move(schedule), std::move(done));
  }
  void schedules(Completion<std::vector<ScheduleInfo>> done) override { next_inspector().schedules(std::move(done)); }
  void remove_schedule(std::string name, Completion<void> done) override {
    next_inspector().remove_schedule(std::move(name), std::move(done));
  }
  void pause_schedule(std::string name, bool paused, Completion<void> done) override {
    next_inspector().pause_schedule(std::move(name), paused, std::move(done));
  }
  void run_schedule(std::string name, Completion<JobId> done) override {
    next_inspector().run_schedule(std::move(name), std::move(done));
  }
  void backup(std::string target, Completion<void> done) override {
    next_inspector().backup(std::move(target), std::move(done));
  }
  void backup_info(Completion<BackupInfo> done) override { next_inspector().backup_info(std::move(done)); }

 protected:
  virtual Inspector& next_inspector() const = 0;
};

}  // namespace bide::core
