// Declared: what this process has already declared, so that nothing is declared twice unless it has gone.
//
// A quorum queue that is new is not safe at once: RabbitMQ keeps the list of its Raft members in a file that it writes
// a second later, or when the next one is added (seen with 3.10: a node killed in that second comes back with the queue
// empty, confirmed messages included; VersionFacts::forgets_new_queues). So after new queues another one is made and
// thrown away.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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
// After new quorum queues, on a channel that is open: see above. Does nothing where the server's version needs nothing.
Status harden(Connection& connection, ChannelNumber channel, const Names& names);

class Declared {
 public:
  // `channel` is for declaring only: it is opened and opened again as needed. `created` is told about each queue of
  // ready jobs that was not there before, before it is made; `counted` how many jobs were in it, before anything is put
  // into it.
  Declared(const Settings& settings, ChannelNumber channel, std::function<void(const std::string&)> created = {},
           std::function<void(const std::string&, std::uint64_t)> counted = {})
      : settings_(settings),
        names_(settings.prefix),
        channel_(channel),
        created_(std::move(created)),
        counted_(std::move(counted)) {}

  // kInvalidArgument: it is there with other arguments. kPermissionDenied. kUnavailable: the connection is gone.
  Status foundation(Connection& connection);
  Status ready(Connection& connection, const std::string& queue);
  Status dead(Connection& connection, const std::string& queue);
  Status path(Connection& connection, const DelayPath& path);
  // What another system declares, or a binding to a queue of it. kInvalidArgument: a queue is there whose dead letters
  // would go elsewhere. kNotFound: there is nothing to bind to.
  Status others(Connection& connection, const Topology& topology);

  // Somebody has removed things behind our back.
  void forget();
  // The connection is a new one. What was there before is there: everything is durable, and asking for it would mean
  // to wait for a node that has just died. What belongs to others need not be durable.
  void reconnected() {
    channel_open_ = false;
    others_.clear();
  }
  // By the server. To open one that is open ends the connection.
  void channel_closed(ChannelNumber channel) {
    if (channel == channel_) channel_open_ = false;
  }

 private:
  Status declare_now(Connection& connection, const Topology& topology);
  // Nothing: it is not there.
  Result<std::optional<QueueCounts>> look_at(Connection& connection, const std::string& queue);
  Status open_channel(Connection& connection);

  const Settings& settings_;
  const Names names_;
  const ChannelNumber channel_;
  const std::function<void(const std::string&)> created_;
  const std::function<void(const std::string&, std::uint64_t)> counted_;
  bool channel_open_ = false;
  bool foundation_ = false;
  std::set<std::string, std::less<>> ready_;
  std::set<std::string, std::less<>> dead_;
  std::set<DelayHop> hops_;
  std::set<int> exits_;
  int laps_ = 0;
  std::set<std::string, std::less<>> others_;  // "exchange NAME", "queue NAME", "binding SOURCE DESTINATION KEY".
};

}  // namespace bide::brokers::rabbitmq
