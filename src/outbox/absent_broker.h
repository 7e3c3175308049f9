// AbsentBroker: stands in for a broker that has not been reached. It can do nothing, and says why.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"

namespace bide::outbox {

class AbsentBroker : public Broker, public Inspector {
 public:
  explicit AbsentBroker(std::function<std::string()> why) : why_(std::move(why)) {}

  void enqueue(std::vector<Job>, Completion<std::vector<Result<Enqueued>>> done) override { done(absent()); }
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions, LeaseSink) override { return absent(); }
  void extend(std::vector<LeaseRef>, Completion<std::vector<Extended>> done) override { done(absent()); }
  void settle(std::vector<Settlement>, Completion<std::vector<Status>> done) override { done(absent()); }
  void save_body(LeaseRef, std::string, Completion<void> done) override { done(absent()); }
  Pressure pressure() const override { return {}; }
  Capabilities capabilities() const override {
    return {.inspect = false, .cancel = false, .reschedule = false, .hasten = false, .unique_keys = false,
            .idempotent_ids = false, .priorities = false, .pause = false, .results = false, .expiry = false,
            .dead_set = false, .atomic_effects = false, .completions = false, .final_settle = false,
            .due_order = false, .lasting_leases = false, .audit = false, .requests = false,
            .why_not = absent().message};
  }

  void queues(Completion<std::vector<QueueInfo>> done) override { done(absent()); }
  void find(JobId, Completion<JobInfo> done) override { done(absent()); }
  void list(JobFilter, std::string, std::size_t, Completion<JobPage> done) override { done(absent()); }
  void explain(JobId, Completion<Explanation> done) override { done(absent()); }
  void audit(Completion<AuditReport> done) override { done(absent()); }
  GiveUp watch(JobId, Completion<JobInfo> done) override {
    done(absent());
    return [] {};
  }
  void cancel(std::vector<JobId>, CancelOptions, Completion<std::vector<Status>> done) override { done(absent()); }
  void reschedule(JobId, Time, Completion<void> done) override { done(absent()); }
  void replay(std::vector<JobId>, ReplayOptions, Completion<std::vector<Status>> done) override { done(absent()); }
  void pause(std::string, bool, Completion<void> done) override { done(absent()); }
  void purge(std::string, Completion<std::uint64_t> done) override { done(absent()); }
  void publish(std::vector<Job>, Completion<std::vector<Result<Published>>> done) override { done(absent()); }
  void bind(Binding, Completion<void> done) override { done(absent()); }
  void bindings(Completion<std::vector<Binding>> done) override { done(absent()); }

 private:
  Error absent() const { return Error{ErrorCode::kUnavailable, why_()}; }

  const std::function<std::string()> why_;
};

}  // namespace bide::outbox
