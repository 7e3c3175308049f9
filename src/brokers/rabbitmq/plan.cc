#include "brokers/rabbitmq/plan.h"

#include <algorithm>
#include <limits>
#include <set>

#include "brokers/rabbitmq/declared.h"
#include "brokers/rabbitmq/notices.h"
#include "core/retry_decision.h"
#include "platform/clock.h"

namespace bide::brokers::rabbitmq {

namespace {

constexpr ChannelNumber kDeclaring = 2;

Milliseconds longest_of(const Deployment& deployment) {
  Milliseconds longest = std::max(deployment.every_delay_up_to, core::longest_wait_after_crash(core::kMaxCrashes));
  for (const Milliseconds delay : deployment.delays) longest = std::max(longest, delay);
  return longest;
}

// The hops of every delay up to the longest.
Topology every_path(const Settings& settings, Milliseconds longest) {
  const DelayShape& shape = settings.delay;
  const DelayPath path = delay_path(shape, longest);
  Topology topology;
  for (int lap = 1; lap <= path.laps; ++lap) topology.add(delay_lap(settings, lap));
  const int top = path.laps > 0 ? shape.top() : path.hops.front().level;
  int lowest = 0;  // A coarse unit leaves the lowest digits zero.
  while (lowest < top && shape.unit.count() % shape.value(lowest + 1) == 0) ++lowest;
  for (int level = top; level >= lowest; --level) {
    const bool highest = level == top && path.laps == 0;
    const int digits = highest ? path.hops.front().digit : shape.radix - 1;
    for (int digit = 1; digit <= digits; ++digit) {
      // The first hop starts at its own level, a later one at the level below the hop before it.
      for (int from = level; from <= top; ++from) {
        if (from == top && level != top && path.laps == 0) continue;
        topology.add(delay_hop(settings, {from, level, digit}));
      }
    }
  }
  // After its last hop a message leaves from the level below; after laps alone from the highest.
  for (int level = std::max(0, lowest - 1); level < top; ++level) topology.add(delay_exit(settings, level));
  if (path.laps > 0) topology.add(delay_exit(settings, top));
  return topology;
}

// As the first process that used the queue would have done, so that everybody knows of it.
Status announce(const Settings& settings, Connection& connection, const Plan& plan) {
  if (!settings.notices) return {};
  const Names names(settings.prefix);
  const std::string start = names.queue("");
  for (const PlannedQueue& queue : plan.queues) {
    if (queue.examined.presence != Presence::kMissing || !queue.spec.name.starts_with(start)) continue;
    AmqpMessage message;
    message.body = Notice{.kind = Notice::Kind::kQueue,
                          .name = queue.spec.name.substr(start.size()),
                          .stamp = platform::real_clock().now().wall_us}
                       .to_text();
    if (Status status = connection.publish(kDeclaring, names.notices(), "", message, false); !status) return status;
  }
  // Closing the channel waits until the server has taken what was sent on it.
  return connection.close_channel(kDeclaring);
}

}  // namespace

void add_waits(Deployment& deployment, const RetryPolicy& policy) {
  std::set<Milliseconds> waits;
  for (std::uint64_t n = 0; n + 1 < policy.max_attempts; ++n) {
    waits.insert(core::wait_before_retry(policy, n, 0));
    if (policy.jitter > 0) {
      const Milliseconds longest = core::wait_before_retry(policy, n, std::numeric_limits<std::uint64_t>::max());
      deployment.every_delay_up_to = std::max(deployment.every_delay_up_to, longest);
    }
  }
  deployment.delays.insert(deployment.delays.end(), waits.begin(), waits.end());
}

Topology topology_of(const Settings& settings, const Deployment& deployment) {
  Topology topology = foundation(settings);
  for (const std::string& queue : deployment.queues) {
    topology.add(ready_queue(settings, queue));
    topology.add(dead_queue(settings, queue));
  }
  for (const Milliseconds delay : deployment.delays)
    topology.add(for_path(settings, delay_path(settings.delay, delay)));
  const Milliseconds every = settings.declare ? deployment.every_delay_up_to : longest_of(deployment);
  if (every > Milliseconds(0)) topology.add(every_path(settings, every));
  return topology;
}

std::size_t Plan::missing() const {
  const auto is_missing = [](const auto& each) { return each.examined.presence == Presence::kMissing; };
  return static_cast<std::size_t>(std::count_if(exchanges.begin(), exchanges.end(), is_missing) +
                                  std::count_if(queues.begin(), queues.end(), is_missing));
}

std::size_t Plan::differing() const {
  const auto differs = [](const auto& each) { return each.examined.presence == Presence::kDiffers; };
  return static_cast<std::size_t>(std::count_if(exchanges.begin(), exchanges.end(), differs) +
                                  std::count_if(queues.begin(), queues.end(), differs));
}

Result<Plan> make_plan(Examiner& examiner, const Topology& topology) {
  Plan plan;
  for (const ExchangeSpec& spec : topology.exchanges) {
    Result<Examined> examined = examiner.exchange(spec);
    if (!examined) return examined.error();
    plan.exchanges.push_back({spec, std::move(*examined)});
  }
  for (const QueueSpec& spec : topology.queues) {
    Result<Examined> examined = examiner.queue(spec);
    if (!examined) return examined.error();
    plan.queues.push_back({spec, std::move(*examined)});
  }
  plan.bindings = topology.bindings;
  return plan;
}

Status apply_plan(const Settings& settings, Connection& connection, const Plan& plan) {
  Topology topology;
  for (const PlannedExchange& exchange : plan.exchanges) {
    if (exchange.examined.presence == Presence::kDiffers) {
      return Error{ErrorCode::kInvalidArgument, exchange.examined.words};
    }
    if (exchange.examined.presence == Presence::kMissing) topology.exchanges.push_back(exchange.spec);
  }
  for (const PlannedQueue& queue : plan.queues) {
    if (queue.examined.presence == Presence::kDiffers) return Error{ErrorCode::kInvalidArgument, queue.examined.words};
    if (queue.examined.presence == Presence::kMissing) topology.queues.push_back(queue.spec);
  }
  topology.bindings = plan.bindings;
  if (Status status = connection.open_channel(kDeclaring); !status) return status;
  if (Status status = declare(connection, kDeclaring, topology); !status) return status;
  if (settings.queue_type == QueueType::kQuorum && !topology.queues.empty()) {
    if (Status status = harden(connection, kDeclaring, Names(settings.prefix)); !status) return status;
  }
  return announce(settings, connection, plan);
}

}  // namespace bide::brokers::rabbitmq
