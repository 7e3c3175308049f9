// The timekeeper's half of HandlerThreads: what happens because time passes.

#include <algorithm>

#include "worker/handler_threads.h"

namespace bide::worker {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Jobs are fetched so far ahead, in time, number and bytes.
constexpr std::chrono::nanoseconds kAhead = milliseconds(50);
constexpr std::int64_t kAheadJobs = 8192;
constexpr std::int64_t kAheadBytes = 64 * 1024 * 1024;

// Handlers that are coroutines at once, when nobody says how many.
constexpr int kCoroutines = 1000;

// For a thread, of a job that was fetched ahead by our own choice.
constexpr milliseconds kLongWait{1000};

}  // namespace

void HandlerThreads::run_timekeeper() {
  std::unique_lock lock(mutex_);
  while (!timekeeper_ended_) {
    woken_ = false;
    lock.unlock();
    // Before looking: a batch that arrives from here on wakes it.
    planned_.store(Moment::max());
    const Moment next = check_leases(steady_clock::now());
    planned_.store(next);
    lock.lock();
    const auto wanted = [this] { return timekeeper_ended_ || woken_; };
    if (next == Moment::max()) {
      timekeeper_woken_.wait(lock, wanted);
    } else {
      timekeeper_woken_.wait_until(lock, next, wanted);
    }
  }
}

Moment HandlerThreads::check_leases(Moment now) {
  std::vector<ExtendAnswer> answers;
  bool extend_all = false;
  {
    std::lock_guard lock(mutex_);
    answers = std::exchange(extend_answers_, {});
    extend_all = std::exchange(extend_now_, false);
  }
  apply_answers(std::move(answers));

  const Moment late = settler_.send_late(now);
  return_stale(now);

  Moment next = std::min(late, replace_blocked(now));
  Batches to_extend;
  for (std::shared_ptr<LeaseBatch>& batch : held_.all()) {
    next = std::min({next, now + kCheckPeriod, check_limits(batch, now)});
    if (extend_all || now - batch->asked >= options_.lease / 3) to_extend.push_back(std::move(batch));
  }
  extend(std::move(to_extend), now);
  adjust_credit();
  return next;
}

// Ends what has run too long, and what has lost its lease because no extension was granted in time. The earliest
// moment at which there may be more to do.
Moment HandlerThreads::check_limits(const std::shared_ptr<LeaseBatch>& batch, Moment now) {
  const bool lease_over = now - batch->granted.load() > options_.lease;
  if (batch->earliest_deadline() > now && !lease_over) return batch->earliest_deadline();
  Moment next = Moment::max();
  for (std::size_t i = 0; i < batch->size(); ++i) {
    Attempt& attempt = (*batch)[i];
    if (attempt.state() == Attempt::State::kSettled) continue;
    if (lease_over && !attempt.lost()) {
      attempt.set_lost();
      attempt.request_stop();
    }
    if (attempt.state() != Attempt::State::kRunning) continue;
    if (attempt.deadline() <= now) {
      time_out(attempt);
    } else {
      next = std::min(next, attempt.deadline());
    }
  }
  return next;
}

// Settled without its handler from here on. A coroutine that waits holds no thread that would be missed.
bool HandlerThreads::give_up(Attempt& attempt) {
  // First: a handler's thread that comes too late to finish it must find that it may be missed.
  attempt.set_given_up(true);
  if (!attempt.finish()) {
    attempt.set_given_up(false);
    return false;
  }
  attempt.abandoned = attempt.holds_thread();
  abandoned_ += attempt.abandoned ? 1 : 0;
  return true;
}

std::string HandlerThreads::replace_thread_of(Attempt& attempt) {
  if (abandoned_ > options_.abandoned_threads || stopping_) return {};
  try {
    add_thread();
    attempt.replaced = true;
    return {};
  } catch (const std::system_error& error) {
    return "cannot replace a thread: " + std::string(error.what());
  }
}

// When to look again.
Moment HandlerThreads::replace_blocked(Moment now) {
  Moment next = Moment::max();
  std::string problem;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [attempt, since] : overdue_) {
      if (attempt->abandoned) continue;
      if (now - since < kCheckPeriod) {
        next = std::min(next, since + kCheckPeriod);
        continue;
      }
      attempt->abandoned = true;
      ++abandoned_;
      problem = replace_thread_of(*attempt);
    }
  }
  if (!problem.empty()) runner_.report(problem);
  return next;
}

void HandlerThreads::time_out(Attempt& attempt) {
  std::string problem;
  {
    std::lock_guard lock(mutex_);
    if (!give_up(attempt)) return;  // It came back in this moment.
    ++timed_out_;
    if (attempt.abandoned) problem = replace_thread_of(attempt);
  }
  if (!problem.empty()) runner_.report(problem);
  Settlement settlement = runner_.timed_out(attempt);
  runner_.tell_hooks(attempt, settlement.outcome, steady_clock::now() - attempt.batch().given());
  settler_.settle(attempt, std::move(settlement));
  attempt.request_stop();
}

