// LeaseQueue: where leases wait for a thread, and threads for a lease.
//
// Waking a thread costs more than running a short handler. So while handlers are short, only as many threads are woken
// as there are cores. One more is on standby: it checks every millisecond whether the others make progress, and takes
// leases when they do not. While handlers are long, every lease that arrives wakes a thread.

#pragma once

#include <atomic>
#include <condition_variable>
#include <coroutine>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "worker/attempt.h"

namespace bide::worker {

class CoroutineAttempt;

// A coroutine that can go on; without a handle it has ended.
struct Resumption {
  std::shared_ptr<CoroutineAttempt> attempt = {};
  std::coroutine_handle<> waiting = {};
};

class LeaseQueue {
 public:
  LeaseQueue();

  // Any thread, also the broker's.
  void add(std::shared_ptr<LeaseBatch> batch);

  // The next lease that nobody has started; waits for one. `batch_of_thread` belongs to the calling thread and keeps
  // the batch of that lease alive. Null with a coroutine in `resumption`: that is to go on first. Null without: closed, and no
  // coroutine is left. `lease_first`: for a thread that had a coroutine before; coroutines that always can go on must not
  // keep leases from beginning.
  Attempt* claim(std::shared_ptr<LeaseBatch>& batch_of_thread, Resumption* resumption = nullptr, bool lease_first = false);

  // Coroutines under way keep the threads from leaving when the queue is closed.
  void add_coroutine();
  void remove_coroutine();
  int coroutines() const;
  // Any thread. False: end() was called.
  bool post(Resumption resumption);
  // After close(): the threads leave, whatever coroutines are under way. Those that could have gone on.
  std::deque<Resumption> end();

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
  bool take_resumption(Resumption* resumption);
  void drop_exhausted();
  void wake_another();
  bool others_make_progress(std::unique_lock<std::mutex>& lock);

  const int cores_;
  std::atomic<std::int64_t> typical_ns_ = 0;
  std::atomic<bool> measured_ = false;
  std::atomic<bool> can_go_on_ = false;  // There are resumptions.

  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable arrived_;
  std::deque<std::shared_ptr<LeaseBatch>> batches_;  // All threads work on the first one.
  std::deque<Resumption> resumptions_;
  int coroutines_ = 0;
  bool ended_ = false;
  int idle_ = 0;
  int busy_ = 0;
  bool standby_wanted_ = false;
  bool standby_ = false;
  bool closed_ = false;
};

}  // namespace bide::worker
