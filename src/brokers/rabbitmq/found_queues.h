// What is found on the server by trying the names it may have, for AMQP cannot list anything.

#pragma once

#include <set>
#include <string>
#include <vector>

#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/examine.h"
#include "brokers/rabbitmq/topology.h"

namespace bide::brokers::rabbitmq {

struct FoundDelayQueue {
  int lap = 0;  // From 1; 0: no lap but the queue of a level ...
  int level = 0;
  int digit = 0;          // ... and a digit.
  QueueSpec spec = {};    // As it is wanted.
  std::string next = {};  // The exchange to which it passes its messages.
  QueueCounts counts = {};

  // Laps come before all levels, high levels before low ones.
  bool comes_before(const FoundDelayQueue& other) const {
    if (lap > 0 || other.lap > 0) return lap > other.lap;
    return level > other.level;
  }
};

// Those that are there, the first on any job's way first.
Result<std::vector<FoundDelayQueue>> find_delay_queues(const Settings& settings, Examiner& examiner);

// The bide queues that anybody has ever announced, read from the notices. None where there are no notices (cancel=no).
Result<std::set<std::string>> announced_queues(const Settings& settings);

}  // namespace bide::brokers::rabbitmq
