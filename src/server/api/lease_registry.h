// LeaseRegistry: the leases that polls were answered with and that are not settled yet, as far as is known here. The
// broker may have ended one without a word, so nothing is counted by this table; it knows what settling needs to know
// about a lease, and tells the broker which leases have reached their workers and stay out. Safe to share between threads.

#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "platform/keyed_hash.h"
#include "server/api/alarm.h"

namespace bide::server {

// What is known of a lease that is out.
struct LeaseFacts {
  std::string kind = {};
  std::string queue = {};
  RetryPolicy retry = {};
  AttemptCounts counts = {};
};

struct LeaseOut {
  LeaseRef lease = {};
  Moment deadline = {};
  Milliseconds time{0};  // Of the lease.
  LeaseFacts facts = {};
  std::optional<Moment> written = {};  // When the answer with it was.
  bool marked = false;                 // The broker knows that.
};

class LeaseRegistry {
 public:
  // `poke`: sweep() is due sooner than was said.
  explicit LeaseRegistry(std::function<void()> poke) : poke_(std::move(poke)) {}

  // Before the answer with them is sent.
  void add(const std::vector<Lease>& leases, Milliseconds time, Moment now);
  // The answer is out.
  void written(const std::vector<LeaseRef>& leases, Moment now);
  // About to be settled, or returned. Those of them that are known, in order.
  std::vector<LeaseOut> take(const std::vector<LeaseRef>& leases);
  // They were not settled, and are still out.
  void put_back(std::vector<LeaseOut> leases);
  void extended(const std::vector<LeaseRef>& leases, const std::vector<Extended>& answers, Moment now);
  // Nothing when the lease was given out by an earlier process, or is not ours any more.
  std::optional<LeaseFacts> facts(const LeaseRef& lease) const;

  // Forgets leases that ran out. Those to be marked as delivered: they have been with their workers for a while. Quick
  // ones are settled before and cost nothing.
  std::vector<LeaseRef> sweep(Moment now);
  // When that is due; nothing: the table is empty.
  std::optional<Moment> next_sweep() const;
  // At the end: all that reached a worker and were not marked yet.
  std::vector<LeaseRef> take_unmarked();

  std::size_t size() const;

 private:
  bool arm(Moment now);  // With the lock held. True: poke.
  void check() const;    // Likewise.

  const std::function<void()> poke_;

  mutable std::mutex mutex_;  // Guards everything below.
  platform::KeyedMap<JobId, LeaseOut> out_;
  Moment next_sweep_ = Moment::max();
};

}  // namespace bide::server
