// Attempt: one lease in the worker's hands, from its arrival until the broker has confirmed its outcome.
// LeaseBatch: the leases that arrived together, with one cursor over them.
//
//   waiting ──claim──► running ──finish──► settling ──confirmed or lost──► settled
//
// A thread claims the next lease of a batch by one atomic addition, so unstarted work never belongs to anybody: a slow
// handler holds up its own job and no other. From running to settling there are three ways, of which exactly one wins:
// the handler came back, its time limit passed, or the grace time of a stopping worker ended.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "bide/inspector.h"
#include "bide/lease.h"
#include "bide/request.h"
#include "bide/result.h"

namespace bide::worker {

using Moment = std::chrono::steady_clock::time_point;

class LeaseBatch;

// By the worker's client.
using SendRequest = std::function<void(Job, Milliseconds timeout, std::function<void(Result<Reply>)> done)>;

// Waits for the broker.
using FindJob = std::function<Result<JobInfo>(JobId)>;

class Attempt {
 public:
  enum class State : std::uint8_t { kWaiting, kRunning, kSettling, kSettled };

  LeaseRef ref() const { return ref_; }
  // Whoever runs or finishes the attempt may read it, and release() it once nobody else will.
  const Lease& lease() const { return *lease_; }
  LeaseBatch& batch() const { return *batch_; }
  Moment deadline() const { return deadline_; }

  State state() const { return state_.load(std::memory_order_acquire); }
  void start() { state_.store(State::kRunning, std::memory_order_release); }
  // From running to settling. False: somebody else was first, and has settled the attempt already.
  bool finish();
  void set_settling() { state_.store(State::kSettling, std::memory_order_release); }
  void set_settled() { state_.store(State::kSettled, std::memory_order_release); }

  bool lost() const { return lost_.load(std::memory_order_acquire); }
  void set_lost() { lost_.store(true, std::memory_order_release); }
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  void set_cancelled() { cancelled_.store(true, std::memory_order_release); }
  // The worker is stopping: known to the handler, who may still finish.
  bool stopping() const;
  // The handler was asked to stop for no fault of its own: what it throws now is not held against it.
  bool excused() const { return excused_.load(std::memory_order_acquire); }
  void excuse() { excused_.store(true, std::memory_order_release); }

  // The broker refused the outcome as not valid. Of the settler.
  bool refused() const { return refused_; }
  void set_refused() { refused_ = true; }

  // Of a handler that is a coroutine: threads that run it at this moment. Those of other handlers have one all the time.
  void set_coroutine() { coroutine_.store(true); }
  void enter_thread() { threads_.fetch_add(1); }
  void leave_thread() { threads_.fetch_sub(1); }
  int threads() const { return threads_.load(); }
  bool holds_thread() const { return !coroutine_.load() || threads_.load() > 0; }

  // Settled without its handler, which has not come back.
  bool is_given_up() const { return given_up_.load(); }
  void set_given_up(bool given_up) { given_up_.store(given_up); }

  // Given up while it held a thread, which has not come back. Guarded by the worker's mutex.
  bool abandoned = false;
  // Timed out, and another thread was started in place of the one that runs it. Guarded by the worker's mutex.
  bool replaced = false;

  // Most handlers never ask for a token, so the shared state behind it is made when one does.
  std::stop_token stop_token();
  // Runs the callbacks on the token. Any number of times.
  void request_stop();

  // Frees the body and all that only a handler needs; keeps what a second decision about the outcome would need.
  void release();

 private:
  friend class LeaseBatch;

  LeaseRef ref_;
  Lease* lease_ = nullptr;
  LeaseBatch* batch_ = nullptr;
  Moment deadline_;

  std::atomic<State> state_ = State::kWaiting;
  std::atomic<bool> lost_ = false;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> excused_ = false;
  std::atomic<bool> coroutine_ = false;
  std::atomic<bool> given_up_ = false;
  std::atomic<int> threads_ = 0;
  bool refused_ = false;

  std::mutex stop_mutex_;  // Guards everything below.
  std::stop_source stop_source_{std::nostopstate};
  bool stop_requested_ = false;
};

// What an attempt needs of the worker that holds it; outlives the worker for handlers that do.
struct WorkerLink {
  std::atomic<bool> stopping = false;
  // These do not change once leases arrive.
  std::function<void()> keep_alive = {};  // Extends all leases soon.
  std::function<Status(LeaseRef, std::string)> save_body = {};  // Waits for the broker.
  std::function<Status(LeaseRef, Step)> save_step = {};  // Waits for the broker. Empty: it keeps no steps.
  std::function<void(LeaseRef, Progress)> report_progress = {};  // Empty: nobody shows it.
  FindJob find = {};         // Empty: nobody can be asked.
  SendRequest request = {};  // Empty: nobody can be asked.
};

class LeaseBatch {
 public:
  // `given`: since when the leases and the limits of the jobs run.
  LeaseBatch(std::vector<Lease> leases, Moment given, std::shared_ptr<WorkerLink> link);

  // The next one that nobody has, in the order of the broker; null when there is none.
  Attempt* claim();
  bool exhausted() const { return next_.load(std::memory_order_relaxed) >= size_; }
  std::size_t unclaimed() const;
  std::size_t position() const { return next_.load(std::memory_order_relaxed); }

  std::size_t size() const { return size_; }
  Attempt& operator[](std::size_t index) { return attempts_[index]; }
  Moment given() const { return given_; }
  Moment earliest_deadline() const { return earliest_deadline_; }
  Milliseconds shortest_limit() const { return shortest_limit_; }
  WorkerLink& link() const { return *link_; }

  // One attempt less to settle. True for the last one.
  bool count_settled() { return unsettled_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  // Of the thread that keeps leases alive.
  Moment asked;      // When the newest extension was asked for.
  // When the newest extension that was granted had been asked for: the lease lives from then.
  std::atomic<Moment> granted;

  // Of HeldLeases.
  std::list<std::shared_ptr<LeaseBatch>>::iterator place;

 private:
  const std::size_t size_;
  const Moment given_;
  const std::shared_ptr<WorkerLink> link_;
  Moment earliest_deadline_;
  Milliseconds shortest_limit_{0};
  std::vector<Lease> leases_;
  std::unique_ptr<Attempt[]> attempts_;

  // Each on a line of its own: one is written by the handlers' threads, the other by the broker's.
  alignas(64) std::atomic<std::size_t> next_ = 0;
  alignas(64) std::atomic<std::size_t> unsettled_;
};

}  // namespace bide::worker
