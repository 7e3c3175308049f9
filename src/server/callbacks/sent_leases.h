// SentLeases: the leases of jobs that were sent to their receivers, and with them the credit of the deliverer's
// subscription.
//
//   credit = room for deliveries + accepted (answered 202) - settled by the receiver before its answer came
//
// One count, told by whoever settles. A receiver settles through the API, and says so here before the broker hears of
// the settlement: otherwise the broker would fill its place with a job that the deliverer has no room for.

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
  // What became of a settlement that was not the deliverer's. Runs on any thread; must not block.
  using OnSettled = std::function<void(const LeaseRef&, const Status&)>;

  // --- For the deliverer.
  // `room` is what the subscription was opened with.
  void open(std::unique_ptr<Subscription> subscription, int room);
  // Ends the subscription; may block as long as that does.
  void close();
  void listen(OnSettled on_settled);
  void set_room(int room);

  void sent(const LeaseRef& lease);
  void accepted(const LeaseRef& lease);   // Of one that was sent.
  void not_settled(const LeaseRef& lease);  // As it was told: it is still out, as before.
  void remove(const LeaseRef& lease);  // The deliverer is about to settle it, or it is over. Nothing when not there.
  // More leases arrived than there was room for: so many accepted ones have ended elsewhere, and it is not known yet
  // which. They give no credit until the next call.
  void set_ended_elsewhere(int count);

  // --- For whoever settles.
  // About to be settled: to be said before the broker hears of it. Those of them that were sent, in the same order.
  std::vector<LeaseRef> settling(const std::vector<Settlement>& settlements);
  void settled(const LeaseRef& lease, const Status& status) const;

  int credit() const;

 private:
  using Key = std::pair<JobId, std::uint64_t>;
  struct Sent {
    bool accepted = false;
    bool settling = false;
  };

  int wanted() const;
  void give();
  void count(const Sent& lease, int by);

  std::atomic<std::size_t> size_ = 0;  // Of leases_: often nothing, and then nobody waits for the lock.

  mutable std::mutex mutex_;  // Guards everything below. Held while credit is given, so that the last one counts.
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
