// SentLeases: leases whose jobs were sent to receivers, and the credit of the subscription they came from.
//
//   credit = room for deliveries + accepted (answered 202) - settled by the receiver before its answer came
//
// A receiver settles through the API. That is recorded here before the broker gets the settlement; otherwise the broker
// would fill the place with a job that there is no room for.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "bide/broker.h"

namespace bide::server {

// Safe to share between threads.
class SentLeases {
 public:
  // The result of a settlement by a receiver. Runs on any thread; must not block.
  using OnSettled = std::function<void(const LeaseRef&, const Status&)>;

  // --- For the delivery loop.
  // `room` is the credit that the subscription was opened with.
  void open(std::unique_ptr<Subscription> subscription, int room);
  void close();  // Ends the subscription, which may block.
  void set_on_settled(OnSettled on_settled);
  void set_room(int room);

  void sent(const LeaseRef& lease);
  void accepted(const LeaseRef& lease);     // Must have been sent.
  void not_settled(const LeaseRef& lease);  // The receiver's settlement failed: the lease is out as before.
  void remove(const LeaseRef& lease);       // Unknown leases are ignored.
  // More leases arrived than there was room for, so this many accepted ones have ended elsewhere; which is not known yet.
  // They give no credit until the next call.
  void set_ended_elsewhere(int count);

  // --- For settlements by receivers.
  // To be called before the broker gets them. Returns those that were sent, in the same order.
  std::vector<LeaseRef> settling(const std::vector<Settlement>& settlements);
  void settled(const LeaseRef& lease, const Status& status) const;

  int credit() const;

 private:
  using Key = std::pair<JobId, std::uint64_t>;
  struct Sent {
    bool accepted = false;
    bool settling = false;
  };

  // With the lock held.
  Sent* find(const LeaseRef& lease);  // Null when it is not there.
  void change(Sent& lease, bool accepted, bool settling);
  void count(const Sent& lease, int by);
  void update_credit();

  std::atomic<std::size_t> size_ = 0;  // Of leases_: settling() takes no lock when it is empty.

  mutable std::mutex mutex_;  // Guards everything below. Held while credit is set, so that the last value wins.
  std::unique_ptr<Subscription> subscription_;
  OnSettled on_settled_;
  std::map<Key, Sent> leases_;
  int accepted_ = 0;       // Accepted and not being settled.
  int settled_early_ = 0;  // Being settled, or settled, before their answer came.
  int room_ = 0;
  int ended_elsewhere_ = 0;
  int given_ = 0;
};

}  // namespace bide::server
