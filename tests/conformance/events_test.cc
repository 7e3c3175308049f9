// Events: each group that is bound to the topic gets the event once, whether it is there or away.

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "bide/events.h"
#include "bide/wait.h"
#include "conformance/broker_conformance.h"

namespace bide::conformance {

namespace {

Status bind_group(Inspector& inspector, Binding binding) {
  return wait<void>([&](auto done) { inspector.bind(std::move(binding), std::move(done)); });
}

std::vector<Result<Published>> publish_all(Broker& broker, std::vector<Job> events) {
  const std::size_t count = events.size();
  auto answer =
      wait<std::vector<Result<Published>>>([&](auto done) { broker.publish(std::move(events), std::move(done)); });
  if (!answer) return std::vector<Result<Published>>(count, answer.error());
  return std::move(*answer);
}

Result<Published> publish_one(Broker& broker, Job event) {
  std::vector<Job> events;
  events.push_back(std::move(event));
  auto results = publish_all(broker, std::move(events));
  return results.size() == 1 ? std::move(results.front()) : Error{ErrorCode::kUnconfirmed, "answered too little"};
}

Job make_event(std::string topic, std::string body = "content") {
  Job event;
  event.kind = std::move(topic);
  event.body = std::move(body);
  return event;
}

std::string event_id_of(const Job& job) {
  for (const auto& [name, value] : job.headers) {
    if (name == kEventIdHeader) return value;
  }
  return {};
}

std::vector<std::string> topics_of(std::vector<Lease> leases) {
  std::vector<std::string> topics;
  for (const Lease& lease : leases) topics.push_back(lease.job.kind);
  std::sort(topics.begin(), topics.end());
  return topics;
}

}  // namespace

TEST_P(BrokerConformance, EveryGroupGetsAnEventOnceWithItsContent) {
  BIDE_NEEDS(events);
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "billing", .patterns = {"order.created"}})));
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "mail", .patterns = {"order.created", "order.*"}})));
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "other", .patterns = {"invoice.#"}})));
  Consumer billing = subscribe_to("billing"), mail = subscribe_to("mail"), other = subscribe_to("other");

  Job event = make_event("order.created", std::string("a\0b", 3));
  event.content_type = "application/json";
  event.headers = {{"trace", "1"}};
  const auto published = publish_one(broker(), event);
  ASSERT_TRUE(succeeded(published));
  EXPECT_GE(published->groups, 1u);
  EXPECT_EQ(published->full, 0u);
  std::set<JobId> ids;
  for (Consumer* const group : {&billing, &mail}) {
    const Lease lease = group->leases().take();
    EXPECT_EQ(lease.job.kind, "order.created");
    EXPECT_EQ(lease.job.body, event.body);
    EXPECT_EQ(lease.job.content_type, "application/json");
    EXPECT_EQ(event_id_of(lease.job), published->id.to_string());
    EXPECT_EQ(std::count(lease.job.headers.begin(), lease.job.headers.end(), event.headers[0]), 1);
    ids.insert(lease.job.id);
    EXPECT_TRUE(succeeded(settle_one(lease)));
  }
  EXPECT_EQ(ids.size(), 2u);
  barrier();
  EXPECT_EQ(billing.leases().count(), 1u);
  EXPECT_EQ(mail.leases().count(), 1u);
  EXPECT_EQ(other.leases().count(), 0u);
}

TEST_P(BrokerConformance, WorkersOfOneGroupShareItsEvents) {
  BIDE_NEEDS(events);
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "shared", .patterns = {"#"}})));
  Consumer one = subscribe_to("shared", 5), two = subscribe_to("shared", 5);
  std::vector<Job> events;
  for (int i = 0; i < 10; ++i) events.push_back(make_event("number", std::to_string(i)));
  for (const auto& each : publish_all(broker(), events)) EXPECT_TRUE(succeeded(each));
  std::set<std::string> bodies;
  for (Consumer* const worker : {&one, &two}) {
    for (const Lease& lease : worker->leases().take(5)) bodies.insert(lease.job.body);
  }
  EXPECT_EQ(bodies.size(), 10u);
}

