// HeldLeases: which subscription each lease came by, so that its credit can be given back.

#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "brokers/remote/poller.h"
#include "platform/keyed_hash.h"

namespace bide::brokers::remote {

// Safe to use from any thread.
class HeldLeases {
 public:
  void add(const std::shared_ptr<Poller>& poller, const std::vector<Lease>& leases) {
    const std::lock_guard lock(mutex_);
    for (const Lease& lease : leases) held_[lease.job.id] = {lease.token, poller, std::nullopt};
  }

  void released(const LeaseRef& lease) {
    if (const auto poller = find(lease, true)) poller->released(lease);
  }
  // Its poller knows already.
  void expired(const LeaseRef& lease) { find(lease, true); }
  void extended(const LeaseRef& lease, std::int64_t at_ms) {
    if (const auto poller = find(lease, false)) poller->extended(lease, at_ms);
  }
  // Kept until it is taken, or the lease is over.
  void report(const LeaseRef& lease, Progress progress) {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(lease.id);
    if (found != held_.end() && found->second.token == lease.token) found->second.progress = std::move(progress);
  }
  std::optional<Progress> take_progress(const LeaseRef& lease) {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(lease.id);
    if (found == held_.end() || found->second.token != lease.token) return std::nullopt;
    return std::exchange(found->second.progress, std::nullopt);
  }

 private:
  struct Holder {
    std::uint64_t token = 0;
    std::weak_ptr<Poller> poller;
    std::optional<Progress> progress = {};
  };

  std::shared_ptr<Poller> find(const LeaseRef& lease, bool forget) {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(lease.id);
    if (found == held_.end() || found->second.token != lease.token) return nullptr;
    std::shared_ptr<Poller> poller = found->second.poller.lock();
    if (forget) held_.erase(found);
    return poller;
  }

  std::mutex mutex_;  // Guards everything below.
  platform::KeyedMap<JobId, Holder> held_;
};

}  // namespace bide::brokers::remote
