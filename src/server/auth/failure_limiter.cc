#include "server/auth/failure_limiter.h"

#include <algorithm>

namespace bide::server {

FailureLimiter::FailureLimiter(int at_once, Milliseconds forgotten_after, std::size_t callers)
    : at_once_(std::max(at_once, 1)),
      forgotten_after_us_(std::max<std::int64_t>(forgotten_after.count(), 1) * 1000),
      most_callers_(std::max<std::size_t>(callers, 1)) {}

Milliseconds FailureLimiter::fail(const std::string& caller, std::int64_t now_us) {
  std::lock_guard lock(mutex_);
  if (const auto found = by_name_.find(caller); found != by_name_.end()) {
    by_age_.splice(by_age_.begin(), by_age_, found->second);
  } else {
    if (by_age_.size() == most_callers_) {
      by_name_.erase(by_age_.back().name);
      by_age_.pop_back();
    }
    by_age_.push_front({caller});
    by_name_.emplace(by_age_.front().name, by_age_.begin());
  }
  Caller& known = by_age_.front();
  const std::int64_t clear_us = std::max(known.clear_us, now_us) + forgotten_after_us_;
  const std::int64_t too_much_us = clear_us - now_us - at_once_ * forgotten_after_us_;
  // A failure too many is not added to the others: whoever goes on trying does not wait for ever.
  if (too_much_us > 0) return Milliseconds((too_much_us + 999) / 1000);
  known.clear_us = clear_us;
  return Milliseconds(0);
}

std::size_t FailureLimiter::callers() const {
  std::lock_guard lock(mutex_);
  return by_age_.size();
}

}  // namespace bide::server