TEST_P(BrokerConformance, WildcardsStandForWords) {
  BIDE_NEEDS(events);
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "one", .patterns = {"order.*"}})));
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "any", .patterns = {"order.#"}})));
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "end", .patterns = {"#.eu"}})));
  for (const char* topic : {"order", "order.created", "order.created.eu", "orders.created", "eu"}) {
    EXPECT_TRUE(succeeded(publish_one(broker(), make_event(topic)))) << topic;
  }
  using Topics = std::vector<std::string>;
  EXPECT_EQ(topics_of(subscribe_to("one").leases().take(1)), (Topics{"order.created"}));
  EXPECT_EQ(topics_of(subscribe_to("any").leases().take(3)), (Topics{"order", "order.created", "order.created.eu"}));
  EXPECT_EQ(topics_of(subscribe_to("end").leases().take(2)), (Topics{"eu", "order.created.eu"}));
}

TEST_P(BrokerConformance, AGroupKeepsEventsAndItsBindingWhileItIsAwayAndOverRestarts) {
  BIDE_NEEDS(events);
  const Binding binding{.queue = "away", .patterns = {"a.*", "b.#"}};
  ASSERT_TRUE(succeeded(bind_group(inspector(), binding)));
  ASSERT_TRUE(succeeded(publish_one(broker(), make_event("a.one"))));
  restart(Restart::kClean);
  ASSERT_TRUE(succeeded(publish_one(broker(), make_event("a.two"))));
  restart(Restart::kCrash);
  const auto bound = wait<std::vector<Binding>>([&](auto done) { inspector().bindings(std::move(done)); });
  ASSERT_TRUE(succeeded(bound));
  EXPECT_EQ(*bound, std::vector<Binding>{binding});
  ASSERT_TRUE(succeeded(publish_one(broker(), make_event("b"))));
  EXPECT_EQ(topics_of(subscribe_to("away").leases().take(3)), (std::vector<std::string>{"a.one", "a.two", "b"}));
}

TEST_P(BrokerConformance, AnEventWithoutAGroupIsAcceptedAndSaysSo) {
  BIDE_NEEDS(events);
  const auto published = publish_one(broker(), make_event("nobody.listens"));
  ASSERT_TRUE(succeeded(published));
  EXPECT_EQ(published->groups, 0u);
  EXPECT_FALSE(published->id.is_nil());
}

TEST_P(BrokerConformance, PublishingAnEventAgainUnderItsIdIsHarmless) {
  BIDE_NEEDS(events);
  BIDE_NEEDS(idempotent_ids);
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "first", .patterns = {"#"}})));
  Job event = make_event("again");
  event.id = make_id();
  ASSERT_TRUE(succeeded(publish_one(broker(), event)));
  ASSERT_TRUE(succeeded(settle_one(lease_one("first"))));
  // A group that was bound meanwhile gets it from the second call.
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "second", .patterns = {"#"}})));
  const auto again = publish_one(broker(), event);
  ASSERT_TRUE(succeeded(again));
  EXPECT_EQ(again->id, event.id);
  EXPECT_EQ(again->groups, 2u);
  Consumer first = subscribe_to("first"), second = subscribe_to("second");
  second.leases().take();
  barrier();
  EXPECT_EQ(first.leases().count(), 0u);
  EXPECT_EQ(second.leases().count(), 1u);
}

TEST_P(BrokerConformance, AQueueThatIsUnboundKeepsWhatItHasAndGetsNoMore) {
  BIDE_NEEDS(events);
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "group", .patterns = {"a", "b"}})));
  ASSERT_TRUE(succeeded(publish_one(broker(), make_event("a"))));
  // Bound again, it gets what it is bound to now.
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "group", .patterns = {"b"}})));
  EXPECT_EQ(publish_one(broker(), make_event("a"))->groups, 0u);
  EXPECT_EQ(publish_one(broker(), make_event("b"))->groups, 1u);
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "group"})));
  EXPECT_EQ(publish_one(broker(), make_event("b"))->groups, 0u);
  const auto bound = wait<std::vector<Binding>>([&](auto done) { inspector().bindings(std::move(done)); });
  ASSERT_TRUE(succeeded(bound));
  EXPECT_TRUE(bound->empty());
  Consumer consumer = subscribe_to("group");
  EXPECT_EQ(topics_of(consumer.leases().take(2)), (std::vector<std::string>{"a", "b"}));
  barrier();
  EXPECT_EQ(consumer.leases().count(), 2u);
}

