// LeaseArrivals: leases between the sink that gets them and the thread that works on them.

#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include "bide/lease.h"

namespace bide::platform {

class LeaseArrivals {
 public:
  void add(std::vector<Lease> leases) {
    const std::lock_guard lock(mutex_);
    std::move(leases.begin(), leases.end(), std::back_inserter(waiting_));
    arrived_.notify_one();
  }

  // Up to so many, in the order in which they came; none: nothing came in time.
  std::vector<Lease> take(std::size_t most, std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, patience, [this] { return !waiting_.empty(); });
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(most, waiting_.size()));
    std::vector<Lease> leases(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
    waiting_.erase(waiting_.begin(), end);
    return leases;
  }
  std::vector<Lease> take_all() { return take(static_cast<std::size_t>(-1) / 2, std::chrono::milliseconds(0)); }

  std::vector<LeaseRef> refs() const {
    const std::lock_guard lock(mutex_);
    std::vector<LeaseRef> refs;
    for (const Lease& lease : waiting_) refs.push_back({lease.job.id, lease.token});
    return refs;
  }

 private:
  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable arrived_;
  std::deque<Lease> waiting_;
};

}  // namespace bide::platform
