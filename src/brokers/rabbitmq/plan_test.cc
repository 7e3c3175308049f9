#include "brokers/rabbitmq/plan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace bide::brokers::rabbitmq {
namespace {

using namespace std::chrono_literals;

std::set<std::string> delay_queues(const Topology& topology) {
  std::set<std::string> names;
  for (const QueueSpec& queue : topology.queues) {
    if (queue.name.find(".delay.") != std::string::npos) names.insert(queue.name);
  }
  return names;
}

std::set<std::tuple<std::string, std::string, std::string>> bindings(const Topology& topology) {
  std::set<std::tuple<std::string, std::string, std::string>> all;
  for (const BindingSpec& each : topology.bindings) all.emplace(each.source, each.destination, each.key);
  return all;
}

template <class Set>
bool includes(const Set& all, const Set& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

TEST(PlanTest, RetriesShareAHandfulOfQueues) {
  Deployment deployment;
  add_waits(deployment, RetryPolicy::steps({10s, 100s, 1h, 2h, 10h}));
  EXPECT_EQ(deployment.delays, (std::vector<Milliseconds>{10s, 100s, 1h, 2h, 10h}));
  EXPECT_EQ(delay_queues(topology_of({}, deployment)).size(), 21u);
}

TEST(PlanTest, APolicyWithoutRetriesNeedsNoDelays) {
  Deployment deployment;
  add_waits(deployment, RetryPolicy::none());
  EXPECT_TRUE(deployment.delays.empty());
  EXPECT_TRUE(delay_queues(topology_of({}, deployment)).empty());
}

TEST(PlanTest, WhereNobodyDeclaresEveryShorterDelayIsPlannedToo) {
  Settings settings;
  Deployment deployment;
  deployment.delays = {1h};
  const std::size_t exact = delay_queues(topology_of(settings, deployment)).size();
  settings.declare = false;
  EXPECT_GT(delay_queues(topology_of(settings, deployment)).size(), exact);
}

RC_GTEST_PROP(PlanTest, EveryDelayUpToTheLongestFindsItsWay, ()) {
  Settings settings;
  settings.delay.radix = *rc::gen::element(16, 4, 64, 256);
  settings.delay.unit = Milliseconds(*rc::gen::element(1, 16, 100, 4096));
  settings.delay.digits = *rc::gen::element(0, 1, 3);
  const std::int64_t most = *rc::gen::element<std::int64_t>(2'000, 100'000, 3'600'000, 2 * kDelayLap.count());
  Deployment deployment;
  deployment.every_delay_up_to = Milliseconds(*rc::gen::inRange<std::int64_t>(1, most));
  const Milliseconds delay(*rc::gen::inRange<std::int64_t>(1, deployment.every_delay_up_to.count() + 1));
  const Topology all = topology_of(settings, deployment);
  const Topology one = for_path(settings, delay_path(settings.delay, delay));
  RC_ASSERT(includes(delay_queues(all), delay_queues(one)));
  RC_ASSERT(includes(bindings(all), bindings(one)));
}

}  // namespace
}  // namespace bide::brokers::rabbitmq
