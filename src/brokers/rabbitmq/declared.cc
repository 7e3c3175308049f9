#include "brokers/rabbitmq/declared.h"

#include <algorithm>
#include <optional>

#include "brokers/rabbitmq/examine.h"
#include "brokers/rabbitmq/version_facts.h"
#include "platform/clock.h"

namespace bide::brokers::rabbitmq {

namespace {

constexpr int kMostDifferences = 16;

// As it is wanted, or as it is there when only what may differ does.
Status declare(Connection& connection, ChannelNumber channel, const QueueSpec& wanted) {
  QueueSpec queue = wanted;
  Error refused;
  for (int i = 0; i < kMostDifferences; ++i) {
    const Result<QueueCounts> declared = connection.declare_queue(channel, queue);
    if (declared) return {};
    refused = declared.error();
    const std::optional<Difference> difference = Difference::parse(refused.message);
    if (!connection.alive() || !difference) return refused;
    if (!wanted.may_have_another(difference->argument) || !take_over(queue.arguments, *difference)) break;
    if (Status opened = connection.open_channel(channel); !opened) return opened;
  }
  if (!wanted.foreign) return refused;
  return Error{refused.code, "queue " + queue.name + " is not as it must be, so that messages could get lost; " +
                                 refused.message + " (declare=no in the URL takes it as it is)"};
}

Status declare(Connection& connection, ChannelNumber channel, const ExchangeSpec& exchange) {
  Status declared = connection.declare_exchange(channel, exchange);
  const bool is_there = !declared && connection.alive() && declared.error().code == ErrorCode::kInvalidArgument;
  return exchange.foreign && is_there ? connection.open_channel(channel) : declared;
}

}  // namespace

Status declare(Connection& connection, ChannelNumber channel, const Topology& topology) {
  for (const ExchangeSpec& exchange : topology.exchanges) {
    if (Status status = declare(connection, channel, exchange); !status) return status;
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

Status Declared::others(Connection& connection, const Topology& topology) {
  if (!settings_.declare) return {};
  Topology missing;
  std::vector<std::string> names;
  const auto is_missing = [&](std::string name) {
    if (others_.contains(name)) return false;
    names.push_back(std::move(name));
    return true;
  };
  for (const ExchangeSpec& each : topology.exchanges) {
    if (is_missing("exchange " + each.name)) missing.exchanges.push_back(each);
  }
  for (const QueueSpec& each : topology.queues) {
    if (is_missing("queue " + each.name)) missing.queues.push_back(each);
  }
  for (const BindingSpec& each : topology.bindings) {
    if (is_missing("binding " + each.source + ' ' + each.destination + ' ' + each.key)) missing.bindings.push_back(each);
  }
  if (names.empty()) return {};
  if (Status opened = open_channel(connection); !opened) return opened;
  if (Status status = declare(connection, channel_, missing); !status) {
    channel_open_ = false;
    return status;
  }
  others_.insert(names.begin(), names.end());
  return {};
}

void Declared::forget() {
  others_.clear();
  foundation_ = false;
  ready_.clear();
  dead_.clear();
  hops_.clear();
  exits_.clear();
  laps_ = 0;
}

}  // namespace bide::brokers::rabbitmq
