// Deliveries that are not acknowledged yet, the channels they came on, and the leases that some of them have become.
// Used by the sources of Consumer only.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "brokers/rabbitmq/unacked_tags.h"
#include "brokers/rabbitmq/channel_consumers.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/dialect.h"
#include "brokers/rabbitmq/timers.h"
#include "brokers/rabbitmq/unconfirmed_copies.h"
#include "platform/backoff.h"
#include "platform/fatal.h"
#include "platform/keyed_hash.h"

namespace bide::brokers::rabbitmq {

struct Source;
struct Subscriber;

// A delivered job that is not acknowledged yet.
struct JobDelivery {
  std::shared_ptr<Source> source;
  std::uint64_t serial = 0;  // Of the source's channel: another one means that the server has taken it back.
  std::uint64_t tag = 0;
  std::size_t consumer = 0;  // Of the channel's.
  ReceivedJob job;
  Steady arrived = {};
  bool waited = false;    // For a notice about how earlier deliveries ended.
  bool detached = false;  // Acknowledged, and held by a copy that is not due yet: see consumer_holding.cc.

  const JobMessage& message() const { return job.message; }
  JobMessage& message() { return job.message; }
};

// One queue of one subscription: a channel and the consumers on it.
struct Source {
  std::shared_ptr<Subscriber> owner;
  std::string queue;
  int weight = 1;
  ChannelNumber channel = 0;
  bool open = false;    // The channel.
  bool astray = false;  // A message may be out that was never seen, until the channel is closed.
  Steady astray_since = {};
  bool retired = false;  // Another source has taken its place; here is only what was out before.
  ChannelConsumers consumers;
  int starting = 0;    // Consumers of which the server has not said yet that they are there ...
  int cancelling = 0;  // ... or that they are not there any more.
  int extra = 0;    // Lent by queues that have nothing.
  int stalled = 0;  // Deliveries whose copy the server does not take. They use up the prefetch ...
  int room = 0;     // ... so there is room for them beyond the share, and others get past them.
  std::uint64_t serial = 0;
  std::deque<JobDelivery> buffer;
  UnackedTags acks;
  Steady last_ack = {};
  double served = 0;  // By weight: the source with the least is next.
  platform::Backoff backoff;
  Steady next_try = {};
  bool looked_for_lost = false;  // Since the channel was opened.

  // The channel is gone, with everything that was out on it.
  void clear() {
    open = astray = false;
    starting = cancelling = 0;
    consumers.clear();
    buffer.clear();
    acks.clear();
  }
  bool has(const JobDelivery& delivery) const { return open && delivery.serial == serial; }
};

struct Subscriber {
  SubscribeOptions options;
  LeaseSink sink;
  int credit = 0;
  int out = 0;      // Leases unsettled, and deliveries on the way to become one.
  int leased = 0;   // Leases unsettled.
  int stalled = 0;  // Of these, settled by their worker, and the server does not take what is published for that.
  int detached = 0;  // Of these, not out on a channel any more.
  std::optional<std::uint64_t> delivery_limit;  // Takes the place of the credit.
  std::uint64_t delivered = 0;                  // Leases since it began.
  bool ended = false;
  Steady starved_since = {};  // Has had credit to spare since then.
  std::vector<std::shared_ptr<Source>> sources;
  std::vector<Lease> granted;  // In this round.
  // Waits for the first try to consume.
  std::function<void(Status)> started;

  int credit_now() const {
    if (!delivery_limit) return credit;
    const std::uint64_t left = *delivery_limit > delivered ? *delivery_limit - delivered : 0;
    return leased + static_cast<int>(std::min<std::uint64_t>(left, 1'000'000));
  }
  bool wants_more() const { return out - (delivery_limit ? 0 : stalled) < credit_now(); }
  void one_out_less() {
    platform::require(out > leased, "a delivery leaves the count of those that are out once");
    out -= 1;
  }
};

// A lease that is out.
struct HeldLease {
  enum class State : std::uint8_t { kOut, kSettling };
  JobDelivery delivery;
  std::shared_ptr<Subscriber> owner;
  std::uint64_t token = 0;
  Steady lease_until = {};
  Steady limit_until = {};
  State state = State::kOut;
  std::size_t outcome = 0;  // While it is being settled: which kind.
  std::shared_ptr<UnconfirmedCopies::Copy> copy;
  bool holding = false;    // A copy that is to hold it is being published.
  Steady held_since = {};  // By the newest such copy, or by the delivery.
  bool last_chance = false;
  std::vector<std::pair<JobId, std::int64_t>> effects;  // Ids and stamps: the same when it is settled again.
  std::vector<std::function<void(Status)>> waiting;     // For the end of settling.
  std::vector<JobDelivery> duplicates;                  // The same job, delivered a second time.

