#include "worker/attempt_runner.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "core/duration.h"
#include "core/quote.h"
#include "core/request_rules.h"
#include "core/retry_decision.h"
#include "core/topics.h"
#include "platform/random.h"
#include "worker/coroutine_attempt.h"
#include "worker/worker_state.h"

namespace bide::worker {

namespace {

// A producer that makes up kinds must not grow the worker's memory.
constexpr std::size_t kReportedKinds = 1000;

std::string default_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host = {'?'};
  return std::string(host.data()) + ":" + std::to_string(getpid());
}

Handler wrap(Middleware middleware, Handler inner) {
  return [middleware = std::move(middleware), inner = std::move(inner)](Context& context) {
    return middleware(context, [&] { return inner(context); });
  };
}

TaskHandler wrap(TaskMiddleware middleware, TaskHandler inner) {
  // A coroutine, so that `next` lives as long as the middleware may call it. What it captures lives with the worker.
  return [middleware = std::move(middleware), inner = std::move(inner)](Context& context) -> Task<Outcome> {
    const TaskNext next = [&] { return inner(context); };
    co_return co_await middleware(context, next);
  };
}

std::string too_large(std::string_view what, std::size_t size) {
  return std::string(what) + " has " + std::to_string(size) + " bytes; at most " + std::to_string(Limits::kBodyBytes) +
         " are allowed";
}

}  // namespace

AttemptRunner::AttemptRunner(const Setup& setup)
    : name_(setup.options.name.empty() ? default_name() : setup.options.name),
      unknown_kind_wait_(setup.options.unknown_kind_wait), on_outcome_(setup.on_outcome), on_dead_(setup.on_dead),
      on_problem_(setup.on_problem) {
  for (const auto& [kind, handler] : setup.handlers) {
    KindHandler whole = handler;
    for (auto each = setup.middleware.rbegin(); each != setup.middleware.rend(); ++each) {
      if (whole.plain) whole.plain = wrap(each->plain, std::move(whole.plain));
      if (whole.coroutine) whole.coroutine = wrap(each->coroutine, std::move(whole.coroutine));
    }
    has_coroutines_ = has_coroutines_ || whole.coroutine;
    handlers_.emplace(kind, std::move(whole));
    if (kind != "*" && core::has_wildcard(kind)) patterns_.push_back(kind);
  }
}

const KindHandler* AttemptRunner::handler_of(const std::string& kind) const {
  auto found = handlers_.find(kind);
  for (auto each = patterns_.begin(); found == handlers_.end() && each != patterns_.end(); ++each) {
    if (core::topic_matches(*each, kind)) found = handlers_.find(*each);
  }
  if (found == handlers_.end()) found = handlers_.find("*");
  return found == handlers_.end() ? nullptr : &found->second;
}

bool AttemptRunner::is_too_late(const Lease& lease) {
  return core::is_request(lease.job) && *lease.job.expires <= wall_now();
}

const TaskHandler* AttemptRunner::coroutine_for(const Attempt& attempt) const {
  if (!has_coroutines_) return nullptr;
  const KindHandler* const handler = handler_of(attempt.lease().job.kind);
  if (handler == nullptr || !handler->coroutine || is_too_late(attempt.lease())) return nullptr;
  return &handler->coroutine;
}

Settlement AttemptRunner::conclude(CoroutineAttempt& ended) const {
  return conclude(ended.attempt(), ended.context(), [&] { return ended.take(); });
}

