// Rules of queues: what runs at once, what starts in a time, the same of each group, turns, ageing, and what a queue takes. And
// subscriptions that take some kinds only.

#include "conformance/broker_conformance.h"

#include <algorithm>
#include <map>

namespace bide::conformance {

namespace {

Job grouped(const std::string& group, const std::string& kind = "work") {
  Job job;
  job.kind = kind;
  job.group = group;
  return job;
}

std::vector<Job> many(int count, const Job& job) { return std::vector<Job>(static_cast<std::size_t>(count), job); }

std::map<std::string, std::size_t> by_group(const std::vector<Arrival>& arrivals, std::size_t first = 0) {
  std::map<std::string, std::size_t> counts;
  for (std::size_t i = first; i < arrivals.size(); ++i) ++counts[arrivals[i].lease.job.group];
  return counts;
}

}  // namespace

TEST_P(BrokerConformance, RulesArePutListedChangedAndRemoved) {
  BIDE_NEEDS(queue_rules);
  const QueueRules first{.queue = "mail",
                         .at_once = 50,
                         .rate = {.count = 100, .period = Milliseconds(60'000), .burst = 7},
                         .group_at_once = 3,
                         .group_rate = {.count = 10},
                         .fair = true,
                         .weights = {{"tenant:42", 5}, {"a group with spaces", 2}},
                         .ageing = Milliseconds(90'000),
                         .most_jobs = 1'000'000,
                         .most_bytes = 1ull << 40,
                         .oldest = Milliseconds(3'600'000)};
  const QueueRules second{.queue = "calls", .at_once = 1};
  ASSERT_TRUE(succeeded(put_rules(first)));
  ASSERT_TRUE(succeeded(put_rules(second)));
  EXPECT_EQ(rules(), (std::vector{second, first}));
  restart(Restart::kClean);
  EXPECT_EQ(rules(), (std::vector{second, first}));
  restart(Restart::kCrash);
  EXPECT_EQ(rules(), (std::vector{second, first}));
  const QueueRules changed{.queue = "mail", .fair = true};
  ASSERT_TRUE(succeeded(put_rules(changed)));
  ASSERT_TRUE(succeeded(put_rules({.queue = "calls"})));
  EXPECT_EQ(rules(), std::vector{changed});
  EXPECT_TRUE(succeeded(put_rules({.queue = "never-had-any"})));
}

TEST_P(BrokerConformance, RulesThatAreNotRightAreRefusedByTheNameOfTheField) {
  BIDE_NEEDS(queue_rules);
  const auto message = [this](const QueueRules& wrong) {
    const Status status = put_rules(wrong);
    EXPECT_TRUE(refused(status, ErrorCode::kInvalidArgument));
    return status ? std::string() : status.error().message;
  };
  EXPECT_NE(message({.queue = "no name"}).find("queue"), std::string::npos);
  EXPECT_NE(message({.queue = "q", .rate = {.count = 1, .burst = 0}}).find("rate.burst"), std::string::npos);
  EXPECT_NE(message({.queue = "q", .group_rate = {.count = 1, .period = Milliseconds(0)}}).find("group_rate.period"), std::string::npos);
  EXPECT_NE(message({.queue = "q", .fair = true, .weights = {{"g", 0}}}).find("weight"), std::string::npos);
  EXPECT_NE(message({.queue = "q", .ageing = Milliseconds(-1)}).find("ageing"), std::string::npos);
  EXPECT_TRUE(rules().empty());
}

TEST_P(BrokerConformance, NoMoreJobsOfAQueueRunAtOnceThanItsRulesSay) {
  BIDE_NEEDS(queue_rules);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .at_once = 3})));
  const std::vector<JobId> ids = enqueue_many(8);
  Consumer one = subscribe({.credit = 4});
  Consumer other = subscribe({.credit = 4});
  ASSERT_TRUE(eventually([&] { return one.leases().count() + other.leases().count() == 3; }));
  barrier();
  EXPECT_EQ(one.leases().count() + other.leases().count(), 3u);
  if (can().inspect) {
    EXPECT_EQ(explain(ids.back()), "at_once");
  }
  Consumer& busy = one.leases().count() > 0 ? one : other;
  ASSERT_TRUE(succeeded(settle_one(busy.leases().take())));
  ASSERT_TRUE(eventually([&] { return one.leases().count() + other.leases().count() == 4; }));
  barrier();
  EXPECT_EQ(one.leases().count() + other.leases().count(), 4u);
}

