#include "brokers/rabbitmq/topology.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

namespace bide::brokers::rabbitmq {
namespace {

const Field* argument(const FieldTable& arguments, std::string_view name) { return find_field(arguments, name); }

const QueueSpec* queue(const Topology& topology, const std::string& name) {
  const auto found = std::find_if(topology.queues.begin(), topology.queues.end(),
                                  [&](const QueueSpec& spec) { return spec.name == name; });
  return found == topology.queues.end() ? nullptr : &*found;
}

// What the server does with a message: it follows all of its keys at every exchange.
struct Journey {
  std::int64_t waited = 0;
  int visits = 0;
  std::vector<std::string> arrived = {};
  bool lost = false;
};

Journey travel(const Topology& topology, const Route& route) {
  Journey journey;
  std::vector<std::string> keys = {route.key};
  for (const Field& key : route.cc) keys.push_back(*key.text());
  std::optional<std::string> at = route.exchange;
  while (at) {
    std::vector<std::string> exchanges, queues;
    const auto here = std::find_if(topology.exchanges.begin(), topology.exchanges.end(),
                                   [&](const ExchangeSpec& spec) { return spec.name == *at; });
    if (here == topology.exchanges.end()) {
      journey.lost = true;
      return journey;
    }
    for (const BindingSpec& binding : topology.bindings) {
      if (binding.source != *at) continue;
      const bool fits = here->type == "fanout" || std::find(keys.begin(), keys.end(), binding.key) != keys.end();
      if (fits) (binding.to_exchange ? exchanges : queues).push_back(binding.destination);
    }
    if (exchanges.size() + queues.size() != 1) {
      journey.lost = true;
      return journey;
    }
    if (!exchanges.empty()) {
      at = exchanges.front();
      continue;
    }
    const QueueSpec* spec = queue(topology, queues.front());
    const Field* wait = argument(spec->arguments, "x-message-ttl");
    if (wait == nullptr) {
      journey.arrived.push_back(spec->name);
      return journey;
    }
    journey.waited += *wait->number();
    journey.visits += 1;
    at = *argument(spec->arguments, "x-dead-letter-exchange")->text();
  }
  return journey;
}

RC_GTEST_PROP(Topology, EveryDelayLeadsToItsDestinationAndNowhereElse, ()) {
  Settings settings;
  settings.delay.radix = *rc::gen::element(16, 4, 64, 256);
  Topology topology = foundation(settings);
  topology.add(ready_queue(settings, "orders"));
  topology.add(ready_queue(settings, "eu.orders"));
  // Several delays share the topology: what one of them needs must not lead another one astray.
  std::vector<Milliseconds> delays;
  for (int i = 0; i < 6; ++i) {
    const int bits = *rc::gen::inRange(0, 42);
    const std::int64_t most = std::min<std::int64_t>(std::int64_t{1} << bits, Milliseconds(Limits::kDelay).count());
    delays.emplace_back(*rc::gen::inRange<std::int64_t>(1, most + 1));
    topology.add(for_path(settings, delay_path(settings.delay, delays.back())));
  }
  const Names names(settings.prefix);
  for (const Milliseconds delay : delays) {
    for (const char* destination : {"orders", "eu.orders"}) {
      const DelayPath path = delay_path(settings.delay, delay);
      const Journey journey = travel(topology, route_of(names, path, names.queue(destination)));
      RC_ASSERT(!journey.lost);
      RC_ASSERT(journey.arrived == std::vector<std::string>{names.queue(destination)});
      RC_ASSERT(journey.waited == delay.count());
    }
  }
}

TEST(Topology, WithoutADelayTheDefaultExchangeIsEnough) {
  const Route route = route_of(Names("p"), delay_path({}, Milliseconds(0)), "p.queue.a");
  EXPECT_EQ(route.exchange, "");
  EXPECT_EQ(route.key, "p.queue.a");
  EXPECT_TRUE(route.cc.empty());
}

TEST(Topology, TheWayOfAMessageIsInItsKeys) {
  const Route route = route_of(Names("p"), delay_path({}, Milliseconds(0x1020)), "p.queue.a");
  EXPECT_EQ(route.exchange, "p.delay.3");
  EXPECT_EQ(route.key, "3>3.1");
  EXPECT_EQ(route.cc, (FieldList{"2>1.2", "0>!", "p.queue.a"}));
}

TEST(Topology, WaitingQueuesLoseNothingOnTheWay) {
  const Topology topology = delay_hop(Settings{}, {3, 3, 1});
  const QueueSpec* waiting = queue(topology, "bide.delay.3.1");
  ASSERT_NE(waiting, nullptr);
  EXPECT_EQ(*argument(waiting->arguments, "x-queue-type"), Field("quorum"));
  EXPECT_EQ(*argument(waiting->arguments, "x-message-ttl"), Field(4096));
  EXPECT_EQ(*argument(waiting->arguments, "x-dead-letter-exchange"), Field("bide.delay.2"));
  EXPECT_EQ(*argument(waiting->arguments, "x-dead-letter-strategy"), Field("at-least-once"));
  EXPECT_EQ(*argument(waiting->arguments, "x-overflow"), Field("reject-publish"));
  EXPECT_EQ(argument(waiting->arguments, "x-expires"), nullptr) << "it would go away with what is in it";
}

TEST(Topology, EveryExchangeOnTheWayHasAPlaceForWhatHasNoWay) {
  Topology topology = for_path(Settings{}, delay_path({}, 2 * kDelayLap + Milliseconds(0x1020)));
  for (const ExchangeSpec& exchange : topology.exchanges) {
    ASSERT_NE(argument(exchange.arguments, "alternate-exchange"), nullptr) << exchange.name;
    EXPECT_EQ(*argument(exchange.arguments, "alternate-exchange"), Field("bide.lost"));
  }
  EXPECT_NE(queue(foundation(Settings{}), "bide.lost"), nullptr);
}

TEST(Topology, ReadyQueuesTakeWhateverIsDue) {
  Settings settings;
  settings.max_length = 500;
  settings.delivery_limit = 7;
  const Topology topology = ready_queue(settings, "images");
  const QueueSpec* ready = queue(topology, "bide.queue.images");
  ASSERT_NE(ready, nullptr);
  EXPECT_EQ(argument(ready->arguments, "x-max-length"), nullptr) << "it would hold up the delays of others";
  EXPECT_EQ(*argument(ready->arguments, "x-overflow"), Field("reject-publish"));
  EXPECT_EQ(*argument(ready->arguments, "x-dead-letter-strategy"), Field("at-least-once"));
  EXPECT_EQ(*argument(ready->arguments, "x-delivery-limit"), Field(7));
  ASSERT_EQ(topology.bindings.size(), 1u);
  EXPECT_EQ(topology.bindings[0].source, "bide.due");
  EXPECT_EQ(topology.bindings[0].key, "bide.queue.images");
}

TEST(Topology, DelayDeadAndLostQueuesAreBoundedAndRefuse) {
  Topology topology = foundation(Settings{});
  topology.add(dead_queue(Settings{}, "images"));
  topology.add(delay_hop(Settings{}, {3, 3, 1}));
  for (const char* name : {"bide.lost", "bide.dead.images", "bide.delay.3.1"}) {
    const QueueSpec* bounded = queue(topology, name);
    ASSERT_NE(bounded, nullptr) << name;
    ASSERT_NE(argument(bounded->arguments, "x-max-length"), nullptr) << name;
    EXPECT_EQ(*argument(bounded->arguments, "x-max-length"), Field(10'000'000)) << name;
    EXPECT_EQ(*argument(bounded->arguments, "x-overflow"), Field("reject-publish")) << name;
  }
}

TEST(Topology, DeadJobsExpireByTheirQueue) {
  Settings settings;
  EXPECT_EQ(argument(dead_queue(settings, "a").queues[0].arguments, "x-message-ttl"), nullptr);
  settings.dead_retention = std::chrono::hours(24);
  EXPECT_EQ(*argument(dead_queue(settings, "a").queues[0].arguments, "x-message-ttl"), Field(86'400'000));
}

TEST(Topology, NothingIsDeclaredThatRabbitmq4Refuses) {
  for (const QueueType type : {QueueType::kQuorum, QueueType::kClassic}) {
    Settings settings;
    settings.queue_type = type;
    Topology all = foundation(settings);
    all.add(ready_queue(settings, "a"));
    all.add(dead_queue(settings, "a"));
    all.add(for_path(settings, delay_path(settings.delay, Limits::kDelay)));
    for (const QueueSpec& spec : all.queues) {
      for (const char* refused : {"x-queue-mode", "x-ha-policy", "x-queue-master-locator", "x-max-in-memory-length",
                                  "x-max-in-memory-bytes", "x-expires"}) {
        EXPECT_EQ(argument(spec.arguments, refused), nullptr) << spec.name;
      }
    }
  }
}

TEST(Topology, ClassicQueuesGetOnlyWhatTheyUnderstand) {
  Settings settings;
  settings.queue_type = QueueType::kClassic;
  for (const Topology& topology :
       {ready_queue(settings, "a"), dead_queue(settings, "a"), delay_hop(settings, {1, 1, 1})}) {
    for (const QueueSpec& spec : topology.queues) {
      EXPECT_EQ(*argument(spec.arguments, "x-queue-type"), Field("classic"));
      EXPECT_EQ(argument(spec.arguments, "x-delivery-limit"), nullptr);
      EXPECT_EQ(argument(spec.arguments, "x-dead-letter-strategy"), nullptr);
    }
  }
}

TEST(Topology, NamesOfTheGreatestLengthFit) {
  const Names names(std::string(64, 'p'));
  const std::string longest(Limits::kNameBytes, 'q');
  EXPECT_LE(names.queue(longest).size(), 255u);
  EXPECT_LE(names.dead(longest).size(), 255u);
  EXPECT_LE(names.visit(longest).size(), 255u);
}

TEST(Topology, StepsOfSeveralQueuesShareTheirDelays) {
  const auto delay_queues = [](const Settings& settings, const std::vector<const char*>& names) {
    Topology topology = foundation(settings);
    for (const char* name : names) topology.add(ready_queue(settings, name));
    const std::size_t without = topology.queues.size();
    for (const std::int64_t seconds : {10, 100, 3600, 7200, 36000}) {
      topology.add(for_path(settings, delay_path(settings.delay, Milliseconds(1000 * seconds))));
    }
    return topology.queues.size() - without;
  };
  Settings settings;
  EXPECT_EQ(delay_queues(settings, {"a"}), 21u);
  EXPECT_EQ(delay_queues(settings, {"a", "b", "c"}), 21u) << "not more for more queues";
  settings.delay.digits = 2;
  EXPECT_LE(delay_queues(settings, {"a", "b", "c"}), 10u);
}

}  // namespace
}  // namespace bide::brokers::rabbitmq
