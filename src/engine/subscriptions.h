// Subscriptions: who wants jobs from which queues, and how many more each of them may hold.

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bide/broker.h"
#include "engine/queues.h"

namespace bide::engine {

struct SubscribedQueue {
  std::string name = {};
  std::optional<std::uint16_t> queue = {};  // Nothing: it does not exist yet.
  int weight = 1;
  int score = 0;

  bool can_give(const Queues& all, KindFilter& takes) const { return queue && all.can_give(*queue, takes); }
};

struct Subscriber {
  std::vector<SubscribedQueue> queues;
  KindFilter kinds;
  int credit = 0;
  int handlers = 0;         // See SubscribeOptions.
  bool one_by_one = false;  // The next job must not be fetched ahead: no more leases than handlers.
  int unsettled = 0;
  std::optional<std::uint64_t> delivery_limit = {};  // Takes the place of the credit.
  std::uint64_t granted = 0;                         // Since it began.
  std::uint32_t lease_ms = 0;
  std::string worker;
  bool outlives_process = false;
  LeaseSink sink;

  // How many more leases it may have now. The credit may have been lowered below what is out, and the limit below what
  // was granted.
  int room() const {
    if (!delivery_limit) return std::max(0, (one_by_one ? std::min(credit, handlers) : credit) - unsettled);
    constexpr std::uint64_t kMost = 1'000'000;
    return *delivery_limit <= granted ? 0 : static_cast<int>(std::min(*delivery_limit - granted, kMost));
  }

  // The queue to take from next, in proportion to the weights, among those with ready jobs (smooth weighted
  // round-robin: a heavy queue's turns are spread out, not bunched). Null when none has any.
  SubscribedQueue* next_queue(const Queues& all) {
    SubscribedQueue* best = nullptr;
    int total = 0;
    for (SubscribedQueue& candidate : queues) {
      if (!candidate.can_give(all, kinds)) continue;
      candidate.score += candidate.weight;
      total += candidate.weight;
      if (best == nullptr || candidate.score > best->score) best = &candidate;
    }
    if (best != nullptr) best->score -= total;
    return best;
  }

  bool has_work(const Queues& all) {
    return std::any_of(queues.begin(), queues.end(), [&](const auto& share) { return share.can_give(all, kinds); });
  }

  bool takes(std::uint16_t queue) const {
    return std::any_of(queues.begin(), queues.end(), [queue](const auto& q) { return q.queue == queue; });
  }
};

using Subscriptions = std::map<std::uint32_t, Subscriber>;

}  // namespace bide::engine