TEST_P(BrokerConformance, ALimitThatIsRaisedOrRemovedLetsMoreJobsRunAtOnce) {
  BIDE_NEEDS(queue_rules);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .at_once = 1})));
  enqueue_many(5);
  Consumer consumer = subscribe();
  ASSERT_TRUE(consumer.leases().wait_for(1));
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .at_once = 3})));
  ASSERT_TRUE(consumer.leases().wait_for(3));
  barrier();
  EXPECT_EQ(consumer.leases().count(), 3u);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default"})));
  EXPECT_TRUE(consumer.leases().wait_for(5));
}

TEST_P(BrokerConformance, JobsOfOtherProcessesCountAfterARestartAsLongAsTheirLeasesLive) {
  BIDE_NEEDS(queue_rules);
  BIDE_NEEDS(lasting_leases);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .at_once = 2, .group_at_once = 1})));
  enqueue_all({grouped("a"), grouped("a"), grouped("b"), grouped("b")});
  std::vector<Lease> leases;
  {
    Consumer consumer = subscribe({.credit = 10, .lease = beats(60), .outlives_process = true});
    leases = consumer.leases().take(2);
  }
  restart(Restart::kClean);
  Consumer consumer = subscribe();
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
  ASSERT_TRUE(succeeded(settle_one(leases[1])));
  EXPECT_EQ(consumer.leases().take().job.group, leases[1].job.group);
}

TEST_P(BrokerConformance, NoMoreJobsStartInATimeThanTheRateSays) {
  BIDE_NEEDS(queue_rules);
  const Milliseconds period = beats(4);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .rate = {.count = 2, .period = period, .burst = 3}})));
  const std::vector<JobId> ids = enqueue_many(40);
  const Time begin = now();
  Consumer consumer = subscribe();
  ASSERT_TRUE(consumer.leases().wait_for(3));
  if (can().inspect) {
    EXPECT_EQ(explain(ids.back()), "rate");
  }
  for (int i = 0; i < 6; ++i) {
    advance(beats(2));
    barrier();
    const auto most = static_cast<std::size_t>(3 + 2 * ((now() - begin) / period) + 2);
    EXPECT_LE(consumer.leases().count(), most);
  }
  EXPECT_GE(consumer.leases().count(), 3u + 5);
}

TEST_P(BrokerConformance, ARateIsNotForgottenByARestart) {
  BIDE_NEEDS(queue_rules);
  const Milliseconds period = beats(40);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default",
                                   .rate = {.count = 1, .period = period, .burst = 2},
                                   .group_rate = {.count = 1, .period = period}})));
  enqueue_all({grouped("a"), grouped("b"), grouped("c")});
  {
    Consumer consumer = subscribe({.outlives_process = can().lasting_leases});
    ASSERT_TRUE(consumer.leases().wait_for(2));
  }
  for (const Restart how : {Restart::kClean, Restart::kCrash}) {
    restart(how);
    Consumer consumer = subscribe();
    barrier();
    EXPECT_EQ(consumer.leases().count(), 0u);
  }
}

TEST_P(BrokerConformance, AStepOfTheWallClockFillsNoBucket) {
  BIDE_NEEDS(queue_rules);
  BIDE_NEEDS_VIRTUAL_TIME();
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .rate = {.count = 1, .period = beats(100)}})));
  enqueue_many(3);
  Consumer consumer = subscribe();
  ASSERT_TRUE(consumer.leases().wait_for(1));
  for (const Milliseconds step : {beats(1000), -beats(3000), beats(2000)}) {
    subject().step_wall_clock(step);
    barrier();
    EXPECT_EQ(consumer.leases().count(), 1u);
  }
  advance(beats(100));
  barrier();
  EXPECT_EQ(consumer.leases().count(), 2u);
}

