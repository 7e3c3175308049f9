// Declared: what this connection has already declared, so that nothing is declared twice, and everything again after a
// reconnect.
//
// A quorum queue that is new is not safe at once: RabbitMQ keeps the list of its Raft members in a file that it writes a
// second later, or when the next one is added (seen with 3.10: a node killed in that second comes back with the queue
// empty, confirmed messages included). So after new queues another one is made and thrown away.

#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/connection.h"
#include "brokers/rabbitmq/delay_path.h"
#include "brokers/rabbitmq/topology.h"

namespace bide::brokers::rabbitmq {

// Declares a whole description on a channel, which the server closes when it refuses something.
Status declare(Connection& connection, ChannelNumber channel, const Topology& topology);

class Declared {
 public:
  // `channel` is for declaring only: it is opened and opened again as needed. `created` is told about each queue of
  // ready jobs that was not there before, before it is made.
  Declared(const Settings& settings, ChannelNumber channel, std::function<void(const std::string&)> created = {})
      : settings_(settings), names_(settings.prefix), channel_(channel), created_(std::move(created)) {}

  // kInvalidArgument: it is there with other arguments. kPermissionDenied. kUnavailable: the connection is gone.
  Status foundation(Connection& connection);
  Status ready(Connection& connection, const std::string& queue);
  Status dead(Connection& connection, const std::string& queue);
  Status path(Connection& connection, const DelayPath& path);

  // Somebody has removed things behind our back, or the connection is a new one.
  void forget();

 private:
  Status declare_now(Connection& connection, const Topology& topology);
  Result<bool> is_there(Connection& connection, const std::string& queue);
  Status harden(Connection& connection);
  Status open_channel(Connection& connection);

  const Settings& settings_;
  const Names names_;
  const ChannelNumber channel_;
  const std::function<void(const std::string&)> created_;
  bool channel_open_ = false;
  bool foundation_ = false;
  std::set<std::string, std::less<>> ready_;
  std::set<std::string, std::less<>> dead_;
  std::set<DelayHop> hops_;
  std::set<int> exits_;
  int laps_ = 0;
};

}  // namespace bide::brokers::rabbitmq
