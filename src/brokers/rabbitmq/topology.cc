#include "brokers/rabbitmq/topology.h"

#include <algorithm>
#include <cstdint>

namespace bide::brokers::rabbitmq {

namespace {

// Effectively none; a number, because old servers refuse -1 and new ones have a limit of 20 unless told otherwise.
constexpr std::int64_t kNoDeliveryLimit = 1'000'000'000;
constexpr std::int64_t kNoticeSegmentBytes = 1'000'000;
// Of delay, dead and lost queues. Far beyond what a quorum queue is good for: the server's memory is kept, not an order.
constexpr std::int64_t kMostMessages = 10'000'000;

const char* type_name(const Settings& settings) {
  return settings.queue_type == QueueType::kQuorum ? "quorum" : "classic";
}

bool quorum(const Settings& settings) { return settings.queue_type == QueueType::kQuorum; }

ExchangeSpec delay_exchange(const Settings& settings, std::string name, std::string type = "direct") {
  // A message without a way out would block everything behind it: it goes where it can be seen.
  return {std::move(name), std::move(type), {{"alternate-exchange", Names(settings.prefix).lost()}}};
}

// The order of arrival is kept and nothing is lost on the way: with at-least-once a message leaves the queue only when
// the next one has confirmed it. The server obeys that only together with reject-publish.
QueueSpec waiting_queue(const Settings& settings, std::string name, Milliseconds wait, std::string next) {
  QueueSpec queue{std::move(name),
                  {{"x-queue-type", type_name(settings)},
                   {"x-message-ttl", std::int64_t{wait.count()}},
                   {"x-dead-letter-exchange", std::move(next)}}};
  // Classic ones pass messages on without a confirm: what the next queue refused would be gone.
  if (quorum(settings)) {
    queue.arguments.push_back({"x-dead-letter-strategy", "at-least-once"});
    queue.arguments.push_back({"x-overflow", "reject-publish"});
    queue.arguments.push_back({"x-max-length", kMostMessages});
  }
  queue.may_differ = {"x-max-length"};
  return queue;
}

// Messages stay there until somebody takes them out.
QueueSpec kept_queue(const Settings& settings, std::string name) {
  QueueSpec queue{std::move(name),
                  {{"x-queue-type", type_name(settings)},
                   {"x-max-length", kMostMessages},
                   {"x-overflow", "reject-publish"}},
                  {"x-max-length", "x-overflow"}};
  // Being looked at counts as being delivered.
  if (quorum(settings)) queue.arguments.push_back({"x-delivery-limit", kNoDeliveryLimit});
  return queue;
}

template <class Spec>
bool has_name(const std::vector<Spec>& all, const std::string& name) {
  return std::any_of(all.begin(), all.end(), [&](const Spec& spec) { return spec.name == name; });
}

bool same(const BindingSpec& a, const BindingSpec& b) {
  return a.source == b.source && a.destination == b.destination && a.key == b.key && a.to_exchange == b.to_exchange;
}

}  // namespace

bool QueueSpec::may_have_another(const std::string& argument) const {
  if (foreign) return find_field(arguments, argument) == nullptr || !argument.starts_with("x-dead-letter-");
  return std::find(may_differ.begin(), may_differ.end(), argument) != may_differ.end();
}

void Topology::add(const Topology& other) {
  for (const ExchangeSpec& exchange : other.exchanges) {
    if (!has_name(exchanges, exchange.name)) exchanges.push_back(exchange);
  }
  for (const QueueSpec& queue : other.queues) {
    if (!has_name(queues, queue.name)) queues.push_back(queue);
  }
  for (const BindingSpec& binding : other.bindings) {
    if (std::none_of(bindings.begin(), bindings.end(),
                     [&](const BindingSpec& known) { return same(known, binding); })) {
      bindings.push_back(binding);
    }
  }
}

Topology foundation(const Settings& settings) {
  const Names names(settings.prefix);
  Topology topology;
  topology.exchanges = {{names.lost(), "fanout", {}}, delay_exchange(settings, names.due())};
  topology.queues = {kept_queue(settings, names.lost())};
  topology.bindings = {{names.lost(), names.lost(), "", false}};
  if (settings.notices) {
    topology.exchanges.push_back({names.notices(), "fanout", {}});
    const std::int64_t seconds = std::chrono::ceil<std::chrono::seconds>(settings.notice_retention).count();
    // Small segments, because the server forgets whole ones only.
    topology.queues.push_back({names.notices(),
                               {{"x-queue-type", "stream"},
                                {"x-max-age", std::to_string(seconds) + "s"},
                                {"x-stream-max-segment-size-bytes", kNoticeSegmentBytes}}});
    topology.bindings.push_back({names.notices(), names.notices(), "", false});
  }
  return topology;
}

Topology ready_queue(const Settings& settings, std::string_view name) {
  const Names names(settings.prefix);
  QueueSpec queue{names.queue(name), {{"x-queue-type", type_name(settings)}, {"x-overflow", "reject-publish"}}};
  // What reaches the delivery limit, or cannot be put anywhere else, is seen, not dropped.
  queue.arguments.push_back({"x-dead-letter-exchange", names.lost()});
  if (quorum(settings)) {
    queue.arguments.push_back({"x-delivery-limit", std::int64_t{settings.delivery_limit}});
    queue.arguments.push_back({"x-dead-letter-strategy", "at-least-once"});
  }
  queue.may_differ = {"x-max-length"};
  const std::string own_name = queue.name;
  return {{}, {std::move(queue)}, {{names.due(), own_name, own_name, false}}};
}

Topology dead_queue(const Settings& settings, std::string_view name) {
  const Names names(settings.prefix);
  QueueSpec queue = kept_queue(settings, names.dead(name));
  // Of the queue, not of its messages: one that never expires would keep all those behind it.
  if (settings.dead_retention > Milliseconds(0)) {
    queue.arguments.push_back({"x-message-ttl", std::int64_t{settings.dead_retention.count()}});
  }
  queue.may_differ.push_back("x-message-ttl");
  return {{}, {std::move(queue)}, {}};
}

Topology delay_hop(const Settings& settings, const DelayHop& hop) {
  const Names names(settings.prefix);
  const std::string next = hop.level == 0 ? names.due() : names.delay_exchange(hop.level - 1);
  Topology topology;
  topology.exchanges.push_back(delay_exchange(settings, names.delay_exchange(hop.from)));
  if (hop.level > 0) topology.exchanges.push_back(delay_exchange(settings, next));
  topology.queues.push_back(waiting_queue(settings, names.delay_queue(hop.level, hop.digit),
                                          Milliseconds(hop.digit * settings.delay.value(hop.level)), next));
  topology.bindings.push_back(
      {names.delay_exchange(hop.from), names.delay_queue(hop.level, hop.digit), hop_key(hop), false});
  return topology;
}

Topology delay_exit(const Settings& settings, int level) {
  const Names names(settings.prefix);
  return {{delay_exchange(settings, names.delay_exchange(level))},
          {},
          {{names.delay_exchange(level), names.due(), leave_key(level), true}}};
}

Topology delay_lap(const Settings& settings, int number) {
  const Names names(settings.prefix);
  const bool last = number == 1;
  const std::string next = last ? names.delay_exchange(settings.delay.top()) : names.lap(number - 1);
  return {{delay_exchange(settings, names.lap(number), "fanout"),
           delay_exchange(settings, next, last ? "direct" : "fanout")},
          {waiting_queue(settings, names.lap(number), kDelayLap, next)},
          {{names.lap(number), names.lap(number), "", false}}};
}

Topology for_path(const Settings& settings, const DelayPath& path) {
  Topology topology;
  for (int lap = 1; lap <= path.laps; ++lap) topology.add(delay_lap(settings, lap));
  for (const DelayHop& hop : path.hops) topology.add(delay_hop(settings, hop));
  if (path.leaves >= 0) topology.add(delay_exit(settings, path.leaves));
  return topology;
}

Route route_of(const Names& names, const DelayPath& path, const std::string& destination) {
  if (path.total <= Milliseconds(0)) return {"", destination, {}};
  std::vector<std::string> keys;
  for (const DelayHop& hop : path.hops) keys.push_back(hop_key(hop));
  if (path.leaves >= 0) keys.push_back(leave_key(path.leaves));
  keys.push_back(destination);

  Route route;
  route.exchange = path.laps > 0 ? names.lap(path.laps) : names.delay_exchange(path.hops.front().from);
  route.key = std::move(keys.front());
  for (std::size_t i = 1; i < keys.size(); ++i) route.cc.push_back(std::move(keys[i]));
  return route;
}

}  // namespace bide::brokers::rabbitmq
