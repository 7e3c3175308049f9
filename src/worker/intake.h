// Intake: where leases wait for a thread, and threads for a lease.
//
// Waking a thread costs more than running a short handler. So while handlers are short only as many threads are woken
// as there are cores, and one more stands by as the lookout: it looks every millisecond whether the others still get
// on, and joins in when they do not. While handlers are long every lease that arrives wakes a thread.

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

class Intake {
 public:
  Intake();

  // Any thread, also the broker's.
  void add(std::shared_ptr<LeaseBatch> batch);

  // The next lease that nobody has started; waits for one. The batch it is in is left in `seat`, which keeps it alive.
  // Null once closed.
  Attempt* claim(std::shared_ptr<LeaseBatch>& seat);

  // A thread that will not claim again gives up its seat.
  void leave(std::shared_ptr<LeaseBatch>& seat);

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

  bool brisk() const;
  void drop_exhausted();
  void wake_another();
  bool others_get_on(std::unique_lock<std::mutex>& lock);

  const int cores_;
  std::atomic<std::int64_t> typical_ns_ = 0;
  std::atomic<bool> measured_ = false;

  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable arrived_;
  std::deque<std::shared_ptr<LeaseBatch>> batches_;  // All threads work on the first one.
  int idle_ = 0;
  int busy_ = 0;
  bool lookout_wanted_ = false;
  bool lookout_ = false;
  bool closed_ = false;
};

}  // namespace bide::worker
