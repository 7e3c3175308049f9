// AttemptRunner: calls the handler of a job inside the middleware, and turns whatever happens into an outcome. The one
// place where exceptions of users' code are caught.

#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bide/lease.h"
#include "bide/middleware.h"
#include "bide/worker.h"
#include "platform/keyed_hash.h"
#include "worker/attempt.h"

namespace bide::worker {

class CoroutineAttempt;

// Exactly one of them is there.
struct KindHandler {
  Handler plain = {};
  TaskHandler coroutine = {};
};

struct AnyMiddleware {
  Middleware plain = {};
  TaskMiddleware coroutine = {};  // Empty: not for coroutines.
};

// What a worker was given before it started.
struct Setup {
  WorkerOptions options;
  std::vector<std::pair<std::string, KindHandler>> handlers = {};
  std::vector<AnyMiddleware> middleware = {};
  std::function<void(const Finished&)> on_outcome = {};
  std::function<void(const Finished&)> on_dead = {};
  std::function<void(std::string_view)> on_problem = {};
  SendRequest request = {};
  FindJob find = {};

  // kInvalidArgument names the option or the handler.
  Status validate() const;
};

// Safe to share between threads once made.
class AttemptRunner {
 public:
  explicit AttemptRunner(const Setup& setup);

  // Never throws. The outcome may be void by the time it is there: see Attempt::finish(). A handler that is a coroutine
  // is run to its end on this thread.
  Settlement run(Attempt& attempt);
  // For those who run it otherwise: the handler, if it is a coroutine and the attempt is to be begun; then what it came to.
  const TaskHandler* coroutine_for(const Attempt& attempt) const;
  Settlement conclude(CoroutineAttempt& ended) const;
  bool has_coroutines() const { return has_coroutines_; }

  // After a fault that the handler did not report itself, by the job's retry policy.
  Outcome decide(const Lease& lease, Fault fault, std::string error) const;
  Settlement timed_out(const Attempt& attempt) const;
  Settlement returned(const Attempt& attempt, std::string note) const;

  void tell_hooks(const Attempt& attempt, const Outcome& outcome, std::chrono::nanoseconds took) const;
  void report(std::string_view problem) const;
  const std::string& name() const { return name_; }
  // Those that it has handlers for, as SubscribeOptions::kinds has them. Empty: all.
  std::vector<std::string> kinds() const;

 private:
  const KindHandler* handler_of(const std::string& kind) const;
  static bool is_too_late(const Lease& lease);
  Settlement conclude(Attempt& attempt, Context& context, const std::function<Outcome()>& outcome_of) const;
  Settlement unknown_kind(const Attempt& attempt);
  void charge_budget(Outcome& outcome, const Lease& lease) const;
  Outcome within_deadline(Outcome outcome, const Lease& lease) const;

  const std::string name_;
  const Milliseconds unknown_kind_wait_;
  const std::function<void(const Finished&)> on_outcome_;
  const std::function<void(const Finished&)> on_dead_;
  const std::function<void(std::string_view)> on_problem_;
  bool has_coroutines_ = false;
  platform::KeyedMap<std::string, KindHandler> handlers_;  // Each inside all the middleware. Constant once made.
  std::vector<std::string> patterns_;                  // Those of its names with wildcards, in the order they were added.

  std::mutex mutex_;  // Guards everything below.
  std::set<std::string> reported_kinds_;
};

}  // namespace bide::worker
