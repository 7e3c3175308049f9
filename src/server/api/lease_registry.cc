#include "server/api/lease_registry.h"

#include <utility>

#include "platform/fatal.h"

namespace bide::server {

namespace {

constexpr Milliseconds kSweepEvery{1000};
constexpr Milliseconds kMarkedAfter{500};

}  // namespace

void LeaseRegistry::check() const {
  platform::require(out_.empty() == (next_sweep_ == Moment::max()), "a table of leases without a next sweep");
}

LeaseRegistry::Leases::iterator LeaseRegistry::find(const LeaseRef& lease) {
  const auto found = out_.find(lease.id);
  return found == out_.end() || found->second.lease.token == lease.token ? found : out_.end();
}

bool LeaseRegistry::arm(Moment now) {
  if (out_.empty() || next_sweep_ != Moment::max()) return false;
  next_sweep_ = now + kSweepEvery;
  return true;
}

void LeaseRegistry::add(const std::vector<Lease>& leases, Milliseconds lease_time, Moment now) {
  bool armed = false;
  {
    std::lock_guard lock(mutex_);
    for (const Lease& lease : leases) {
      // An earlier lease of the same job is over.
      out_.insert_or_assign(lease.job.id,
                            LeaseOut{.lease = {lease.job.id, lease.token},
                                     .deadline = now - lease.age + lease_time,
                                     .lease_time = lease_time,
                                     .facts = {lease.job.kind, lease.job.queue, lease.job.retry, lease.counts}});
    }
    armed = arm(now);
    check();
  }
  if (armed) wake_();
}

void LeaseRegistry::written(const std::vector<LeaseRef>& leases, Moment now) {
  std::lock_guard lock(mutex_);
  for (const LeaseRef& lease : leases) {
    if (const auto found = find(lease); found != out_.end()) found->second.written = now;
  }
}

std::vector<LeaseOut> LeaseRegistry::take(const std::vector<LeaseRef>& leases) {
  std::vector<LeaseOut> known;
  known.reserve(leases.size());
  std::lock_guard lock(mutex_);
  for (const LeaseRef& lease : leases) {
    const auto found = find(lease);
    if (found == out_.end()) continue;
    known.push_back(std::move(found->second));
    out_.erase(found);
  }
  if (out_.empty()) next_sweep_ = Moment::max();
  check();
  return known;
}

void LeaseRegistry::put_back(std::vector<LeaseOut> leases) {
  bool armed = false;
  {
    std::lock_guard lock(mutex_);
    for (LeaseOut& out : leases) {
      const JobId id = out.lease.id;
      out_.try_emplace(id, std::move(out));
    }
    armed = arm(std::chrono::steady_clock::now());
    check();
  }
  if (armed) wake_();
}

void LeaseRegistry::extended(const std::vector<LeaseRef>& leases, const std::vector<Extended>& answers, Moment now) {
  std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < leases.size() && i < answers.size(); ++i) {
    const auto found = find(leases[i]);
    if (found == out_.end()) continue;
    if (answers[i].lost) {
      out_.erase(found);
    } else {
      found->second.deadline = now + found->second.lease_time;
      found->second.marked = true;  // An extend implies it.
    }
  }
  if (out_.empty()) next_sweep_ = Moment::max();
  check();
}

std::optional<LeaseFacts> LeaseRegistry::facts(const LeaseRef& lease) {
  std::lock_guard lock(mutex_);
  const auto found = find(lease);
  return found == out_.end() ? std::nullopt : std::optional(found->second.facts);
}

std::vector<LeaseRef> LeaseRegistry::sweep(Moment now) {
  std::vector<LeaseRef> delivered;
  std::lock_guard lock(mutex_);
  if (now < next_sweep_) return delivered;
  for (auto at = out_.begin(); at != out_.end();) {
    LeaseOut& out = at->second;
    if (out.deadline <= now) {
      at = out_.erase(at);
      continue;
    }
    if (!out.marked && out.written && *out.written + kMarkedAfter <= now) {
      out.marked = true;
      delivered.push_back(out.lease);
    }
    ++at;
  }
  next_sweep_ = out_.empty() ? Moment::max() : now + kSweepEvery;
  check();
  return delivered;
}

std::optional<Moment> LeaseRegistry::next_sweep() const {
  std::lock_guard lock(mutex_);
  return next_sweep_ == Moment::max() ? std::nullopt : std::optional(next_sweep_);
}

std::vector<LeaseRef> LeaseRegistry::take_unmarked() {
  std::vector<LeaseRef> delivered;
  std::lock_guard lock(mutex_);
  for (auto& [id, out] : out_) {
    if (out.written && !std::exchange(out.marked, true)) delivered.push_back(out.lease);
  }
  return delivered;
}

std::size_t LeaseRegistry::size() const {
  std::lock_guard lock(mutex_);
  return out_.size();
}

}  // namespace bide::server
