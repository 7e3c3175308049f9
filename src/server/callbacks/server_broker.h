// ServerBroker: the broker as the routes of the server and its deliverer use it.
//
// - Settlements of what was sent to receivers are told to SentLeases before the broker hears of them.
// - Jobs that ask for on_done learn in which queue callbacks are delivered here: whoever ends them must know.
// - It can be closed before the broker goes. Completions of the API keep this object, not the broker: what they still
//   ask for afterwards is answered kUnavailable, and a broker is never destroyed by a completion of its own.

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

  // Lets go of the broker. Waits for calls that are under way, but not for their completions.
  void close();

  void enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) override;
  Result<std::unique_ptr<Subscription>> subscribe(SubscribeOptions options, LeaseSink sink) override;
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override;
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override;
  void mark_delivered(std::vector<LeaseRef> leases) override;
  Pressure pressure() const override;
  Capabilities capabilities() const override { return capabilities_; }

 private:
  // A call of the broker, for as long as it lives; false when it is closed.
  class Call;

  void name_callback_queue(std::vector<Job>& jobs) const;

  const std::shared_ptr<SentLeases> leases_;
  const std::string callback_queue_;
  const Capabilities capabilities_;
  // Calls under way, and whether it is closed. Not a lock: a call may complete within itself and call again.
  mutable std::atomic<std::uint64_t> calls_ = 0;
  std::shared_ptr<Broker> broker_;  // Used within a Call.
};

}  // namespace bide::server
