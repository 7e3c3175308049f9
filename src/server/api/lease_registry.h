// LeaseRegistry: leases that polls were answered with, until they are settled or run out. The broker may have ended one
// meanwhile, so nothing is counted by it. It holds what settling needs to know about a lease, and which leases have
// reached their workers (Broker::mark_delivered). Safe to share between threads.

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
#include "platform/timer_thread.h"

namespace bide::server {

using platform::Moment;

struct LeaseFacts {
  std::string kind = {};
  std::string queue = {};
  RetryPolicy retry = {};
  AttemptCounts counts = {};
};

struct LeaseOut {
  LeaseRef lease = {};
  Moment deadline = {};
  Milliseconds lease_time{0};
  LeaseFacts facts = {};
  std::optional<Moment> written = {};  // When its answer was.
  bool marked = false;                 // As delivered, at the broker.
};

class LeaseRegistry {
 public:
  // `wake`: sweep() is due earlier than next_sweep() said.
  explicit LeaseRegistry(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Before their answer is sent.
  void add(const std::vector<Lease>& leases, Milliseconds lease_time, Moment now);
  // Their answer was written.
  void written(const std::vector<LeaseRef>& leases, Moment now);
  // Removes those about to be settled or returned. Returns the known ones, in order.
  std::vector<LeaseOut> take(const std::vector<LeaseRef>& leases);
  // They were not settled.
  void put_back(std::vector<LeaseOut> leases);
  void extended(const std::vector<LeaseRef>& leases, const std::vector<Extended>& answers, Moment now);
  // Nothing when the lease is unknown: of an earlier process, or over.
  std::optional<LeaseFacts> facts(const LeaseRef& lease);

  // Removes leases that ran out. Returns those to be marked as delivered; leases that are settled quickly never are.
  std::vector<LeaseRef> sweep(Moment now);
  // Nothing: there are no leases.
  std::optional<Moment> next_sweep() const;
  // All that reached a worker and are not marked yet.
  std::vector<LeaseRef> take_unmarked();

  std::size_t size() const;

 private:
  using Leases = platform::KeyedMap<JobId, LeaseOut>;

  // With the lock held.
  Leases::iterator find(const LeaseRef& lease);
  bool arm(Moment now);  // True: wake.
  void check() const;

  const std::function<void()> wake_;

  mutable std::mutex mutex_;  // Guards everything below.
  Leases out_;
  Moment next_sweep_ = Moment::max();
};

}  // namespace bide::server
