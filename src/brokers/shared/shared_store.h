// SharedStore: the jobs in one data directory, for as many processes as want to work on it. The first owns the
// directory and serves the others through a socket in it; when the owner ends, one of the others takes over. Nobody who
// calls has to know which is which.
//
//   auto store = bide::brokers::shared::SharedStore::open(options);
//
// The options are those of whoever owns the directory; the others' have no effect until they own it themselves.

#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "brokers/shared/guest.h"
#include "brokers/shared/host.h"
#include "engine/engine.h"

namespace bide::brokers::shared {

class SharedStore : public Broker, public Inspector {
 public:
  // kBusy: another process has the directory and does not let us in for `patience`; the message names it.
  // kNewerVersion, kUnsupported: it runs another version of bide. Otherwise see engine::Ledger::open.
  static Result<std::unique_ptr<SharedStore>> open(engine::EngineOptions options,
                                                   Milliseconds patience = Guest::kPatience);
  // Completes what has been asked for, returns the leases of this process, and says goodbye to whoever is connected.
  ~SharedStore() override;

  bool is_owner() const { return owned() != nullptr; }

  // Broker.
  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override;
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override;
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override;
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override;
  void mark_delivered(std::vector<LeaseRef> leases) override;
  void save_body(LeaseRef lease, std::string body, Completion<void> done) override {
    broker().save_body(lease, std::move(body), std::move(done));
  }
  Pressure pressure() const override { return broker().pressure(); }
  Capabilities capabilities() const override { return broker().capabilities(); }

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
  explicit SharedStore(engine::EngineOptions options) : options_(std::move(options)) {}

  Status take_over();
  Result<std::variant<Greeted, Successor>> find_owner();
  engine::Engine* owned() const { return owned_.load(std::memory_order_acquire); }
  Broker& broker() const;
  Inspector& inspector() const;

  engine::EngineOptions options_;
  std::shared_ptr<Guest> guest_;  // Null when this process was the owner from the beginning.
  // Set once, by whoever opens the store or by the guest's thread.
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<Host> host_;
  std::atomic<engine::Engine*> owned_ = nullptr;
};

}  // namespace bide::brokers::shared
