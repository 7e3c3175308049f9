// HandlerThreads: a worker that has been started. Its threads run handlers; one more, the timekeeper, extends leases,
// enforces time limits, sends outcomes again that were not confirmed, and chooses the credit.
//
//   broker ──leases──► LeaseQueue ──claim──► handler threads ──outcomes──► Settler ──batches──► broker
//                          └──── HeldLeases ◄── timekeeper: extend, time out, return what waits too long
//
// Handlers that never return keep this object alive, but not the broker: stop() lets go of it.

#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "bide/worker.h"
#include "worker/attempt.h"
#include "worker/attempt_runner.h"
#include "worker/coroutine_attempt.h"
#include "worker/held_leases.h"
#include "worker/lease_queue.h"
#include "worker/settler.h"

namespace bide::worker {

class HandlerThreads : public std::enable_shared_from_this<HandlerThreads> {
 public:
  // The broker refuses the worker for good. Called on a thread of the broker, at most once, not after stop().
  using OnFailed = std::function<void(const Error&)>;

  // The setup is valid.
  static Result<std::shared_ptr<HandlerThreads>> start(const Setup& setup, std::shared_ptr<Broker> broker,
                                                       OnFailed on_failed);
  ~HandlerThreads();  // Stopped by then.

  // The three phases. A second call waits for the first.
  void stop();
  void hurry();
  WorkerStats stats() const;

 private:
  // How often the timekeeper looks while any lease is held.
  static constexpr std::chrono::milliseconds kCheckPeriod{250};

  using Batches = std::vector<std::shared_ptr<LeaseBatch>>;
  struct ExtendAnswer {  // Of the broker, for one lease.
    std::shared_ptr<LeaseBatch> batch;
    Attempt* attempt;
    Extended answer;
  };

  HandlerThreads(const Setup& setup, std::shared_ptr<Broker> broker, OnFailed on_failed);
  Status subscribe();
  void take(std::vector<Lease> leases);

  // A handler's thread.
  void add_thread();
  void work();
  void run_handler(Attempt& attempt);
  void begin_coroutine(const TaskHandler& handler, Attempt& attempt, const std::shared_ptr<LeaseBatch>& batch);
  void go_on(const Resumption& with);
  void finish_coroutine(CoroutineAttempt& ended);
  bool must_exit(Attempt& attempt);
  bool give_up(Attempt& attempt);  // With the mutex held.

  // The timekeeper's.
  void run_timekeeper();
  Moment check_leases(Moment now);
  void apply_answers(std::vector<ExtendAnswer> answers);
  Moment check_limits(const std::shared_ptr<LeaseBatch>& batch, Moment now);
  void time_out(Attempt& attempt);
  Moment replace_blocked(Moment now);
  std::string replace_thread_of(Attempt& attempt);  // With the mutex held. Not empty: why it could not.
  void extend(Batches batches, Moment now);
  void return_stale(Moment now);
  void return_unstarted(const Batches& batches, const std::string& note);
  void adjust_credit();
  int wanted_credit() const;  // With the mutex held.
  void wake_timekeeper();

  // Whoever stops.
  bool wait_for_threads(Moment until, bool until_hurried);
  void ask_running_to_stop();
  void return_running();

  const WorkerOptions options_;
  const int concurrency_;
  const OnFailed on_failed_;
  const std::shared_ptr<WorkerLink> link_ = std::make_shared<WorkerLink>();
  std::shared_ptr<Broker> broker_;  // Until stopped.

  HeldLeases held_;
  LeaseQueue queue_;
  AttemptRunner runner_;
  Settler settler_;
  std::thread timekeeper_;
  std::atomic<Moment> planned_ = Moment::max();  // When the timekeeper looks again.
  std::atomic<std::uint64_t> started_ = 0;
  std::atomic<int> in_coroutines_ = 0;  // Threads that run one.
  std::atomic<std::size_t> typical_bytes_ = 0;  // Of a body.

  // Apart from mutex_, which the broker's threads take.
  std::mutex subscription_mutex_;  // Guards the next one.
  std::unique_ptr<Subscription> subscription_;

  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable timekeeper_woken_;
  std::condition_variable changed_;
  std::vector<ExtendAnswer> extend_answers_;
  // Coroutines that were given up while they waited and run again, with the moment since when.
  std::map<Attempt*, Moment> overdue_;
  int credit_ = 0;
  int threads_ = 0;  // Alive, with the abandoned ones.
  int abandoned_ = 0;
  std::uint64_t timed_out_ = 0;
  bool too_many_abandoned_ = false;
  bool extend_now_ = false;
  bool woken_ = false;
  bool timekeeper_ended_ = false;
  bool hurried_ = false;
  bool refused_ = false;  // By the broker: what is not settled by now hardly will be.
  bool stopping_ = false;
  bool stopped_ = false;
};

}  // namespace bide::worker