TEST_P(BrokerConformance, AGroupAtItsLimitHoldsUpNoOtherGroupAndNoJobWithoutOne) {
  BIDE_NEEDS(queue_rules);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .group_at_once = 2})));
  std::vector<Job> jobs = many(20, grouped("busy"));
  jobs.push_back(grouped("quiet"));
  jobs.push_back(make_job("none"));
  jobs.push_back(make_job("none"));
  jobs.push_back(make_job("none"));
  const std::vector<JobId> ids = enqueue_all(jobs);
  Consumer consumer = subscribe();
  ASSERT_TRUE(consumer.leases().wait_for(6));
  barrier();
  auto counts = by_group(consumer.leases().arrivals());
  EXPECT_EQ(counts["busy"], 2u);
  EXPECT_EQ(counts["quiet"], 1u);
  EXPECT_EQ(counts[""], 3u);
  if (can().inspect) {
    EXPECT_EQ(explain(ids[19]), "group_at_once");
  }
  // As they end, the next ones of the group follow, in their order.
  const std::vector<Lease> leases = consumer.leases().take(6);
  for (const Lease& lease : leases) {
    ASSERT_TRUE(succeeded(settle_one(lease)));
  }
  ASSERT_TRUE(consumer.leases().wait_for(8));
  barrier();
  EXPECT_EQ(consumer.leases().count(), 8u);
  EXPECT_EQ(consumer.leases().take(2)[1].job.id, ids[3]);
}

TEST_P(BrokerConformance, AnAttemptThatFailsOrIsLostGivesItsPlaceInTheGroupBack) {
  BIDE_NEEDS(queue_rules);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .group_at_once = 1})));
  Job fails = grouped("g");
  fails.retry = RetryPolicy::none();
  const std::vector<JobId> ids = enqueue_all({fails, grouped("g"), grouped("g"), grouped("g")});
  Consumer consumer = subscribe({.lease = beats(3)});
  ASSERT_TRUE(succeeded(settle_one(consumer.leases().take(), Dead{.error = "no"})));
  const Lease returned = consumer.leases().take();
  EXPECT_EQ(returned.job.id, ids[1]);
  ASSERT_TRUE(succeeded(settle_one(returned, Returned{.after = beats(30)})));
  EXPECT_EQ(consumer.leases().take().job.id, ids[2]);
  barrier();
  EXPECT_EQ(consumer.leases().count(), 3u);
  advance(beats(3) + grace());
  EXPECT_EQ(consumer.leases().take().job.id, ids[3]);
}

TEST_P(BrokerConformance, ARateOfGroupsIsOneForEachOfThem) {
  BIDE_NEEDS(queue_rules);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .group_rate = {.count = 1, .period = beats(10), .burst = 2}})));
  std::vector<Job> jobs = many(10, grouped("a"));
  for (const Job& job : many(10, grouped("b"))) jobs.push_back(job);
  const std::vector<JobId> ids = enqueue_all(jobs);
  Consumer consumer = subscribe();
  ASSERT_TRUE(consumer.leases().wait_for(4));
  barrier();
  auto counts = by_group(consumer.leases().arrivals());
  EXPECT_EQ(counts["a"], 2u);
  EXPECT_EQ(counts["b"], 2u);
  if (can().inspect) {
    EXPECT_EQ(explain(ids.back()), "group_rate");
  }
  advance(beats(10));
  ASSERT_TRUE(consumer.leases().wait_for(6));
  barrier();
  counts = by_group(consumer.leases().arrivals());
  EXPECT_EQ(counts["a"], 3u);
  EXPECT_EQ(counts["b"], 3u);
}

TEST_P(BrokerConformance, WithLimitsOfGroupsAloneJobsGoInTheOrderInWhichTheyAreDue) {
  BIDE_NEEDS(queue_rules);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .group_at_once = 100})));
  std::vector<Job> jobs;
  for (int i = 0; i < 30; ++i) jobs.push_back(i % 4 == 3 ? make_job() : grouped("g" + std::to_string(i % 4)));
  const std::vector<JobId> ids = enqueue_all(jobs);
  Consumer consumer = subscribe();
  ASSERT_TRUE(consumer.leases().wait_for(ids.size()));
  EXPECT_EQ(consumer.leases().ids(), ids);
}

TEST_P(BrokerConformance, OnAFairQueueGroupsTakeTurnsHoweverManyJobsOneOfThemHas) {
  BIDE_NEEDS(queue_rules);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .fair = true})));
  std::vector<Job> jobs = many(100, grouped("large"));
  for (int i = 0; i < 5; ++i) {
    jobs.push_back(grouped("small"));
    jobs.push_back(make_job());
  }
  enqueue_all(jobs);
  Consumer consumer = subscribe({.credit = 1});
  for (int i = 0; i < 15; ++i) {
    ASSERT_TRUE(succeeded(settle_one(consumer.leases().take())));
  }
  auto counts = by_group(consumer.leases().arrivals());
  EXPECT_GE(counts["large"], 5u);
  EXPECT_GE(counts["small"], 4u);
  EXPECT_GE(counts[""], 4u);
}

