#include "worker/attempt.h"

#include <algorithm>
#include <string>

#include "core/request_rules.h"
#include "worker/worker_state.h"

namespace bide::worker {

namespace {

// Being a little stricter than the broker, the worker is the one that settles the attempt, with a better word about it.
Milliseconds strictness(Milliseconds limit) { return std::min(limit / 10, Milliseconds(50)); }

// A hundred years: more than enough, and far from the end of the clock's range.
constexpr Milliseconds kLongestLimit = std::chrono::hours(24 * 365 * 100);

}  // namespace

bool Attempt::finish() {
  State expected = State::kRunning;
  return state_.compare_exchange_strong(expected, State::kSettling, std::memory_order_acq_rel);
}

bool Attempt::stopping() const { return batch_->link().stopping.load(std::memory_order_acquire); }

std::stop_token Attempt::stop_token() {
  std::lock_guard lock(stop_mutex_);
  if (!stop_source_.stop_possible()) stop_source_ = std::stop_source();
  if (stop_requested_) stop_source_.request_stop();
  return stop_source_.get_token();
}

void Attempt::request_stop() {
  std::stop_source source{std::nostopstate};
  {
    std::lock_guard lock(stop_mutex_);
    stop_requested_ = true;
    source = stop_source_;
  }
  source.request_stop();
}

void Attempt::release() {
  Job& job = lease_->job;
  std::string().swap(job.body);
  std::string().swap(job.content_type);
  std::string().swap(job.unique_key);
  Headers().swap(job.headers);
  std::vector<AttemptError>().swap(lease_->history);
}

LeaseBatch::LeaseBatch(std::vector<Lease> leases, Moment given, std::shared_ptr<WorkerLink> link)
    : asked(given), granted(given), size_(leases.size()), given_(given),
      link_(std::move(link)), leases_(std::move(leases)), attempts_(std::make_unique<Attempt[]>(size_)),
      unsettled_(size_) {
  shortest_limit_ = kLongestLimit;
  for (std::size_t i = 0; i < size_; ++i) {
    Lease& lease = leases_[i];
    Attempt& attempt = attempts_[i];
    Milliseconds limit = std::clamp(lease.job.time_limit, Milliseconds(0), kLongestLimit);
    // Nobody waits for the reply any longer than that.
    if (core::is_request(lease.job)) limit = std::clamp(*lease.job.expires - wall_now(), Milliseconds(0), limit);
    attempt.ref_ = {lease.job.id, lease.token};
    attempt.lease_ = &lease;
    attempt.batch_ = this;
    attempt.deadline_ = given_ + limit - strictness(limit);
    shortest_limit_ = std::min(shortest_limit_, limit);
  }
  earliest_deadline_ = given_ + shortest_limit_ - strictness(shortest_limit_);
}

Attempt* LeaseBatch::claim() {
  // Looked at first, so that threads finding nothing do not keep adding.
  if (exhausted()) return nullptr;
  const std::size_t index = next_.fetch_add(1, std::memory_order_relaxed);
  return index < size_ ? &attempts_[index] : nullptr;
}

std::size_t LeaseBatch::unclaimed() const { return size_ - std::min(size_, position()); }

}  // namespace bide::worker
