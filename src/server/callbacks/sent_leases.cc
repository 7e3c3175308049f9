#include "server/callbacks/sent_leases.h"

#include <algorithm>

#include "platform/fatal.h"

namespace bide::server {

void SentLeases::open(std::unique_ptr<Subscription> subscription, int room) {
  std::lock_guard lock(mutex_);
  subscription_ = std::move(subscription);
  room_ = given_ = room;
  update_credit();
}

void SentLeases::close() {
  std::unique_ptr<Subscription> ended;  // Destroyed after the lock: that may wait for the broker.
  std::lock_guard lock(mutex_);
  ended = std::move(subscription_);
}

void SentLeases::set_on_settled(OnSettled on_settled) {
  std::lock_guard lock(mutex_);
  on_settled_ = std::move(on_settled);
}

void SentLeases::set_room(int room) {
  std::lock_guard lock(mutex_);
  room_ = room;
  update_credit();
}

SentLeases::Sent* SentLeases::find(const LeaseRef& lease) {
  const auto found = leases_.find({lease.id, lease.token});
  return found == leases_.end() ? nullptr : &found->second;
}

void SentLeases::change(Sent& lease, bool accepted, bool settling) {
  count(lease, -1);
  lease = {accepted, settling};
  count(lease, 1);
}

void SentLeases::sent(const LeaseRef& lease) {
  std::lock_guard lock(mutex_);
  const bool added = leases_.try_emplace({lease.id, lease.token}).second;
  platform::require(added, "a lease is sent once");
  size_ = leases_.size();
}

void SentLeases::accepted(const LeaseRef& lease) {
  std::lock_guard lock(mutex_);
  Sent* const sent = find(lease);
  platform::require(sent != nullptr && !sent->accepted, "what is accepted was sent, and not accepted yet");
  change(*sent, true, sent->settling);
  update_credit();
}

void SentLeases::not_settled(const LeaseRef& lease) {
  std::lock_guard lock(mutex_);
  Sent* const sent = find(lease);
  if (sent == nullptr) return;
  change(*sent, sent->accepted, false);
  update_credit();
}

void SentLeases::remove(const LeaseRef& lease) {
  std::lock_guard lock(mutex_);
  const auto found = leases_.find({lease.id, lease.token});
  if (found == leases_.end()) return;
  count(found->second, -1);
  leases_.erase(found);
  size_ = leases_.size();
  update_credit();
}

void SentLeases::set_ended_elsewhere(int number) {
  std::lock_guard lock(mutex_);
  ended_elsewhere_ = number;
  update_credit();
}

std::vector<LeaseRef> SentLeases::settling(const std::vector<Settlement>& settlements) {
  std::vector<LeaseRef> known;
  if (size_ == 0) return known;
  std::lock_guard lock(mutex_);
  for (const Settlement& settlement : settlements) {
    Sent* const sent = find(settlement.lease);
    if (sent == nullptr || sent->settling) continue;
    change(*sent, sent->accepted, true);
    known.push_back(settlement.lease);
  }
  update_credit();
  return known;
}

void SentLeases::settled(const LeaseRef& lease, const Status& status) const {
  OnSettled on_settled;
  {
    std::lock_guard lock(mutex_);
    on_settled = on_settled_;
  }
  if (on_settled) on_settled(lease, status);
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

void SentLeases::update_credit() {
  // Some of those that ended elsewhere may have been found since they were counted; without room the sum may be negative.
  const int credit = std::max(0, room_ + accepted_ - std::min(ended_elsewhere_, accepted_) - settled_early_);
  if (!subscription_ || credit == given_) return;
  given_ = credit;
  subscription_->set_credit(credit);
}

}  // namespace bide::server
