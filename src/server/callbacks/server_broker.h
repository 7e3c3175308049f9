// ServerBroker: the broker as the routes and the delivery loop use it.
//
// - Tells SentLeases of settlements by receivers before the broker gets them.
// - Writes the queue of callbacks into jobs with bide-on-done, for whoever ends them.
// - Can be closed before the broker is destroyed. Completions of the API keep this object, not the broker: later calls
//   are answered kUnavailable, and a broker is never destroyed by one of its own completions.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bide/broker.h"
#include "server/callbacks/sent_leases.h"

namespace bide::server {

class ServerBroker : public Broker {
 public:
  ServerBroker(std::shared_ptr<Broker> broker, std::shared_ptr<SentLeases> leases, std::string callback_queue);

  // Releases the broker. Waits for calls that are under way, not for their completions.
  void close();

  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override;
  void publish(std::vector<Job> events, Completion<std::vector<Result<Published>>> done) override;
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override;
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override;
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override;
  void mark_delivered(std::vector<LeaseRef> leases) override;
  void save_body(LeaseRef lease, std::string body, Completion<void> done) override;
  void save_step(LeaseRef lease, Step step, Completion<void> done) override;
  void report_progress(LeaseRef lease, Progress progress) override;
  Pressure pressure() const override;
  Capabilities capabilities() const override { return capabilities_; }

 private:
  // Keeps the broker open while it lives; false when it is closed.
  class Call;

  void set_on_done_queue(std::vector<Job>& jobs) const;

  const std::shared_ptr<SentLeases> leases_;
  const std::string callback_queue_;
  const Capabilities capabilities_;
  // Calls under way, and a bit for closed. Not a lock: a completion may run inside a call and call again.
  mutable std::atomic<std::uint64_t> calls_ = 0;
  std::shared_ptr<Broker> broker_;  // Used within a Call.
};

}  // namespace bide::server
