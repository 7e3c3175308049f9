// CoroutineAttempt: an attempt whose handler is a coroutine, from its beginning until it has ended. It keeps itself
// alive while the coroutine waits, and with it the batch of its lease and the worker's threads.
//
//   begin ──► runs on a thread ──waits──► nobody's ──can go on──► LeaseQueue ──► runs on a thread ... ──► ended
//
// Once the threads are gone for good, a coroutine that could go on is destroyed instead.

#pragma once

#include <atomic>
#include <coroutine>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "bide/context.h"
#include "bide/coroutine.h"
#include "bide/lease.h"
#include "bide/middleware.h"
#include "worker/attempt.h"

namespace bide::worker {

class AttemptRunner;
class LeaseQueue;

class CoroutineAttempt : public Resumer, public std::enable_shared_from_this<CoroutineAttempt> {
 public:
  // `owner` has the queue, and whatever else the handler needs.
  CoroutineAttempt(std::shared_ptr<LeaseBatch> batch, Attempt& attempt, std::shared_ptr<void> owner, LeaseQueue& queue);

  Attempt& attempt() const { return attempt_; }
  Context& context() { return context_; }
  Moment started() const { return started_; }

  // Calls the handler, which begins when resume() is called with what this returns. Null: it threw instead, and has
  // ended.
  std::coroutine_handle<> begin(const TaskHandler& handler);
  // Runs it on this thread until it waits or ends. True: it has ended, on this thread, and it is for the caller to
  // finish it.
  bool resume(std::coroutine_handle<> waiting);
  // What it came to, or what it threw. Once it has ended.
  Outcome take();
  // Destroys the coroutine. drop(): unless a thread runs it that has not come back.
  void clear();
  void drop();

  void resume_later(std::coroutine_handle<> waiting) override;

 private:
  void end();

  const std::shared_ptr<LeaseBatch> batch_;
  Attempt& attempt_;
  const std::shared_ptr<void> owner_;
  LeaseQueue& queue_;
  Context context_;
  const Moment started_;
  std::optional<Task<Outcome>> task_ = {};
  std::exception_ptr thrown_ = {};
  std::atomic<std::thread::id> thread_ = {};    // In resume(), the newest.
  std::atomic<bool> dropped_ = false;          // The worker has ended: nobody resumes it any more.
  std::atomic<std::thread::id> ended_on_ = {};  // One that was in resume() then.

  std::mutex mutex_;                             // Guards everything below.
  std::shared_ptr<CoroutineAttempt> self_ = {};  // While it has not ended.
};

}  // namespace bide::worker
