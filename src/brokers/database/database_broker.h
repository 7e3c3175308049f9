// DatabaseBroker: Broker and Inspector over a JobStore: jobs on a database server that many processes share.
//
//   enqueue ─► Enqueuer ─┐                           each a lane: a thread with a session of its own; sessions are
//   settle ──► Settler ──┤                           opened with the first call that needs one, Keeper's at once
//   leases ◄── Granter ──┼──► JobStore (sessions)
//   find … ──► inspect ──┤
//              Keeper ───┤    signs of life, leases that ran out, what is old
//   watch ◄─── Watcher ──┘    told by the server, never asking at intervals

#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "brokers/database/endings.h"
#include "brokers/database/enqueuer.h"
#include "brokers/database/granter.h"
#include "brokers/database/job_store.h"
#include "brokers/database/keeper.h"
#include "brokers/database/lane.h"
#include "brokers/database/settler.h"
#include "brokers/database/watcher.h"

namespace bide::brokers::database {

class DatabaseBroker : public Broker, public Inspector {
 public:
  // Connects once, so that a wrong address or password is told at once; errors as JobStore::connect().
  static Result<std::shared_ptr<DatabaseBroker>> open(std::unique_ptr<JobStore> store, KeepingOptions options = {});
  // Waits for the answers to what was asked, as long as the server gives any, and gives back the leases still held.
  ~DatabaseBroker() override;

  // Broker.
  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override;
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override;
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override;
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override;
  void mark_delivered(std::vector<LeaseRef> leases) override;
  void save_body(LeaseRef lease, std::string body, Completion<void> done) override;
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
  void replay(std::vector<JobId> ids, ReplayOptions options, Completion<std::vector<Status>> done) override;
  void pause(std::string queue, bool paused, Completion<void> done) override;
  void purge(std::string queue, Completion<std::uint64_t> done) override;

 private:
  class Handle;

  // Everything that subscriptions and watches may outlive.
  struct Parts;

  explicit DatabaseBroker(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}
  // Runs the request on the inspecting lane.
  template <class T>
  static std::function<void(const Error&)> refusal(const Completion<T>& done);
  template <class T, class Request>
  void inspect(Request request, Completion<T> done);

  const std::shared_ptr<Parts> parts_;
};

}  // namespace bide::brokers::database
