// CompletingBroker: a broker that does not tell of the end of jobs itself (Capabilities::completions), with the jobs that
// tell of it added to what is settled through here, as effects: they are made before the outcome is, or with it.
//
// Not told are ends that nobody settles here: a job that expires, a last lease that is lost, a worker that settles
// directly at the broker; nor leases from before this process.

#pragma once

#include <memory>
#include <vector>

#include "bide/broker.h"

namespace bide::server {

class CompletingBroker : public Broker {
 public:
  static constexpr std::size_t kMostKnown = 1'000'000;  // Leases that are remembered until they are settled.

  explicit CompletingBroker(std::shared_ptr<Broker> broker);

  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override;
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override;
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override;
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override;
  void mark_delivered(std::vector<LeaseRef> leases) override { broker_->mark_delivered(std::move(leases)); }
  Pressure pressure() const override;
  Capabilities capabilities() const override;

 private:
  class Wishes;  // Outlives the broker for completions that are under way; knows nothing of it.

  const std::shared_ptr<Broker> broker_;
  const std::shared_ptr<Wishes> wishes_;
};

}  // namespace bide::server