TEST_P(BrokerConformance, WhatIsNoEventOrNoBindingIsRefusedAlone) {
  BIDE_NEEDS(events);
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "group", .patterns = {"#"}})));
  Job keyed = make_event("a.b");
  keyed.unique_key = "k";
  const auto results = publish_all(broker(), {make_event("a..b"), make_event("good"), keyed, make_event("")});
  ASSERT_EQ(results.size(), 4u);
  EXPECT_TRUE(refused(results[0], ErrorCode::kInvalidArgument));
  EXPECT_TRUE(succeeded(results[1]));
  EXPECT_TRUE(refused(results[2], ErrorCode::kInvalidArgument));
  EXPECT_TRUE(refused(results[3], ErrorCode::kInvalidArgument));
  EXPECT_EQ(topics_of(subscribe_to("group").leases().take(1)), std::vector<std::string>{"good"});
  EXPECT_TRUE(refused(bind_group(inspector(), {.queue = "bad queue", .patterns = {"a"}}), ErrorCode::kInvalidArgument));
  EXPECT_TRUE(refused(bind_group(inspector(), {.queue = "group", .patterns = {"a", "b*"}}), ErrorCode::kInvalidArgument));
}

TEST_P(BrokerConformance, AnEventIsRetriedAndDiesInOneGroupWithoutTheOthers) {
  BIDE_NEEDS(events);
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "well", .patterns = {"#"}})));
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "ill", .patterns = {"#"}})));
  ASSERT_TRUE(succeeded(publish_one(broker(), make_event("news"))));
  const Lease ill = lease_one("ill");
  ASSERT_TRUE(succeeded(settle_one(ill, Dead{.reason = DeadReason::kRejected, .fault = Fault::kFailed, .error = "no"})));
  const Lease well = lease_one("well");
  EXPECT_NE(well.job.id, ill.job.id);
  EXPECT_TRUE(succeeded(settle_one(well)));
  if (can().dead_set) {
    EXPECT_EQ(list_ids({.states = {JobState::kDead}}), std::vector<JobId>{ill.job.id});
  }
}

// Each event goes to all of the groups that are bound at its moment: what the answer says is what arrives.
TEST_P(BrokerConformance, EventsThatArePublishedWhileAGroupIsBoundGoToWhomTheAnswerSays) {
  BIDE_NEEDS(events);
  constexpr int kEvents = 60;
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "always", .patterns = {"#"}})));
  std::atomic<std::uint64_t> in_late = 0;
  std::thread publisher([&] {
    for (int i = 0; i < kEvents; ++i) {
      const auto published = publish_one(broker(), make_event("tick", std::to_string(i)));
      if (published && published->groups == 2) ++in_late;
    }
  });
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(succeeded(bind_group(inspector(), {.queue = "late", .patterns = {"#"}})));
    EXPECT_TRUE(succeeded(bind_group(inspector(), {.queue = "late"})));
  }
  EXPECT_TRUE(succeeded(bind_group(inspector(), {.queue = "late", .patterns = {"#"}})));
  publisher.join();
  ASSERT_TRUE(succeeded(publish_one(broker(), make_event("tick", "last"))));
  Consumer always = subscribe_to("always", 1000), late = subscribe_to("late", 1000);
  std::multiset<std::string> bodies;
  for (const Lease& lease : always.leases().take(kEvents + 1)) bodies.insert(lease.job.body);
  for (int i = 0; i < kEvents; ++i) EXPECT_EQ(bodies.count(std::to_string(i)), 1u) << i;
  if (!can().group_limits) return;  // A broker that cannot count says 1.
  late.leases().take(in_late + 1);
  barrier();
  EXPECT_EQ(late.leases().count(), in_late + 1);
}

