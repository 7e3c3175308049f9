// A message in the queue of lost ones, described.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bide/result.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/topology.h"

namespace bide::brokers::rabbitmq {

inline constexpr std::string_view kNoWayToGo = "no_way";

struct LostMessage {
  std::string id = {};     // As it is in the message; empty when it has none.
  std::string kind = {};   // Its type; empty when it has none.
  std::string queue = {};  // The bide queue that it belongs to; empty when that cannot be told.
  std::string why = {};    // "no_way", or in the server's words: "delivery_limit", "rejected" ...
  std::uint64_t bytes = 0;
};

// What a message says about itself.
LostMessage lost_message_of(const AmqpMessage& message, const Names& names);
// For people: "job ID of kind mail, on its way to orders".
std::string describe_lost(const AmqpMessage& message, const Names& names);

// The oldest one, which is put back where it was. Empty: there is none. The channel is opened and closed.
Result<std::string> first_lost(Connection& connection, ChannelNumber channel, const Names& names);

}  // namespace bide::brokers::rabbitmq
