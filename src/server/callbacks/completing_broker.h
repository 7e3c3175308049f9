// CompletingBroker: adds completion jobs (bide-on-done, bide-reply-queue) to what is settled through it, as effects, for
// a broker that does not make them itself (Capabilities::completions).
//
// It does not see ends that are not settled through it: a job that expires, a last lease that is lost, a worker that
// settles at the broker directly; nor leases from before this process.

#pragma once

#include <memory>
#include <vector>

#include "core/forwarding_broker.h"

namespace bide::server {

class CompletingBroker : public core::ForwardingBroker {
 public:
  static constexpr std::size_t kMostLeases = 1'000'000;  // Remembered until they are settled.

  explicit CompletingBroker(std::shared_ptr<Broker> broker);

  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override;
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override;

 private:
  Broker& next_broker() const override { return *broker_; }

  class Leases;  // Shared with completions under way, which may outlive this broker.

  const std::shared_ptr<Broker> broker_;
  const std::shared_ptr<Leases> leases_;
};

}  // namespace bide::server