TEST_P(BrokerConformance, TurnsAreByWeight) {
  BIDE_NEEDS(queue_rules);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .fair = true, .weights = {{"three", 3}}})));
  std::vector<Job> jobs = many(60, grouped("one"));
  for (const Job& job : many(60, grouped("three"))) jobs.push_back(job);
  enqueue_all(jobs);
  Consumer consumer = subscribe({.credit = 40});
  ASSERT_TRUE(consumer.leases().wait_for(40));
  auto counts = by_group(consumer.leases().arrivals());
  EXPECT_NEAR(static_cast<double>(counts["three"]), 30, 2);
  EXPECT_NEAR(static_cast<double>(counts["one"]), 10, 2);
}

TEST_P(BrokerConformance, PriorityComesBeforeTurns) {
  BIDE_NEEDS(queue_rules);
  BIDE_NEEDS(priorities);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .fair = true})));
  std::vector<Job> jobs = {grouped("a"), grouped("b"), grouped("a"), grouped("b")};
  jobs[2].priority = 1;
  jobs[3].priority = 2;
  const std::vector<JobId> ids = enqueue_all(jobs);
  Consumer consumer = subscribe();
  ASSERT_TRUE(consumer.leases().wait_for(4));
  const std::vector<JobId> order = consumer.leases().ids();
  EXPECT_EQ(order[0], ids[3]);
  EXPECT_EQ(order[1], ids[2]);
}

TEST_P(BrokerConformance, RulesThatComeWhileJobsWaitHoldForThemToo) {
  BIDE_NEEDS(queue_rules);
  std::vector<Job> jobs = many(50, grouped("large"));
  for (const Job& job : many(3, grouped("small"))) jobs.push_back(job);
  enqueue_all(jobs);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .group_at_once = 2, .fair = true})));
  Consumer consumer = subscribe();
  ASSERT_TRUE(consumer.leases().wait_for(4));
  barrier();
  auto counts = by_group(consumer.leases().arrivals());
  EXPECT_EQ(counts["large"], 2u);
  EXPECT_EQ(counts["small"], 2u);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default"})));
  EXPECT_TRUE(consumer.leases().wait_for(53));
}

TEST_P(BrokerConformance, WaitingCountsAsPriorityWhereItAges) {
  BIDE_NEEDS(queue_rules);
  BIDE_NEEDS(priorities);
  const Milliseconds each = beats(2);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .ageing = each})));
  Job low = make_job("low");
  low.priority = -1;
  enqueue_one(low);
  Job lowest = make_job("lowest");
  lowest.priority = -100;
  enqueue_one(lowest);
  advance(3 * each);
  for (int i = 0; i < 2; ++i) {
    Job high = make_job("high");
    high.priority = 1;
    enqueue_one(high);
  }
  Consumer consumer = subscribe();
  const std::vector<Lease> leases = consumer.leases().take(4);
  EXPECT_EQ(leases[0].job.kind, "low");
  EXPECT_EQ(leases[1].job.kind, "high");
  EXPECT_EQ(leases[2].job.kind, "high");
  EXPECT_EQ(leases[3].job.kind, "lowest");
}

TEST_P(BrokerConformance, AFullQueueRefusesJobsUntilSomeHaveRun) {
  BIDE_NEEDS(queue_rules);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .most_jobs = 3})));
  Job later = make_job();
  later.delay = beats(100);
  enqueue_all({make_job(), make_job(), later});
  const Result<Enqueued> too_many = try_enqueue(make_job());
  EXPECT_TRUE(refused(too_many, ErrorCode::kOverloaded));
  EXPECT_TRUE(succeeded(try_enqueue(make_job("work", "another"))));
  Consumer consumer = subscribe({.credit = 1});
  const Lease lease = consumer.leases().take();
  EXPECT_TRUE(succeeded(try_enqueue(make_job())));
  // What a running job has to say is not refused.
  EXPECT_TRUE(succeeded(settle_one(lease, Done{}, {make_job(), make_job()})));
}