  Steady until() const { return std::min(lease_until, limit_until); }
};

// The leases of this process, by job, with their deadlines and counts.
class Leases {
 public:
  HeldLease* find(const JobId& id) {
    const auto found = all_.find(id);
    return found == all_.end() ? nullptr : &found->second;
  }
  HeldLease* find(const LeaseRef& lease) {
    HeldLease* const found = find(lease.id);
    return found == nullptr || found->token != lease.token ? nullptr : found;
  }
  bool contains(const JobId& id) const { return all_.contains(id); }
  bool empty() const { return all_.empty(); }
  int last_chances() const { return last_chances_; }

  // Of a delivery that counts as out already.
  HeldLease& add(HeldLease lease) {
    const JobId id = lease.delivery.message().job.id;
    lease.owner->leased += 1;
    lease.owner->delivered += 1;
    platform::require(lease.owner->leased <= lease.owner->out, "a lease counts as out");
    last_chances_ += lease.last_chance ? 1 : 0;
    const auto [entry, is_new] = all_.emplace(id, std::move(lease));
    platform::require(is_new, "a job has one lease at a time");
    watch(id, entry->second);
    return entry->second;
  }
  HeldLease remove(const JobId& id) {
    const auto found = all_.find(id);
    platform::require(found != all_.end(), "a lease that ends is there");
    HeldLease gone = std::move(found->second);
    all_.erase(found);
    platform::require(gone.owner->leased > 0, "a lease ends once");
    gone.owner->leased -= 1;
    gone.owner->one_out_less();
    last_chances_ -= gone.last_chance ? 1 : 0;
    if (gone.delivery.detached) gone.owner->detached -= 1;
    platform::require(gone.owner->detached >= 0, "a lease is detached once");
    return gone;
  }
  // Ids of those for which it holds.
  template <class Predicate>
  std::vector<JobId> which(const Predicate& holds) const {
    std::vector<JobId> ids;
    for (const auto& [id, lease] : all_) {
      if (holds(lease)) ids.push_back(id);
    }
    return ids;
  }
  bool any_settling() const {
    return std::any_of(all_.begin(), all_.end(),
                       [](const auto& entry) { return entry.second.state == HeldLease::State::kSettling; });
  }

  // expired() looks at it when its time is up. Called again after settling has failed.
  void watch(const JobId& id, const HeldLease& lease) { deadlines_.push({lease.until(), id, lease.token}); }
  // Those whose time is up, once; extended ones are looked at again later, those that are being settled are not.
  std::vector<JobId> expired(Steady now) {
    std::vector<JobId> ids;
    while (!deadlines_.empty() && deadlines_.top().when <= now) {
      const Deadline deadline = deadlines_.top();
      deadlines_.pop();
      const HeldLease* const lease = find(LeaseRef{deadline.id, deadline.token});
      if (lease == nullptr) continue;
      if (lease->until() > now) {
        watch(deadline.id, *lease);
      } else if (lease->state == HeldLease::State::kOut) {
        ids.push_back(deadline.id);
      }
    }
    return ids;
  }
  Steady next_deadline() const { return deadlines_.empty() ? Steady::max() : deadlines_.top().when; }

 private:
  struct Deadline {
    Steady when;
    JobId id;
    std::uint64_t token = 0;
    bool operator<(const Deadline& other) const { return when > other.when; }  // The earliest on top.
  };

  platform::KeyedMap<JobId, HeldLease> all_;
  std::priority_queue<Deadline> deadlines_;
  int last_chances_ = 0;
};

}  // namespace bide::brokers::rabbitmq