void HandlerThreads::extend(Batches batches, Moment now) {
  std::vector<LeaseRef> refs;
  std::vector<ExtendAnswer> asked;
  for (const auto& batch : batches) {
    batch->asked = now;
    for (std::size_t i = 0; i < batch->size(); ++i) {
      Attempt& attempt = (*batch)[i];
      if (attempt.state() == Attempt::State::kSettled || attempt.lost()) continue;
      refs.push_back(attempt.ref());
      asked.push_back({batch, &attempt, {}});
    }
  }
  if (refs.empty()) return;
  broker_->extend(std::move(refs), [threads = shared_from_this(), asked = std::move(asked),
                                    now](Result<std::vector<Extended>> answer) mutable {
    if (!answer) return;  // Asked again in a third of the lease; when that fails as well, the lease is over.
    std::vector<ExtendAnswer> bad;
    for (std::size_t i = 0; i < asked.size() && i < answer->size(); ++i) {
      asked[i].batch->granted.store(now);
      asked[i].answer = (*answer)[i];
      if (asked[i].answer.lost || asked[i].answer.cancel_requested) bad.push_back(std::move(asked[i]));
    }
    if (bad.empty()) return;
    std::lock_guard lock(threads->mutex_);
    std::move(bad.begin(), bad.end(), std::back_inserter(threads->extend_answers_));
    threads->woken_ = true;
    threads->timekeeper_woken_.notify_one();
  });
}

// On the timekeeper's thread, since it runs the callbacks that handlers hung on their stop tokens.
void HandlerThreads::apply_answers(std::vector<ExtendAnswer> answers) {
  for (const ExtendAnswer& each : answers) {
    // One that is settled by now was not lost: the answer crossed its settlement.
    if (each.attempt->state() == Attempt::State::kSettled) continue;
    if (each.answer.lost) each.attempt->set_lost();
    if (each.answer.cancel_requested) each.attempt->set_cancelled();
    each.attempt->request_stop();
  }
}

// Jobs that wait long for a thread are given back: another worker may have one, and their time limit is running.
void HandlerThreads::return_stale(Moment now) {
  const bool halted = [this] {
    std::lock_guard lock(mutex_);
    return too_many_abandoned_;
  }();
  milliseconds longest = options_.credit == 0 ? std::min<milliseconds>(kLongWait, options_.lease) : options_.lease;
  if (halted) longest = milliseconds(0);
  for (const auto& batch : queue_.take_stale(now - longest))
    return_unstarted({batch}, "worker " + runner_.name() + " is busy");
  // Jobs with short limits cannot wait even so long.
  for (const auto& batch : held_.all()) {
    if (batch->exhausted() || now - batch->given() < batch->shortest_limit() / 4) continue;
    return_unstarted({batch}, "worker " + runner_.name() + " is busy");
  }
}

void HandlerThreads::return_unstarted(const Batches& batches, const std::string& note) {
  for (const auto& batch : batches) {
    while (Attempt* attempt = batch->claim()) {
      attempt->set_settling();
      settler_.settle(*attempt, runner_.returned(*attempt, note));
    }
  }
}

int HandlerThreads::wanted_credit() const {
  if (too_many_abandoned_) return 0;
  if (options_.credit > 0) return options_.credit;
  if (runner_.has_coroutines()) return std::max(concurrency_, kCoroutines);
  // Not known yet: nothing ahead.
  if (!queue_.measured()) return concurrency_;
  const std::int64_t typical = std::max<std::int64_t>(1, queue_.typical_duration().count());
  const std::int64_t by_time = kAhead.count() / typical * concurrency_;
  const std::int64_t by_bytes = kAheadBytes / static_cast<std::int64_t>(typical_bytes_.load() + 1);
  return concurrency_ + static_cast<int>(std::min({by_time, by_bytes, kAheadJobs}));
}

void HandlerThreads::adjust_credit() {
  std::string problem;
  int wanted = 0;
  bool changed = false;
  {
    std::lock_guard lock(mutex_);
    const bool too_many = abandoned_ > options_.abandoned_threads;
    if (too_many != std::exchange(too_many_abandoned_, too_many)) {
      problem = too_many ? std::to_string(abandoned_) +
                               " handlers ran past their time limit and have not come back; "
                               "no more jobs are taken until one does"
                         : "a handler came back; jobs are taken again";
    }
    wanted = wanted_credit();
    // Small changes are not worth a call.
    const bool worth = wanted == 0 || credit_ == 0 || std::abs(wanted - credit_) > credit_ / 4;
    changed = worth && wanted != credit_;
    if (changed) credit_ = wanted;
  }
  if (changed) {
    std::lock_guard lock(subscription_mutex_);
    if (subscription_) subscription_->set_credit(wanted);
  }
  if (!problem.empty()) runner_.report(problem);
}

}  // namespace bide::worker
