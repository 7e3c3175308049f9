#include "brokers/rabbitmq/declared.h"

#include <algorithm>
#include <optional>

#include "brokers/rabbitmq/examine.h"
#include "brokers/rabbitmq/version_facts.h"
#include "platform/clock.h"

namespace bide::brokers::rabbitmq {

namespace {

// As it is wanted, or as it is there when only limits differ.
Status declare(Connection& connection, ChannelNumber channel, QueueSpec queue) {
  while (true) {
    const Result<QueueCounts> declared = connection.declare_queue(channel, queue);
    if (declared) return {};
    const std::optional<Difference> difference = Difference::parse(declared.error().message);
    if (!connection.alive() || !difference) return declared.error();
    const auto found = std::find(queue.may_differ.begin(), queue.may_differ.end(), difference->argument);
    if (found == queue.may_differ.end() || !take_over(queue.arguments, *difference)) return declared.error();
    queue.may_differ.erase(found);
    if (Status opened = connection.open_channel(channel); !opened) return opened;
  }
}

}  // namespace

Status declare(Connection& connection, ChannelNumber channel, const Topology& topology) {
  for (const ExchangeSpec& exchange : topology.exchanges) {
    if (Status status = connection.declare_exchange(channel, exchange); !status) return status;
  }
  for (const QueueSpec& queue : topology.queues) {
    if (Status status = declare(connection, channel, queue); !status) return status;
  }
  for (const BindingSpec& binding : topology.bindings) {
    if (Status status = connection.bind(channel, binding); !status) return status;
  }
  return {};
}

Status harden(Connection& connection, ChannelNumber channel, const Names& names) {
  if (!facts_of(ServerVersion::of(connection.server_properties())).forgets_new_queues) return {};
  const std::string name = names.prefix() + ".new." + std::to_string(platform::real_clock().now().wall_us);
  // Should it be left behind, it goes by itself.
  const QueueSpec passing{name, {{"x-queue-type", "quorum"}, {"x-expires", 60'000}}};
  if (const auto made = connection.declare_queue(channel, passing); !made) return made.error();
  return connection.delete_queue(channel, name, false, false);
}

Status Declared::open_channel(Connection& connection) {
  if (channel_open_) return {};
  Status status = connection.open_channel(channel_);
  channel_open_ = status.has_value();
  return status;
}

Result<std::optional<QueueCounts>> Declared::look_at(Connection& connection, const std::string& queue) {
  if (Status status = open_channel(connection); !status) return status.error();
  const Result<QueueCounts> there = connection.look_at_queue(channel_, queue);
  if (there) return std::optional(*there);
  channel_open_ = false;
  if (connection.alive() && there.error().code == ErrorCode::kNotFound) return std::optional<QueueCounts>();
  return there.error();
}

Status Declared::declare_now(Connection& connection, const Topology& topology) {
  if (!settings_.declare) return {};
  bool is_new = false;
  for (const QueueSpec& queue : topology.queues) {
    const Result<std::optional<QueueCounts>> there = look_at(connection, queue.name);
    if (!there) return there.error();
    is_new = is_new || !there->has_value();
  }
  if (Status status = open_channel(connection); !status) return status;
  Status status = declare(connection, channel_, topology);
  if (status && is_new && settings_.queue_type == QueueType::kQuorum) status = harden(connection, channel_, names_);
  if (!status) channel_open_ = false;
  return status;
}

Status Declared::foundation(Connection& connection) {
  if (foundation_) return {};
  Status status = declare_now(connection, rabbitmq::foundation(settings_));
  foundation_ = status.has_value();
  return status;
}

Status Declared::ready(Connection& connection, const std::string& queue) {
  if (ready_.contains(queue)) return {};
  if (created_ && settings_.declare) {
    const Result<std::optional<QueueCounts>> there = look_at(connection, names_.queue(queue));
    if (!there) return there.error();
    if (!there->has_value()) created_(queue);
    if (counted_) counted_(queue, there->value_or(QueueCounts{}).messages);
  }
  Status status = declare_now(connection, ready_queue(settings_, queue));
  if (status) ready_.insert(queue);
  return status;
}

Status Declared::dead(Connection& connection, const std::string& queue) {
  if (dead_.contains(queue)) return {};
  Status status = declare_now(connection, dead_queue(settings_, queue));
  if (status) dead_.insert(queue);
  return status;
}

Status Declared::path(Connection& connection, const DelayPath& path) {
  Topology missing;
  for (int lap = laps_ + 1; lap <= path.laps; ++lap) missing.add(delay_lap(settings_, lap));
  for (const DelayHop& hop : path.hops) {
    if (!hops_.contains(hop)) missing.add(delay_hop(settings_, hop));
  }
  if (path.leaves >= 0 && !exits_.contains(path.leaves)) missing.add(delay_exit(settings_, path.leaves));
  if (missing.exchanges.empty()) return {};
  if (Status status = declare_now(connection, missing); !status) return status;
  laps_ = std::max(laps_, path.laps);
  hops_.insert(path.hops.begin(), path.hops.end());
  if (path.leaves >= 0) exits_.insert(path.leaves);
  return {};
}

void Declared::forget() {
  foundation_ = false;
  ready_.clear();
  dead_.clear();
  hops_.clear();
  exits_.clear();
  laps_ = 0;
}

}  // namespace bide::brokers::rabbitmq
