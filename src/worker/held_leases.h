// HeldLeases: every lease that the worker has and the broker has not confirmed as settled, by batch.

#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "worker/attempt.h"

namespace bide::worker {

// Safe to share between threads.
class HeldLeases {
 public:
  void add(std::shared_ptr<LeaseBatch> batch) {
    std::lock_guard lock(mutex_);
    batches_.push_back(std::move(batch));
    batches_.back()->place = std::prev(batches_.end());
  }

  // The attempt is over for the broker. Its batch may be gone afterwards.
  void settled(Attempt& attempt) {
    attempt.set_settled();
    LeaseBatch& batch = attempt.batch();
    if (!batch.count_settled()) return;
    std::shared_ptr<LeaseBatch> last;  // Freed after the lock.
    std::lock_guard lock(mutex_);
    last = std::move(*batch.place);
    batches_.erase(batch.place);
  }

  std::vector<std::shared_ptr<LeaseBatch>> all() const {
    std::lock_guard lock(mutex_);
    return {batches_.begin(), batches_.end()};
  }

 private:
  mutable std::mutex mutex_;  // Guards everything below.
  std::list<std::shared_ptr<LeaseBatch>> batches_;
};

}  // namespace bide::worker
