#include "server/api/lease_pool.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>
#include <utility>

#include "platform/fatal.h"

namespace bide::server {

using platform::require;

void LeasePool::open(std::unique_ptr<Subscription> subscription) {
  subscription_ = std::move(subscription);
  given_limit_ = 0;
  update_limit();
}

std::uint64_t LeasePool::delivery_limit() const {
  const std::int64_t wanted = std::int64_t{wanted_} + expected_leases_;
  const auto held = static_cast<std::int64_t>(held_.size());
  // More may be held than is wanted, when a poll has gone meanwhile.
  return arrived_ + static_cast<std::uint64_t>(std::max<std::int64_t>(0, wanted - held));
}

void LeasePool::update_limit() {
  require(!waiting_.empty() || wanted_ == 0, "a pool without polls wants leases");
  require(!expected_.empty() || expected_leases_ == 0, "a pool expects nobody and leases for them");
  if (!subscription_) return;
  const std::uint64_t limit = delivery_limit();
  if (limit == given_limit_) return;
  given_limit_ = limit;
  subscription_->set_delivery_limit(limit);
}

void LeasePool::add(const Poll& poll, Moment now) {
  if (!poll->poller.empty()) {
    pollers_[poll->poller] = now;
    remove_expected(poll->poller);
  }
  poll->place = waiting_.insert(waiting_.end(), poll);
  wanted_ += poll->max;
}

void LeasePool::remove(Poll poll) {
  waiting_.erase(poll->place);
  wanted_ -= poll->max;
  require(wanted_ >= 0, "a pool wants less than nothing");
}

bool LeasePool::remove_poller(const std::string& poller) {
  remove_expected(poller);
  return pollers_.erase(poller) != 0;
}

void LeasePool::remove_pollers(Moment before) {
  std::set<std::string_view> waiting;
  for (const Poll& poll : waiting_) waiting.insert(poll->poller);
  std::erase_if(pollers_, [&](const auto& each) { return each.second < before && !waiting.contains(each.first); });
}

void LeasePool::arrived(std::vector<Lease> leases, Moment now) {
  arrived_ += leases.size();
  for (Lease& lease : leases) held_.push_back({std::move(lease), now});
}

LeasePool::HandedOut LeasePool::hand_out(Moment now, Milliseconds back_within) {
  HandedOut out;
  const auto age_of = [now](const Held& held) {
    return held.lease.age + std::chrono::ceil<Milliseconds>(now - held.since);
  };
  std::erase_if(held_, [&](const Held& held) {
    if (age_of(held) < options_.lease) return false;
    out.too_old.push_back({held.lease.job.id, held.lease.token});
    return true;
  });
  while (!held_.empty() && !waiting_.empty()) {
    const std::size_t share = (held_.size() + waiting_.size() - 1) / waiting_.size();
    const Poll poll = waiting_.front();
    const std::size_t count = std::min(share, static_cast<std::size_t>(poll->max));
    std::vector<Lease> leases;
    leases.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      Held& next = held_.front();
      next.lease.age = age_of(next);
      leases.push_back(std::move(next.lease));
      held_.pop_front();
    }
    remove(poll);
    const int missing = poll->max - static_cast<int>(count);
    if (!poll->poller.empty() && missing > 0) {
      remove_expected(poll->poller);
      out.expected_until = now + back_within;
      expected_leases_ += missing;
      expected_[poll->poller] = {missing, out.expected_until};
    }
    out.shares.push_back({poll, std::move(leases)});
  }
  return out;
}

std::vector<LeaseRef> LeasePool::take_held(Moment before) {
  std::vector<LeaseRef> taken;
  while (!held_.empty() && held_.front().since <= before) {
    taken.push_back({held_.front().lease.job.id, held_.front().lease.token});
    held_.pop_front();
  }
  return taken;
}

std::optional<Moment> LeasePool::held_since() const {
  return held_.empty() ? std::nullopt : std::optional(held_.front().since);
}

void LeasePool::remove_expected(const std::string& poller) {
  const auto found = expected_.find(poller);
  if (found == expected_.end()) return;
  expected_leases_ -= found->second.leases;
  expected_.erase(found);
}

std::optional<Moment> LeasePool::drop_expected(Moment now) {
  std::optional<Moment> next;
  for (auto at = expected_.begin(); at != expected_.end();) {
    if (at->second.until <= now) {
      expected_leases_ -= at->second.leases;
      at = expected_.erase(at);
    } else {
      next = next ? std::min(*next, at->second.until) : at->second.until;
      ++at;
    }
  }
  return next;
}

}  // namespace bide::server
