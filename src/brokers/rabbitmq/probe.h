// Probes: messages that find out what cannot be read over AMQP. Each needs a connection of its own, which a server
// under an alarm may stop.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bide/job.h"
#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"

namespace bide::brokers::rabbitmq {

// Publishes to a private queue. Nothing: the server confirmed it. Otherwise why it does not take messages: an alarm
// tells only connections that publish.
Result<std::optional<std::string>> why_blocked(const Settings& settings, Milliseconds patience);

struct DelayProbe {
  std::string queue = {};  // A delay queue that is there, ...
  std::string next = {};   // ... and the exchange to which it passes its messages.
};

// Sends a message with a lifetime of a millisecond through each delay queue and waits for it behind `next`. False: it
// did not come out, so the server does not pass on what is due there. A queue must be empty, or whatever is at its head
// holds the probe back.
//
// A probe that comes too late has nobody waiting for it and ends in the queue of lost messages, as kProbeType.
Result<std::vector<bool>> pass_through(const Settings& settings, const std::vector<DelayProbe>& probes,
                                       Milliseconds patience);

inline constexpr const char* kProbeType = "bide-probe";

}  // namespace bide::brokers::rabbitmq