std::vector<std::string> AttemptRunner::kinds() const {
  std::vector<std::string> kinds;
  if (handlers_.contains("*")) return kinds;
  for (const auto& [kind, handler] : handlers_) kinds.push_back(kind);
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

Settlement AttemptRunner::run(Attempt& attempt) {
  const Lease& lease = attempt.lease();
  const KindHandler* const handler = handler_of(lease.job.kind);
  if (handler == nullptr) return unknown_kind(attempt);

  if (is_too_late(lease)) {
    return {.lease = attempt.ref(),
            .outcome = Dead{DeadReason::kExhausted, Fault::kTimedOut, "not run: the deadline of the request had passed"}};
  }

  Context context(lease, attempt);
  return conclude(attempt, context, [&] {
    return handler->plain ? handler->plain(context) : bide::run(handler->coroutine(context));
  });
}

Settlement AttemptRunner::conclude(Attempt& attempt, Context& context, const std::function<Outcome()>& outcome_of) const {
  const Lease& lease = attempt.lease();
  Settlement settlement{.lease = attempt.ref()};
  Outcome& outcome = settlement.outcome;
  std::optional<std::string> thrown;
  try {
    outcome = outcome_of();
  } catch (const std::exception& error) {
    thrown = error.what();
  } catch (...) {
    thrown = "threw something that is not a std::exception";
  }

  if (thrown && attempt.excused()) return returned(attempt, "worker " + name_ + " stopped: " + *thrown);

  if (!thrown) {
    if (Done* done = std::get_if<Done>(&outcome)) {
      if (done->result.empty() && !context.result_.empty()) {
        done->result = std::move(context.result_);
        done->content_type = std::move(context.result_content_type_);
      }
      if (done->result.size() > Limits::kBodyBytes) thrown = too_large("the result", done->result.size());
    }
  }
  if (thrown) {
    outcome = decide(lease, Fault::kFailed, std::move(*thrown));
  } else {
    settlement.effects = std::move(context.effects_);
    charge_budget(outcome, lease);
  }
  if (RetryAt* retry = std::get_if<RetryAt>(&outcome); retry && !retry->body) {
    retry->body = std::move(context.saved_body_);
  }
  return settlement;
}

// A handler chooses its own wait, not its own number of attempts.
void AttemptRunner::charge_budget(Outcome& outcome, const Lease& lease) const {
  RetryAt* retry = std::get_if<RetryAt>(&outcome);
  if (retry == nullptr) return;
  Outcome by_policy = decide(lease, retry->fault, retry->error);
  if (std::holds_alternative<Dead>(by_policy)) {
    outcome = std::move(by_policy);
  } else {
    outcome = within_deadline(std::move(outcome), lease);
  }
}

// A retry that would begin when nobody waits any more is not made: whoever waits is told now.
Outcome AttemptRunner::within_deadline(Outcome outcome, const Lease& lease) const {
  RetryAt* const retry = std::get_if<RetryAt>(&outcome);
  if (retry == nullptr || !core::is_request(lease.job) || wall_now() + retry->after < *lease.job.expires) return outcome;
  return Dead{DeadReason::kExhausted, retry->fault, std::move(retry->error)};
}

Outcome AttemptRunner::decide(const Lease& lease, Fault fault, std::string error) const {
  thread_local platform::SystemRandom random;
  return within_deadline(
      core::decide_after_fault(lease.job.retry, lease.counts, fault, std::move(error), random.next()), lease);
}

Settlement AttemptRunner::timed_out(const Attempt& attempt) const {
  const Lease& lease = attempt.lease();
  return {.lease = attempt.ref(),
          .outcome = decide(lease, Fault::kTimedOut,
                            "ran longer than its time limit of " + core::format_duration(lease.job.time_limit))};
}

Settlement AttemptRunner::returned(const Attempt& attempt, std::string note) const {
  return {.lease = attempt.ref(), .outcome = Returned{.after = Milliseconds(0), .note = std::move(note)}};
}

Settlement AttemptRunner::unknown_kind(const Attempt& attempt) {
  const std::string& kind = attempt.lease().job.kind;
  const std::string note = "no handler for kind " + core::quoted(kind) + " in worker " + name_;
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    if (reported_kinds_.size() < kReportedKinds) first = reported_kinds_.insert(kind).second;
  }
  if (first) report(note + "; its jobs are given back and wait for a worker that has one");
  return {.lease = attempt.ref(), .outcome = Returned{.after = unknown_kind_wait_, .note = note}};
}

void AttemptRunner::tell_hooks(const Attempt& attempt, const Outcome& outcome, std::chrono::nanoseconds took) const {
  if (!on_outcome_ && !on_dead_) return;
  const Finished finished{attempt.lease().job, attempt.lease().attempt, outcome, took};
  try {
    if (on_outcome_) on_outcome_(finished);
    if (on_dead_ && std::holds_alternative<Dead>(outcome)) on_dead_(finished);
  } catch (...) {
    report("a hook threw; hooks must not");
  }
}

void AttemptRunner::report(std::string_view problem) const {
  if (!on_problem_) {
    std::fprintf(stderr, "bide: worker %s: %.*s\n", name_.c_str(), static_cast<int>(problem.size()), problem.data());
    return;
  }
  try {
    on_problem_(problem);
  } catch (...) {
    // Nobody is left to be told.
  }
}

namespace {

Error invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

}  // namespace

Status Setup::validate() const {
  if (options.queues.empty()) return invalid("a worker needs at least one queue");
  for (const WorkerQueue& queue : options.queues) {
    if (queue.name.empty()) return invalid("a queue of the worker has no name");
    if (queue.weight < 1 || queue.weight > 1000) {
      return invalid("the weight of queue " + core::quoted(queue.name) + " is " + std::to_string(queue.weight) +
                     "; allowed is 1 to 1000");
    }
  }
  if (options.concurrency < 0 || options.concurrency > 10'000) {
    return invalid("concurrency is " + std::to_string(options.concurrency) +
                   "; allowed is 1 to 10000, or 0 for one for each core");
  }
  if (options.credit < 0 || options.credit > 1'000'000) {
    return invalid("credit is " + std::to_string(options.credit) + "; allowed is 1 to 1000000, or 0 for automatic");
  }
  if (options.lease < std::chrono::seconds(1) || options.lease > std::chrono::hours(1)) {
    return invalid("lease is " + core::format_duration(options.lease) + "; allowed is 1s to 1h");
  }
  if (options.grace < Milliseconds(0)) return invalid("grace must not be negative");
  if (options.abandoned_threads < 0) return invalid("abandoned_threads must not be negative");
  if (options.unknown_kind_wait < Milliseconds(0)) return invalid("unknown_kind_wait must not be negative");
  std::set<std::string> kinds;
  for (const auto& [kind, handler] : handlers) {
    if (kind.empty()) return invalid("a handler has an empty kind");
    if (!kinds.insert(kind).second) return invalid("kind " + core::quoted(kind) + " has two handlers");
    const bool left_out = std::any_of(middleware.begin(), middleware.end(), [](const AnyMiddleware& each) { return !each.coroutine; });
    if (handler.coroutine && left_out) {
      return invalid("the handler of kind " + core::quoted(kind) +
                     " is a coroutine, and a middleware is not made for those; give use() a TaskMiddleware too");
    }
  }
  return {};
}

}  // namespace bide::worker
