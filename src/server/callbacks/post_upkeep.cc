// The part of Post that keeps leases alive, brings outcomes home, and ends.

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/duration.h"
#include "server/callbacks/post.h"

namespace bide::server {

namespace {

using std::chrono::steady_clock;
using State = HeldDelivery::State;

constexpr Milliseconds kSweepPeriod{250};
constexpr Milliseconds kLongestWait{1'000};  // In hand, for a place at its host.
constexpr Milliseconds kSettleRetry{250};
constexpr Milliseconds kLastWords{5'000};    // For settlements after everything was called off.

}  // namespace

void Deliverer::Post::settle(HeldDelivery& held, Outcome outcome) {
  enter(held, State::kSettling);
  leases_->remove(held.ref());
  held.settlement = Settlement{.lease = held.ref(), .outcome = std::move(outcome)};
  held.settle_sent = false;
  held.settle_at = {};
  unsent_.push_back(held.key());
}

void Deliverer::Post::send_settlements() {
  if (unsent_.empty()) return;
  const Moment now = steady_clock::now();
  std::vector<Key> keys;
  std::vector<Key> later_ones;
  std::vector<Settlement> settlements;
  for (const Key& key : std::exchange(unsent_, {})) {
    HeldDelivery* const held = find(key);
    if (held == nullptr || held->settle_sent) continue;
    if (held->settle_at > now) {
      later_ones.push_back(key);
      continue;
    }
    held->settle_sent = true;
    keys.push_back(key);
    settlements.push_back(*held->settlement);
  }
  unsent_ = std::move(later_ones);
  if (keys.empty()) return;
  broker_->settle(std::move(settlements), later([keys](Post& post, const Result<std::vector<Status>>& statuses) {
                    post.take_statuses(keys, statuses);
                  }));
}

void Deliverer::Post::take_statuses(const std::vector<Key>& keys, const Result<std::vector<Status>>& statuses) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    HeldDelivery* const held = find(keys[i]);
    if (held == nullptr) continue;
    if (statuses && i < statuses->size()) {
      take_status(*held, (*statuses)[i]);
    } else {
      take_status(*held, statuses ? Status(Error{ErrorCode::kUnconfirmed, "the broker answered too little"})
                                  : Status(statuses.error()));
    }
  }
}

void Deliverer::Post::take_status(HeldDelivery& held, const Status& status) {
  if (status) {
    reported_ = false;
    return forget(held.key());
  }
  const Error& error = status.error();
  if (error.code == ErrorCode::kLeaseLost || error.code == ErrorCode::kNotFound) return forget(held.key());
  if (error.code == ErrorCode::kInvalidArgument && !held.refused) {
    held.refused = true;
    return settle(held, failed(held, Fault::kFailed, "the broker refused the outcome: " + error.message, {}));
  }
  if (!std::exchange(reported_, true)) report("the broker does not confirm callbacks, trying again: " + error.message);
  held.settle_sent = false;
  held.settle_at = steady_clock::now() + kSettleRetry;
  unsent_.push_back(held.key());
}

void Deliverer::Post::sweep(Moment now) {
  next_sweep_ = now + kSweepPeriod;
  std::vector<HeldDelivery*> all;
  all.reserve(held_.size());
  for (const auto& [key, held] : held_) all.push_back(held.get());
  for (HeldDelivery* held : all) look_after(*held, now);
  // Usually nothing: a place at a host is filled when it becomes free.
  std::set<std::string> keys;
  for (const auto& [key, held] : held_) {
    if (held->state == State::kWaiting) keys.insert(held->url.host_key());
  }
  for (const std::string& key : keys) pump(key, hosts_.at(key, now));
  extend(now);
  if (now >= cancel_at_ && !std::exchange(cancelled_, true)) {
    for (const auto& [key, held] : held_) {
      if (held->state == State::kSending) client_->cancel(held->ticket);
    }
  }
}

// What happens to it because time passes.
void Deliverer::Post::look_after(HeldDelivery& held, Moment now) {
  if (now - held.granted > held.term) return lose(held);
  if (held.state == State::kAccepted && now >= held.deadline) {
    const std::string limit = core::rough_duration(held.lease.job.time_limit);
    settle(held, failed(held, Fault::kTimedOut, "the receiver answered 202 and did not settle within " + limit, {}));
  } else if (held.state == State::kWaiting && now - held.received >= kLongestWait) {
    Host& host = hosts_.at(held.url.host_key(), now);
    std::erase(host.waiting, &held);
    settle(held, Returned{.after = host.line.book(now), .note = held.url.host_key() + " is busy with other callbacks"});
  }
}

void Deliverer::Post::extend(Moment now) {
  std::vector<Key> keys;
  std::vector<LeaseRef> refs;
  for (const auto& [key, held] : held_) {
    if (held->lost || now - held->asked < held->term / 3) continue;
    held->asked = now;
    keys.push_back(key);
    refs.push_back(held->ref());
  }
  if (refs.empty()) return;
  broker_->extend(std::move(refs), later([keys, now](Post& post, const Result<std::vector<Extended>>& answers) {
                    post.take_extensions(keys, now, answers);
                  }));
}

void Deliverer::Post::take_extensions(const std::vector<Key>& keys, Moment asked,
                                      const Result<std::vector<Extended>>& answers) {
  leases_->set_ended_elsewhere(0);
  if (!answers) return;  // Asked again in a third of the lease; when that fails as well, the lease is over.
  for (std::size_t i = 0; i < keys.size() && i < answers->size(); ++i) {
    HeldDelivery* const held = find(keys[i]);
    if (held == nullptr) continue;
    if ((*answers)[i].lost) {
      lose(*held);
      continue;
    }
    held->granted = asked;
    // A request that is under way cannot be taken back. Nobody waits for one that was accepted: the broker removes it.
    if ((*answers)[i].cancel_requested && held->state == State::kAccepted) {
      settle(*held, Returned{.after = {}, .note = "cancelled"});
    }
  }
}

// The receiver has settled it, or it was taken from us.
void Deliverer::Post::lose(HeldDelivery& held) {
  switch (held.state) {
    case State::kSending:
      held.lost = true;
      return;  // Its answer is still good for the log and the host.
    case State::kSettling:
      if (held.settle_sent) return;  // The answer to the settlement decides.
      break;
    case State::kAccepted:
      break;
    case State::kWaiting:
      std::erase(hosts_.at(held.url.host_key(), steady_clock::now()).waiting, &held);
      break;
  }
  forget(held.key());
}

void Deliverer::Post::adjust_credit() {
  const bool has_enough = count(State::kAccepted) >= static_cast<std::size_t>(options_.accepted);
  leases_->set_room(has_enough ? 0 : options_.concurrency);
}

// More than there was room for: as many accepted ones were ended by another process, or by the broker itself. Which of
// them is asked at the next sweep; until then they give no credit.
void Deliverer::Post::look_for_surplus() {
  const std::size_t in_hand = count(State::kWaiting) + count(State::kSending);
  const auto room = static_cast<std::size_t>(options_.concurrency);
  if (in_hand <= room || count(State::kAccepted) == 0) return;
  leases_->set_ended_elsewhere(static_cast<int>(in_hand - room));
  for (const auto& [key, held] : held_) {
    if (held->state == State::kAccepted) held->asked = {};
  }
}

void Deliverer::Post::give_back_waiting() {
  for (const auto& [key, held] : held_) {
    if (held->state != State::kWaiting) continue;
    std::erase(hosts_.at(held->url.host_key(), steady_clock::now()).waiting, held.get());
    settle(*held, Returned{.after = {}, .note = "the server is stopping"});
  }
  send_settlements();
  leases_->close();
}

void Deliverer::Post::finish_until(Moment cancel_at) {
  finishing_ = true;
  cancel_at_ = std::min(cancel_at_, cancel_at);
  give_up_at_ = cancel_at_ + kLastWords;
  next_sweep_ = {};
}

}  // namespace bide::server
