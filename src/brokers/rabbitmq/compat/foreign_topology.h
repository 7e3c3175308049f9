// ForeignTopology: makes sure that what another system declares is there, without getting in its way. What is missing
// is declared as that system would; what is there with other arguments stays as it is, unless a message would be lost
// by it.

#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/compat/foreign_system.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/declared.h"
#include "brokers/rabbitmq/publisher.h"

namespace bide::brokers::rabbitmq::compat {

// What the server says when a queue is there with another argument:
//
//   PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'Q' in vhost '/': received '60000' but current is
//   '200'                                                            or: ... the value '200' of type 'signedint'
struct Inequivalent {
  std::string argument = {};
  std::optional<Field> current = {};  // Nothing: the queue does not have it.
};
std::optional<Inequivalent> parse_inequivalent(std::string_view text);

// Of one connection at a time, owned by its thread.
class ForeignTopology {
 public:
  // Uses two channels, from the given one on.
  ForeignTopology(const Settings& settings, ChannelNumber first_channel);

  // kInvalidArgument: a queue is there whose dead letters would go elsewhere, or which is not durable.
  Status ensure(Connection& connection, const Topology& topology);
  // Declares what the message needs, and says how it is published.
  Result<Publication> prepare(Connection& connection, Send send);

  // Somebody has removed things.
  void forget();
  // The connection is a new one.
  void reconnected();
  void channel_closed(ChannelNumber channel);

 private:
  Status open_channel(Connection& connection);
  Status ensure_exchange(Connection& connection, const ExchangeSpec& exchange);
  Status ensure_queue(Connection& connection, QueueSpec queue);

  const Settings settings_;  // Without notices: a foreign job cannot be cancelled.
  const Names names_;
  const ChannelNumber channel_;
  Declared declared_;
  bool channel_open_ = false;
  std::set<std::string> exchanges_;
  std::set<std::string> queues_;
  std::set<std::string> bindings_;
};

// Headers are never split into frames, and those of a message that was delivered may be longer than what can be
// published. The longest are left out then, and named in bide-dropped-headers: a copy without them is better than a
// message that blocks its queue.
void fit_headers(AmqpMessage& message);

// When nothing has to be declared for it.
std::optional<Publication> without_preparation(Send& send);

}  // namespace bide::brokers::rabbitmq::compat
