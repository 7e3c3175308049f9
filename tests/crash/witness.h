// WitnessBroker: passes every call on to another broker and writes down what was asked and what was answered, in the
// words of history.h. A worker or a client on top of it knows nothing of it.

#pragma once

#include <memory>
#include <utility>

#include "bide/broker.h"
#include "crash/history.h"

namespace bide::crash {

// Handlers are not told the token of their lease, so the witness puts it among the headers of the job they see.
inline constexpr char kTokenHeader[] = "witness-token";

// Jobs and effects need ids of their own: a job without a name cannot be followed.
class WitnessBroker : public Broker {
 public:
  WitnessBroker(std::shared_ptr<Broker> inner, std::shared_ptr<HistoryWriter> history)
      : inner_(std::move(inner)), history_(std::move(history)) {}

  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override;
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override;
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override;
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override;
  Pressure pressure() const override { return inner_->pressure(); }
  Capabilities capabilities() const override { return inner_->capabilities(); }

 private:
  const std::shared_ptr<Broker> inner_;
  const std::shared_ptr<HistoryWriter> history_;
};

}  // namespace bide::crash
