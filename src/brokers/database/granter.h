// Granter: the subscriptions of a broker and the leases that they hold. Its lane asks the server for leases whenever a
// subscription has room and something may be there for it: at the time when the next job is due, or when it is told so;
// it never asks at intervals.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "brokers/database/endings.h"
#include "brokers/database/job_store.h"
#include "brokers/database/lane.h"

namespace bide::brokers::database {

struct Subscriber;

// Safe to share between threads.
class Granter {
 public:
  // What the broker needs to know of a lease that this process holds.
  struct Held {
    std::shared_ptr<Subscriber> subscriber;
    std::string queue = {};
    Milliseconds length{0};
    Moment deadline;  // Not earlier than at the server.
    Moment limit;
    bool is_last_chance = false;
    std::shared_ptr<const Job> told;  // Set when its end is to be told: its names and headers.
    std::uint32_t attempt = 0;
  };

  Granter(JobStore& store, ClientId client, IdSource& ids);

  std::shared_ptr<Subscriber> subscribe(SubscribeOptions options, LeaseSink sink);
  // When it returns the sink is not called any more.
  void unsubscribe(const std::shared_ptr<Subscriber>& subscriber);
  void set_credit(Subscriber& subscriber, int credit);
  void set_delivery_limit(Subscriber& subscriber, std::uint64_t deliveries);
  void stop(Milliseconds at_most);

  // Something in this queue may be had at this moment, or from it on.
  void look_at(const std::string& queue, Moment from);
  void look_at(const std::string& queue, Time due);  // The server's clock.
  void look_everywhere(Moment from = {});

  // ---- Leases.
  std::optional<Held> find(const LeaseRef& lease);
  void extended(const LeaseRef& lease, Moment asked);
  void ended(const LeaseRef& lease);
  // Those whose time is over by our own clock; and when the next one is.
  std::vector<LeaseRef> overdue(Moment now);
  std::optional<Moment> earliest_deadline();

  // ---- For others to know.
  std::vector<std::string> queues();  // Of all subscriptions, with repetitions.
  struct Takers {
    int subscriptions = 0;
    int room = 0;
  };
  Takers takers_of(const std::string& queue);

 private:
  std::optional<Moment> step(Lane& lane);
  void grant_to(Lane& lane, const std::shared_ptr<Subscriber>& subscriber, GrantRequest request);
  void give_back_unknown(Lane& lane);
  bool runs_last_chance(const Subscriber& subscriber) const;
  void deliver(Lane& lane, const std::shared_ptr<Subscriber>& subscriber, std::vector<Lease> leases);

  const ClientId client_;
  IdSource& ids_;
  bool is_unsure_ = false;  // Of the lane: there may be leases of ours that we do not know.

  std::mutex mutex_;  // Guards everything below.
  std::vector<std::shared_ptr<Subscriber>> subscribers_;
  std::size_t first_ = 0;  // Changes from step to step, so that subscribers of one queue share it.
  std::map<std::pair<JobId, std::uint64_t>, Held> held_;
  std::optional<std::pair<Moment, Time>> clocks_;  // Ours and the server's at one moment.

  Lane lane_;
};

}  // namespace bide::brokers::database
