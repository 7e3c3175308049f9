// CompletingBroker: another broker, with the wishes of its jobs fulfilled (server/callbacks/completion.h). Whoever
// leases and settles through it need not think of them.
//
// What is told:
//
//   a job settled through this broker as done or dead     as effects of the settlement: exactly when it becomes real
//   one that ends otherwise: it expires, it is exhausted   when the inspector says so, for jobs that were enqueued or
//   by lost leases, another process settles it             leased through this broker since it was made
//
// The second kind is not told when this process ends before it heard of it, where the broker cannot be watched, or
// beyond kMostWatched jobs at a time. Jobs that are cancelled or deleted are not told of.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"

namespace bide::server {

class CompletingBroker : public Broker {
 public:
  static constexpr std::size_t kMostWatched = 100'000;
  static constexpr std::size_t kMostKnown = 1'000'000;  // Leases that are remembered until they are settled.

  // Deliveries are taken from `callback_queue`. The inspector may be null. `on_problem` is told in a line what could
  // not be told to others; on any thread.
  CompletingBroker(std::shared_ptr<Broker> broker, std::shared_ptr<Inspector> inspector, std::string callback_queue,
                   std::function<void(std::string_view)> on_problem = nullptr);
  ~CompletingBroker() override;

  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override;
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override;
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override;
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override;
  void mark_delivered(std::vector<LeaseRef> leases) override { broker_->mark_delivered(std::move(leases)); }
  Pressure pressure() const override;
  Capabilities capabilities() const override;

 private:
  class Ends;  // Outlives the broker for completions that are under way.

  const std::shared_ptr<Broker> broker_;
  const std::shared_ptr<Inspector> inspector_;
  const std::shared_ptr<Ends> ends_;
};

}  // namespace bide::server
