// The part of DeliveryLoop that settles, extends leases, and stops.

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/broker_answers.h"
#include "core/duration.h"
#include "server/callbacks/delivery_loop.h"

namespace bide::server {

namespace {

using std::chrono::steady_clock;

constexpr Milliseconds kSweepPeriod{250};
constexpr Milliseconds kLongestQueueing{1'000};  // For its host; then the job is returned.
constexpr Milliseconds kSettleRetry{250};
constexpr Milliseconds kLastSettles{5'000};  // For settlements after everything was cancelled.

}  // namespace

void DeliveryLoop::settle(Delivery& delivery, Outcome outcome) {
  enter(delivery, State::kSettling);
  leases_->remove(delivery.ref());
  delivery.settlement = Settlement{.lease = delivery.ref(), .outcome = std::move(outcome)};
  delivery.settle_sent = false;
  delivery.settle_at = {};
  unsent_.push_back(delivery.key());
}

void DeliveryLoop::send_settlements() {
  if (unsent_.empty()) return;
  const Moment now = steady_clock::now();
  std::vector<Key> keys;
  std::vector<Key> not_yet;
  std::vector<Settlement> settlements;
  for (const Key& key : std::exchange(unsent_, {})) {
    Delivery* const delivery = find(key);
    if (delivery == nullptr || delivery->settle_sent) continue;
    if (delivery->settle_at > now) {
      not_yet.push_back(key);
      continue;
    }
    delivery->settle_sent = true;
    keys.push_back(key);
    settlements.push_back(*delivery->settlement);
  }
  unsent_ = std::move(not_yet);
  if (keys.empty()) return;
  broker_->settle(std::move(settlements),
                  posted([keys](DeliveryLoop& loop, const Result<std::vector<Status>>& statuses) {
                    for (std::size_t i = 0; i < keys.size(); ++i) {
                      if (Delivery* const delivery = loop.find(keys[i])) {
                        loop.on_status(*delivery, core::status_at(statuses, i));
                      }
                    }
                  }));
}

void DeliveryLoop::on_status(Delivery& delivery, const Status& status) {
  if (status) reported_unconfirmed_ = false;
  if (core::ends_lease(status)) return remove(delivery.key());
  const Error& error = status.error();
  if (error.code == ErrorCode::kInvalidArgument && !delivery.refused) {
    delivery.refused = true;
    return settle(delivery, failed(delivery, Fault::kFailed, "the broker refused the outcome: " + error.message, {}));
  }
  if (!std::exchange(reported_unconfirmed_, true))
    report("the broker does not confirm callbacks, trying again: " + error.message);
  delivery.settle_sent = false;
  delivery.settle_at = steady_clock::now() + kSettleRetry;
  unsent_.push_back(delivery.key());
}

void DeliveryLoop::sweep(Moment now) {
  next_sweep_ = now + kSweepPeriod;
  std::vector<Delivery*> all;
  all.reserve(deliveries_.size());
  for (const auto& [key, delivery] : deliveries_) all.push_back(delivery.get());
  for (Delivery* delivery : all) check_deadlines(*delivery, now);
  // Usually nothing: an answer sends the next. A pause ends without one.
  std::set<std::string> keys;
  for (const auto& [key, delivery] : deliveries_) {
    if (delivery->state == State::kWaiting) keys.insert(delivery->url.host_key());
  }
  for (const std::string& key : keys) send_waiting(key, hosts_.at(key, now));
  extend(now);
  if (now >= cancel_at_ && !std::exchange(cancelled_, true)) {
    for (const auto& [key, delivery] : deliveries_) {
      if (delivery->state == State::kSending) client_->cancel(delivery->ticket);
    }
  }
}

void DeliveryLoop::check_deadlines(Delivery& delivery, Moment now) {
  if (now - delivery.extended > delivery.lease_time) return lose(delivery);
  if (delivery.state == State::kAccepted && now >= delivery.deadline) {
    const std::string limit = core::rough_duration(delivery.lease.job.time_limit);
    settle(delivery,
           failed(delivery, Fault::kTimedOut, "the receiver answered 202 and did not settle within " + limit, {}));
  } else if (delivery.state == State::kWaiting && now - delivery.received >= kLongestQueueing) {
    Host& host = hosts_.at(delivery.url.host_key(), now);
    std::erase(host.waiting, &delivery);
    settle(delivery, Returned{.after = host.limiter.next_slot(now),
                              .note = delivery.url.host_key() + " is busy with other callbacks"});
  }
}

void DeliveryLoop::extend(Moment now) {
  std::vector<Key> keys;
  std::vector<LeaseRef> refs;
  for (const auto& [key, delivery] : deliveries_) {
    if (delivery->lost || now - delivery->extend_sent < delivery->lease_time / 3) continue;
    delivery->extend_sent = now;
    keys.push_back(key);
    refs.push_back(delivery->ref());
  }
  if (refs.empty()) return;
  broker_->extend(std::move(refs),
                  posted([keys, now](DeliveryLoop& loop, const Result<std::vector<Extended>>& answers) {
                    loop.on_extended(keys, now, answers);
                  }));
}

void DeliveryLoop::on_extended(const std::vector<Key>& keys, Moment asked,
                               const Result<std::vector<Extended>>& answers) {
  leases_->set_ended_elsewhere(0);
  if (!answers) return;  // Sent again after a third of the lease time.
  for (std::size_t i = 0; i < keys.size() && i < answers->size(); ++i) {
    Delivery* const delivery = find(keys[i]);
    if (delivery == nullptr) continue;
    if ((*answers)[i].lost) {
      lose(*delivery);
      continue;
    }
    delivery->extended = asked;
    // A request under way cannot be cancelled. An accepted one is settled, and the broker removes the job.
    if ((*answers)[i].cancel_requested && delivery->state == State::kAccepted) {
      settle(*delivery, Returned{.after = {}, .note = "cancelled"});
    }
  }
}

void DeliveryLoop::lose(Delivery& delivery) {
  switch (delivery.state) {
    case State::kSending:
      delivery.lost = true;
      return;  // Its answer still counts for the log and the host.
    case State::kSettling:
      if (delivery.settle_sent) return;  // The result of the settlement decides.
      break;
    case State::kAccepted:
      break;
    case State::kWaiting:
      std::erase(hosts_.at(delivery.url.host_key(), steady_clock::now()).waiting, &delivery);
      break;
  }
  remove(delivery.key());
}

// With more deliveries than room, as many accepted ones were ended by another process or by the broker itself. The next
// extend says which; until then they give no credit.
void DeliveryLoop::find_ended_elsewhere() {
  const std::size_t in_hand = count(State::kWaiting) + count(State::kSending);
  const auto room = static_cast<std::size_t>(options_.concurrency);
  if (in_hand <= room || count(State::kAccepted) == 0) return;
  leases_->set_ended_elsewhere(static_cast<int>(in_hand - room));
  for (const auto& [key, delivery] : deliveries_) {
    if (delivery->state == State::kAccepted) delivery->extend_sent = {};
  }
}

void DeliveryLoop::return_waiting() {
  for (const auto& [key, delivery] : deliveries_) {
    if (delivery->state != State::kWaiting) continue;
    std::erase(hosts_.at(delivery->url.host_key(), steady_clock::now()).waiting, delivery.get());
    settle(*delivery, Returned{.after = {}, .note = "the server is stopping"});
  }
  send_settlements();
  leases_->close();
}

void DeliveryLoop::finish_until(Moment cancel_at) {
  finishing_ = true;
  cancel_at_ = std::min(cancel_at_, cancel_at);
  give_up_at_ = cancel_at_ + kLastSettles;
  next_sweep_ = {};
}

}  // namespace bide::server
