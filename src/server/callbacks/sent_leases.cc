#include "server/callbacks/sent_leases.h"

#include <algorithm>

#include "platform/fatal.h"

namespace bide::server {

void SentLeases::open(std::unique_ptr<Subscription> subscription, int room) {
  std::lock_guard lock(mutex_);
  subscription_ = std::move(subscription);
  room_ = given_ = room;
  give();
}

void SentLeases::close() {
  std::unique_ptr<Subscription> ended;  // After the lock: ending it may wait for the broker.
  std::lock_guard lock(mutex_);
  ended = std::move(subscription_);
}

void SentLeases::listen(OnSettled on_settled) {
  std::lock_guard lock(mutex_);
  on_settled_ = std::move(on_settled);
}

void SentLeases::set_room(int room) {
  std::lock_guard lock(mutex_);
  room_ = room;
  give();
}

void SentLeases::sent(const LeaseRef& lease) {
  std::lock_guard lock(mutex_);
  const bool added = leases_.try_emplace({lease.id, lease.token}).second;
  platform::require(added, "a lease is sent once");
  size_ = leases_.size();
}

void SentLeases::accepted(const LeaseRef& lease) {
  std::lock_guard lock(mutex_);
  const auto found = leases_.find({lease.id, lease.token});
  platform::require(found != leases_.end() && !found->second.accepted, "what is accepted was sent, and not accepted yet");
  count(found->second, -1);
  found->second.accepted = true;
  count(found->second, 1);
  give();
}

void SentLeases::not_settled(const LeaseRef& lease) {
  std::lock_guard lock(mutex_);
  const auto found = leases_.find({lease.id, lease.token});
  if (found == leases_.end()) return;
  count(found->second, -1);
  found->second.settling = false;
  count(found->second, 1);
  give();
}

void SentLeases::remove(const LeaseRef& lease) {
  std::lock_guard lock(mutex_);
  const auto found = leases_.find({lease.id, lease.token});
  if (found == leases_.end()) return;
  count(found->second, -1);
  leases_.erase(found);
  size_ = leases_.size();
  give();
}

void SentLeases::set_ended_elsewhere(int number) {
  std::lock_guard lock(mutex_);
  ended_elsewhere_ = number;
  give();
}

std::vector<LeaseRef> SentLeases::settling(const std::vector<Settlement>& settlements) {
  std::vector<LeaseRef> found_ones;
  if (size_ == 0) return found_ones;
  std::lock_guard lock(mutex_);
  for (const Settlement& settlement : settlements) {
    const auto found = leases_.find({settlement.lease.id, settlement.lease.token});
    if (found == leases_.end() || found->second.settling) continue;
    count(found->second, -1);
    found->second.settling = true;
    count(found->second, 1);
    found_ones.push_back(settlement.lease);
  }
  give();
  return found_ones;
}

void SentLeases::settled(const LeaseRef& lease, const Status& status) const {
  OnSettled told;
  {
    std::lock_guard lock(mutex_);
    told = on_settled_;
  }
  if (told) told(lease, status);
}

int SentLeases::credit() const {
  std::lock_guard lock(mutex_);
  return given_;
}

void SentLeases::count(const Sent& lease, int by) {
  if (lease.accepted && !lease.settling) accepted_ += by;
  if (!lease.accepted && lease.settling) settled_early_ += by;
  platform::require(accepted_ >= 0 && settled_early_ >= 0, "leases that were sent are counted as what they are");
}

int SentLeases::wanted() const {
  // Those that ended elsewhere may have been found one by one since they were counted.
  const int credit = room_ + accepted_ - std::min(ended_elsewhere_, accepted_) - settled_early_;
  // Without room there may be less than nothing to give.
  return std::max(credit, 0);
}

void SentLeases::give() {
  if (!subscription_ || wanted() == given_) return;
  given_ = wanted();
  subscription_->set_credit(given_);
}

}  // namespace bide::server