TEST_P(BrokerConformance, AQueueThatIsTooFarBehindRefusesJobs) {
  BIDE_NEEDS(queue_rules);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .oldest = beats(3)})));
  enqueue_one();
  EXPECT_TRUE(succeeded(try_enqueue(make_job())));
  advance(beats(4));
  EXPECT_TRUE(refused(try_enqueue(make_job()), ErrorCode::kOverloaded));
  Consumer consumer = subscribe();
  ASSERT_TRUE(consumer.leases().wait_for(2));
  EXPECT_TRUE(succeeded(try_enqueue(make_job())));
}

TEST_P(BrokerConformance, JobsAreListedByTheirGroup) {
  BIDE_NEEDS(queue_rules);
  BIDE_NEEDS(inspect);
  const std::vector<JobId> ids = enqueue_all({grouped("a"), grouped("b"), grouped("a"), make_job()});
  std::vector<JobId> found = list_ids({.group = "a"});
  std::vector<JobId> wanted = {ids[0], ids[2]};
  std::sort(found.begin(), found.end());
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(find(ids[1]).job.group, "b");
  EXPECT_TRUE(list_ids({.group = "nobody"}).empty());
  EXPECT_TRUE(audit().ok());
}

TEST_P(BrokerConformance, ASubscriptionIsHandedTheKindsThatItTakesAndNoOthers) {
  BIDE_NEEDS(kinds);
  std::vector<Job> jobs;
  for (int i = 0; i < 300; ++i) jobs.push_back(make_job("other"));
  jobs.push_back(make_job("mail.send"));
  jobs.push_back(make_job("resize"));
  jobs.push_back(make_job("mail.bounce.hard"));
  const std::vector<JobId> ids = enqueue_all(jobs);
  Consumer consumer = subscribe({.kinds = {"mail.#", "resize"}, .credit = 1000});
  ASSERT_TRUE(consumer.leases().wait_for(3));
  EXPECT_EQ(consumer.leases().ids(), (std::vector<JobId>{ids[300], ids[301], ids[302]}));
  const JobId later = enqueue_one(make_job("resize"));
  enqueue_one(make_job("resize-not"));
  consumer.leases().take(3);
  EXPECT_EQ(consumer.leases().take().job.id, later);
  barrier();
  EXPECT_EQ(consumer.leases().count(), 4u);
  if (can().inspect) {
    EXPECT_EQ(explain(ids[0]), "no_worker");
  }
  Consumer all = subscribe({.credit = 1000});
  ASSERT_TRUE(all.leases().wait_for(301));
  barrier();
  EXPECT_EQ(all.leases().count(), 301u);
}

TEST_P(BrokerConformance, SubscriptionsOfDifferentKindsShareAQueueAndKeepTheOrderOfEach) {
  BIDE_NEEDS(kinds);
  std::vector<Job> jobs;
  for (int i = 0; i < 20; ++i) jobs.push_back(make_job(i % 2 == 0 ? "even" : "odd"));
  const std::vector<JobId> ids = enqueue_all(jobs);
  Consumer even = subscribe({.kinds = {"even"}});
  Consumer odd = subscribe({.kinds = {"odd"}, .credit = 3});
  ASSERT_TRUE(even.leases().wait_for(10));
  ASSERT_TRUE(odd.leases().wait_for(3));
  barrier();
  EXPECT_EQ(odd.leases().count(), 3u);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(even.leases().ids()[i], ids[2 * i]);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(odd.leases().ids()[i], ids[2 * i + 1]);
}

TEST_P(BrokerConformance, LimitsOfGroupsHoldForSubscriptionsOfKindsToo) {
  BIDE_NEEDS(kinds);
  BIDE_NEEDS(queue_rules);
  ASSERT_TRUE(succeeded(put_rules({.queue = "default", .group_at_once = 1, .fair = true})));
  enqueue_all({grouped("a", "x"), grouped("a", "y"), grouped("b", "y"), grouped("b", "x")});
  Consumer x = subscribe({.kinds = {"x"}});
  Consumer y = subscribe({.kinds = {"y"}});
  ASSERT_TRUE(eventually([&] { return x.leases().count() + y.leases().count() == 2; }));
  barrier();
  EXPECT_EQ(x.leases().count() + y.leases().count(), 2u);
  Consumer& one = x.leases().count() > 0 ? x : y;
  const Lease lease = one.leases().take();
  ASSERT_TRUE(succeeded(settle_one(lease)));
  ASSERT_TRUE(eventually([&] { return x.leases().count() + y.leases().count() == 3; }));
}

}  // namespace bide::conformance
