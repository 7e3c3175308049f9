// LeaseQueue: where leases wait for a thread, and threads for a lease.
//
// Waking a thread costs more than running a short handler. So while handlers are short, only as many threads are woken
// as there are cores. One more is on standby: it checks every millisecond whether the others make progress, and takes
// leases when they do not. While handlers are long, every lease that arrives wakes a thread.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "worker/attempt.h"

namespace bide::worker {

class LeaseQueue {
 public:
  LeaseQueue();

  // Any thread, also the broker's.
  void add(std::shared_ptr<LeaseBatch> batch);

  // The next lease that nobody has started; waits for one. `batch_of_thread` belongs to the calling thread and keeps
  // the batch of that lease alive. Null once closed.
  Attempt* claim(std::shared_ptr<LeaseBatch>& batch_of_thread);

  // For a thread that will not claim again.
  void leave(std::shared_ptr<LeaseBatch>& batch_of_thread);

  // From now on claim() gives nothing more; the leases that nobody has started are handed over.
  std::vector<std::shared_ptr<LeaseBatch>> close();
  // Takes what has waited since before `since` away from the threads: whoever calls must claim it all.
  std::vector<std::shared_ptr<LeaseBatch>> take_stale(Moment since);

  // How long handlers take, as of late.
  void note_duration(std::chrono::nanoseconds took);
  std::chrono::nanoseconds typical_duration() const { return std::chrono::nanoseconds(typical_ns_.load(kRelaxed)); }
  bool measured() const { return measured_.load(kRelaxed); }

  int waiting() const;  // Leases.
  int idle() const;     // Threads.

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;

  bool handlers_are_short() const;
  void drop_exhausted();
  void wake_another();
  bool others_make_progress(std::unique_lock<std::mutex>& lock);

  const int cores_;
  std::atomic<std::int64_t> typical_ns_ = 0;
  std::atomic<bool> measured_ = false;

  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable arrived_;
  std::deque<std::shared_ptr<LeaseBatch>> batches_;  // All threads work on the first one.
  int idle_ = 0;
  int busy_ = 0;
  bool standby_wanted_ = false;
  bool standby_ = false;
  bool closed_ = false;
};

}  // namespace bide::worker