TEST_P(BrokerConformance, AFullGroupIsPassedByAndTheAnswerSaysSo) {
  BIDE_NEEDS(group_limits);
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "small", .patterns = {"#"}, .most = 2})));
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "large", .patterns = {"#"}})));
  for (const char* body : {"1", "2"}) EXPECT_EQ(publish_one(broker(), make_event("a", body))->groups, 2u);
  Job third = make_event("a", "3");
  third.id = make_id();
  const auto passed = publish_one(broker(), third);
  ASSERT_TRUE(succeeded(passed));
  EXPECT_EQ(passed->groups, 1u);
  EXPECT_EQ(passed->full, 1u);
  ASSERT_TRUE(succeeded(settle_one(lease_one("small"))));
  // There is room again: whoever publishes it again gives it to the group that has missed it.
  EXPECT_EQ(publish_one(broker(), third)->groups, 2u);
  Consumer large = subscribe_to("large");
  large.leases().take(3);
  barrier();
  EXPECT_EQ(large.leases().count(), 3u);
}

TEST_P(BrokerConformance, WhatAGroupHasNotBegunInTimeIsDeadAsExpired) {
  BIDE_NEEDS(group_limits);
  BIDE_NEEDS(dead_set);
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "brief", .patterns = {"#"}, .keep = beats(2)})));
  ASSERT_TRUE(succeeded(publish_one(broker(), make_event("old"))));
  advance(beats(3));
  ASSERT_TRUE(succeeded(publish_one(broker(), make_event("new"))));
  Consumer consumer = subscribe_to("brief");
  EXPECT_EQ(consumer.leases().take().job.kind, "new");
  ASSERT_TRUE(eventually([&] { return list({.states = {JobState::kDead}}).size() == 1; }));
  const JobInfo dead = list({.states = {JobState::kDead}}).front();
  EXPECT_EQ(dead.job.kind, "old");
  EXPECT_EQ(dead.dead_reason, DeadReason::kExpired);
}

TEST_P(BrokerConformance, AGroupThatNobodyTakesFromGoesWithWhatWaitsInIt) {
  BIDE_NEEDS(group_limits);
  const auto bound = [&] {
    return wait<std::vector<Binding>>([&](auto done) { inspector().bindings(std::move(done)); }).value().size();
  };
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "brief", .patterns = {"#"}, .idle = beats(4)})));
  Consumer consumer = subscribe_to("brief", 1);
  ASSERT_TRUE(succeeded(publish_one(broker(), make_event("a", "1"))));
  ASSERT_TRUE(succeeded(publish_one(broker(), make_event("a", "2"))));
  const Lease lease = consumer.leases().take();
  advance(beats(6));
  EXPECT_EQ(bound(), 1u);  // Somebody is there.
  consumer.unsubscribe();
  (void)settle_one(lease);
  advance(beats(6));
  EXPECT_TRUE(eventually([&] { return bound() == 0; }));
  EXPECT_EQ(publish_one(broker(), make_event("a", "3"))->groups, 0u);
  if (can().inspect) {
    EXPECT_TRUE(eventually([&] { return list({.states = {JobState::kReady, JobState::kScheduled}}).empty(); }));
  }
  // The same at once, for a group that is unbound by hand.
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "again", .patterns = {"#"}, .idle = beats(1000)})));
  ASSERT_TRUE(succeeded(publish_one(broker(), make_event("a", "4"))));
  restart(Restart::kClean);
  ASSERT_TRUE(succeeded(bind_group(inspector(), {.queue = "again"})));
  EXPECT_EQ(bound(), 0u);
  if (can().inspect) {
    EXPECT_TRUE(eventually([&] { return list({.states = {JobState::kReady, JobState::kScheduled}}).empty(); }));
  }
}

}  // namespace bide::conformance
