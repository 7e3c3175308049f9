// OutboxBroker: a local store in front of another broker. A job is accepted when it is on the local disk; a Forwarder hands
// it to the target. Everything but enqueue goes to the target; a job that is still in the outbox is found there, and can be
// cancelled there.
//
//   amqp://host/vhost?outbox=./outbox
//
// Several processes can use one outbox: the one that owns its directory hands the jobs on. It belongs to one target, whose
// address is written beside it.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "brokers/shared/shared_store.h"
#include "core/forwarding_broker.h"
#include "outbox/absent_broker.h"
#include "outbox/forwarder.h"

namespace bide::outbox {

struct OutboxOptions {
  std::string directory = {};
  std::uint64_t max_jobs = 1'000'000;  // Beyond it enqueue is refused.
  std::string target = {};             // Its address, without passwords.
};

struct OutboxStatus {
  std::uint64_t waiting = 0;
  std::uint64_t dead = 0;  // Refused by the target for good.
  std::uint64_t disk_bytes = 0;  // Of its directory.
  std::optional<Time> oldest = {};  // Since when the first one waits.
  bool forwards_here = false;       // This process hands them on.
  Forwarder::Stats forwarder = {};
};

class OutboxBroker : public core::ForwardingBroker, public core::ForwardingInspector {
 public:
  // Returns without the target, if that is not there: it is tried again and again. kInvalidArgument: the outbox belongs to
  // another target; or what the target itself says about its settings. Otherwise as of a data directory.
  static Result<std::unique_ptr<OutboxBroker>> open(OutboxOptions options, OpenTarget open_target);
  ~OutboxBroker() override;

  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override;
  // Of the outbox, or of the target when the outbox is well.
  Pressure pressure() const override;
  Capabilities capabilities() const override;

  void find(JobId id, Completion<JobInfo> done) override;
  void explain(JobId id, Completion<Explanation> done) override;
  GiveUp watch(JobId id, Completion<JobInfo> done) override;
  void cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) override;

  // Not after this is gone.
  void status(Completion<OutboxStatus> done) const;
  Result<OutboxStatus> status() const;
  // Null: not reached so far.
  std::shared_ptr<const Target> target() const { return forwarder_->target(); }
  // Why it has not been reached.
  std::string problem() const;

 protected:
  Broker& next_broker() const override;
  Inspector& next_inspector() const override;

 private:
  friend class BesideOutbox;
  OutboxBroker(std::string directory, std::unique_ptr<brokers::shared::SharedStore> store, OpenTarget open_target);

  // As it will be at the target; nothing: it is not in the outbox.
  static std::optional<JobInfo> shown(Result<JobInfo> found);

  const std::string directory_;
  std::unique_ptr<brokers::shared::SharedStore> store_;
  mutable AbsentBroker absent_;
  const std::unique_ptr<Forwarder> forwarder_;
};

// The target of an outbox that is for what is spilled into it only: everything goes to the target itself.
class BesideOutbox : public core::ForwardingBroker {
 public:
  explicit BesideOutbox(std::shared_ptr<OutboxBroker> outbox) : outbox_(std::move(outbox)) {}

  // A target that has not been reached takes nothing.
  Pressure pressure() const override;
  OutboxBroker& outbox() const { return *outbox_; }

 protected:
  Broker& next_broker() const override { return outbox_->next_broker(); }

 private:
  const std::shared_ptr<OutboxBroker> outbox_;
};

// In front of this broker, or beside it. Null: there is none.
OutboxBroker* outbox_of(Broker& broker);

}  // namespace bide::outbox
