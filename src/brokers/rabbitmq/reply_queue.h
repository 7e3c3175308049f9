// ReplyQueue: the one queue of a connection in which replies to its requests arrive. Exclusive, not durable, consumed
// without acknowledgements: it goes with the connection, and so does what nobody waits for any more.
//
// It keeps its name when the connection is made again, so that replies to what was asked before still find it. It belongs to
// the thread of its connection; name() may be asked by any.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "bide/result.h"
#include "brokers/rabbitmq/amqp_message.h"
#include "brokers/rabbitmq/connection.h"

namespace bide::brokers::rabbitmq {

class ReplyQueue {
 public:
  using Steady = std::chrono::steady_clock::time_point;
  // A reply: its correlation id says to what. Runs on the thread of the connection; must not block.
  using Sink = std::function<void(AmqpMessage reply)>;

  ReplyQueue(std::string name, Sink sink) : name_(std::move(name)), sink_(std::move(sink)) {}

  const std::string& name() const { return name_; }

  // Declares it and consumes from it, unless that is done. `channel` is used for nothing else.
  //
  // kBusy: the server does not know yet that the connection before is gone. kUnavailable: the connection is gone.
  Status open(Connection& connection, ChannelNumber channel);
  // The connection is a new one.
  void reconnected() { channel_open_ = consuming_ = false; }
  // When it is to be opened again though nobody has just asked; max(): not at all.
  Steady next_open() const { return wanted_ && !consuming_ ? next_try_ : Steady::max(); }

  // True: it was about this queue.
  bool take(Event& event);

 private:
  const std::string name_;
  const Sink sink_;
  ChannelNumber channel_ = 0;
  bool wanted_ = false;  // Has been opened before.
  bool channel_open_ = false;
  bool consuming_ = false;
  std::uint64_t consumers_ = 0;  // Tags are never used again.
  Steady next_try_ = {};
};

}  // namespace bide::brokers::rabbitmq
