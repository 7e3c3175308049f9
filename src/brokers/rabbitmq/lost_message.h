// A message in the queue of lost ones, described for people.

#pragma once

#include <string>

#include "bide/result.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/topology.h"

namespace bide::brokers::rabbitmq {

// "job ID of kind mail, on its way to P.queue.orders".
std::string describe_lost(const AmqpMessage& message);

// The oldest one, which is put back where it was. Empty: there is none. The channel is opened and closed.
Result<std::string> first_lost(Connection& connection, ChannelNumber channel, const Names& names);

}  // namespace bide::brokers::rabbitmq
