// Rules of queues, and that they outlive the process and every step of the clock.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/queue_rules.h"
#include "support/ledger_fixture.h"

namespace bide::engine {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using support::Survival;

class LedgerRules : public LedgerFixture {
 protected:
  void SetUp() override { open(); }

  void open(std::uint64_t snapshot_bytes = EngineOptions().snapshot_bytes) {
    EngineOptions options;
    options.segment_bytes = 32 << 10;
    options.snapshot_bytes = snapshot_bytes;
    open_ledger(options);
    subscribe({.queues = {{"mail"}, {"calls"}}, .credit = 1000, .outlives_process = true});
  }
  void subscribe(SubscribeOptions options) {
    ledger_->subscribe(++last_subscription_, options, [](const std::vector<Lease>&) {});
  }
  void reopen(Survival unsynced = Survival::kEverything) {
    die(unsynced);
    open();
  }
  void put(const QueueRules& rules) {
    ASSERT_TRUE(ledger_->begin());
    const Status status = ledger_->put_rules(rules);
    ASSERT_TRUE(status) << status.error().message;
    ASSERT_TRUE(ledger_->commit());
  }
  std::vector<Result<Enqueued>> try_enqueue(int count, const Job& like) {
    EXPECT_TRUE(ledger_->begin());
    auto results = ledger_->enqueue(EnqueueBatch::of(std::vector<Job>(static_cast<std::size_t>(count), like), {}));
    EXPECT_TRUE(ledger_->commit());
    return results;
  }
  std::vector<JobId> enqueue(int count, const Job& like = {.kind = "send", .queue = "mail"}) {
    std::vector<JobId> ids;
    for (const auto& result : try_enqueue(count, like)) ids.push_back(result.value().id);
    return ids;
  }
  std::vector<Lease> step() {
    EXPECT_TRUE(ledger_->begin());
    return end_step();
  }
  // Until nothing more starts at this time.
  std::size_t started() {
    std::size_t all = 0;
    while (const std::size_t some = step().size()) all += some;
    return all;
  }
  void finish(const Lease& lease) {
    ASSERT_TRUE(ledger_->begin());
    ASSERT_TRUE(ledger_->settle(SettleBatch::of({{.lease = {lease.job.id, lease.token}, .outcome = Done{}}}, {})).at(0));
    ASSERT_TRUE(ledger_->commit());
  }
  // As the engine does: sleeps until it has something to do, for at most so long. What started.
  std::size_t run_for(Milliseconds time) {
    std::size_t all = 0;
    const std::int64_t end_us = clock_.now().elapsed_us + time.count() * 1000;
    while (true) {
      all += started();
      const auto wake = ledger_->next_wake_us();
      if (!wake || *wake > end_us) break;
      clock_.advance(Milliseconds(std::max<std::int64_t>(1, (*wake - clock_.now().elapsed_us + 999) / 1000)));
    }
    clock_.advance(Milliseconds((end_us - clock_.now().elapsed_us) / 1000));
    return all;
  }
  std::string explain(const JobId& id) { return ledger_->explain(id).value().code; }
  void expect_sound() {
    const AuditReport report = ledger_->audit();
    EXPECT_TRUE(report.ok()) << report.problems.front();
  }

  std::ptrdiff_t snapshots() {
    const auto names = disk_.list("/store").value();
    return std::count_if(names.begin(), names.end(), [](const auto& name) { return name.starts_with("snapshot-"); });
  }

  std::uint32_t last_subscription_ = 0;
};

TEST_F(LedgerRules, OfAQueueAreKeptAndKeepItInExistenceUntilTheyAreRemoved) {
  const QueueRules rules{.queue = "mail",
                         .at_once = 3,
                         .rate = {.count = 10, .period = seconds(1), .burst = 2},
                         .fair = true,
                         .weights = {{"a", 2}},
                         .oldest = hours(1)};
  put(rules);
  reopen(Survival::kNothing);
  ASSERT_EQ(ledger_->rules(), std::vector{rules});
  EXPECT_EQ(ledger_->queues().size(), 1u);
  expect_sound();
  ledger_->unsubscribe(last_subscription_);
  put({.queue = "mail"});
  EXPECT_TRUE(ledger_->rules().empty());
  EXPECT_TRUE(ledger_->queues().empty());
  reopen(Survival::kNothing);
  EXPECT_TRUE(ledger_->rules().empty());
  expect_sound();
}

TEST_F(LedgerRules, JobsThatStillRunCountAfterARestart) {
  put({.queue = "mail", .at_once = 3});
  const auto ids = enqueue(10);
  std::vector<Lease> leases = step();
  ASSERT_EQ(leases.size(), 3u);
  EXPECT_EQ(explain(ids[9]), "at_once");
  reopen();
  EXPECT_EQ(started(), 0u);
  finish(leases[0]);
  EXPECT_EQ(started(), 1u);
  put({.queue = "mail", .at_once = 5});
  EXPECT_EQ(started(), 2u);
  expect_sound();
}

TEST_F(LedgerRules, ARateHoldsOverRestartsAndStepsOfTheClock) {
  put({.queue = "mail", .rate = {.count = 10, .period = seconds(1), .burst = 4}});
  const auto ids = enqueue(200);
  std::size_t all = started();
  EXPECT_EQ(all, 4u);
  EXPECT_EQ(explain(ids[199]), "rate");
  for (int i = 1; i <= 40; ++i) {
    switch (i % 5) {
      case 0: reopen(Survival::kNothing); break;
      case 1: clock_.step_wall(hours(1)); break;
      case 2: clock_.step_wall(-hours(2)); break;
      default: break;
    }
    all += run_for(Milliseconds(250));
    ASSERT_LE(all, 4u + static_cast<std::size_t>(i) * 10 / 4 + 1);
  }
  EXPECT_GE(all, 95u);
  expect_sound();
}

TEST_F(LedgerRules, ASlowRateIsNotForgottenByASnapshot) {
  put({.queue = "mail", .at_once = 7, .rate = {.count = 1, .period = hours(10)}});
  put({.queue = "calls", .group_rate = {.count = 1, .period = hours(10)}});
  enqueue(5);
  enqueue(5, {.kind = "send", .queue = "calls", .group = "g"});
  EXPECT_EQ(started(), 2u);
  die(Survival::kEverything);
  open(16 << 10);
  enqueue(500, {.kind = "k", .queue = "another", .body = std::string(200, 'x')});
  for (int i = 0; i < 1000 && ledger_->tidy().value(); ++i) {
  }
  ASSERT_EQ(snapshots(), 1);
  reopen();
  EXPECT_EQ(ledger_->rules().at(1).at_once, 7u);
  EXPECT_EQ(run_for(hours(9)), 0u);
  EXPECT_EQ(run_for(hours(2)), 2u);
  expect_sound();
}

TEST_F(LedgerRules, RefuseWhatIsTooMuchForTheirQueueAndNothingElse) {
  put({.queue = "mail", .most_jobs = 3});
  ledger_->unsubscribe(last_subscription_);
  const auto results = try_enqueue(5, {.kind = "send", .queue = "mail"});
  EXPECT_TRUE(results[2]);
  ASSERT_FALSE(results[3]);
  EXPECT_EQ(results[3].error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(results[3].error().message,
            "queue 'mail' holds 3 waiting job(s), as its rules allow at most (most_jobs): try again when some of its jobs "
            "have run");
  EXPECT_TRUE(try_enqueue(1, {.kind = "send", .queue = "another"})[0]);

  put({.queue = "mail", .most_bytes = 10'000});
  EXPECT_TRUE(try_enqueue(1, {.kind = "send", .queue = "mail", .body = std::string(10'000, 'x')})[0]);
  EXPECT_FALSE(try_enqueue(1, {.kind = "send", .queue = "mail"})[0]);
  reopen();
  EXPECT_FALSE(try_enqueue(1, {.kind = "send", .queue = "mail"})[0]);
  EXPECT_EQ(started(), 4u);
  EXPECT_TRUE(try_enqueue(1, {.kind = "send", .queue = "mail"})[0]);

  put({.queue = "mail", .at_once = 1, .oldest = seconds(10)});
  clock_.advance(seconds(9));
  EXPECT_EQ(step().size(), 0u);
  EXPECT_TRUE(try_enqueue(1, {.kind = "send", .queue = "mail"})[0]);
  clock_.advance(seconds(1));
  EXPECT_FALSE(try_enqueue(1, {.kind = "send", .queue = "mail"})[0]);
  expect_sound();
}

TEST_F(LedgerRules, ThatAreNotRightAreRefusedAndNothingChanges) {
  ASSERT_TRUE(ledger_->begin());
  const Status status = ledger_->put_rules({.queue = "mail", .rate = {.count = 1, .burst = 0}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(ledger_->rules().empty());
}

// Starts and ends of jobs as their workers see them, in the order in which they happen.
class Watched {
 public:
  void start(const Lease& lease, std::int64_t elapsed_ms) {
    running_.emplace_back(lease);
    starts_[""].push_back(elapsed_ms);
    if (!lease.job.group.empty()) starts_[lease.job.group].push_back(elapsed_ms);
  }
  Lease end(std::size_t i) {
    std::swap(running_[i], running_.back());
    Lease lease = std::move(running_.back());
    running_.pop_back();
    return lease;
  }
  std::size_t running() const { return running_.size(); }
  std::size_t running(const std::string& group) const {
    return static_cast<std::size_t>(
        std::count_if(running_.begin(), running_.end(), [&](const Lease& lease) { return lease.job.group == group; }));
  }
  // Of the queue for an empty name. Both ends of a time are rounded to milliseconds.
  bool keeps(const std::string& group, const RateLimit& rate) const {
    const auto found = starts_.find(group);
    if (found == starts_.end()) return true;
    const std::vector<std::int64_t>& at = found->second;
    for (std::size_t i = 0; i < at.size(); ++i) {
      for (std::size_t j = i; j < at.size(); ++j) {
        const std::int64_t most = core::burst_of(rate) + (at[j] - at[i] + 2) * rate.count / rate.period.count();
        if (static_cast<std::int64_t>(j - i + 1) > most) return false;
      }
    }
    return true;
  }

 private:
  std::vector<Lease> running_;
  std::map<std::string, std::vector<std::int64_t>> starts_;
};

class LedgerRulesUnderCrashes : public LedgerRules, public ::testing::WithParamInterface<std::uint64_t> {};

TEST_P(LedgerRulesUnderCrashes, AreNeverBroken) {
  const QueueRules rules{.queue = "mail",
                         .at_once = 6,
                         .rate = {.count = 20, .period = seconds(1), .burst = 5},
                         .group_at_once = 2,
                         .group_rate = {.count = 5, .period = seconds(1), .burst = 2},
                         .fair = true,
                         .weights = {{"g1", 3}},
                         .ageing = seconds(5)};
  support::SeededRandom chance(GetParam());
  const auto below = [&](std::uint64_t limit) { return chance.next_below(limit); };
  Watched watched;
  std::size_t most = 0;
  std::size_t kinds = 0;
  const auto reopen_with_kinds = [&] {
    open(16 << 10);
    ledger_->unsubscribe(last_subscription_);
    subscribe({.queues = {{"mail"}}, .credit = 10, .lease = hours(24), .outlives_process = true});
    // Now and then some of the workers take some kinds only.
    if (kinds++ % 2 == 0) {
      subscribe({.queues = {{"mail"}}, .kinds = {"even"}, .credit = 5, .lease = hours(24), .outlives_process = true});
    }
  };
  die(Survival::kEverything);
  reopen_with_kinds();
  put(rules);
  for (int round = 0; round < 250; ++round) {
    ASSERT_TRUE(ledger_->begin());
    for (std::uint64_t left = below(4); left > 0; --left) {
      Job job{.kind = below(2) == 0 ? "even" : "odd", .queue = "mail", .body = std::string(below(600), 'x')};
      if (below(5) != 0) job.group = "g" + std::to_string(below(5));
      job.priority = static_cast<int>(below(3));
      job.delay = Milliseconds(below(3) == 0 ? below(2000) : 0);
      ASSERT_TRUE(ledger_->enqueue(EnqueueBatch::of({job}, {})).at(0));
    }
    if (watched.running() > 0 && below(3) == 0) {
      const Lease lease = watched.end(below(watched.running()));
      Outcome outcome = Done{};
      if (below(4) == 0) outcome = RetryAt{.after = Milliseconds(below(500))};
      if (below(6) == 0) outcome = Returned{};
      if (below(9) == 0) outcome = Dead{};
      ASSERT_TRUE(ledger_->settle(SettleBatch::of({{.lease = {lease.job.id, lease.token}, .outcome = outcome}}, {})).at(0));
    }
    for (const Lease& lease : end_step()) watched.start(lease, clock_.now().elapsed_us / 1000);
    ASSERT_LE(watched.running(), rules.at_once) << round;
    most = std::max(most, watched.running());
    for (int group = 0; group < 5; ++group) ASSERT_LE(watched.running("g" + std::to_string(group)), rules.group_at_once);
    switch (below(25)) {
      case 0:
        die(below(2) == 0 ? Survival::kEverything : Survival::kNothing);
        reopen_with_kinds();
        break;
      case 1:
        clock_.step_wall(Milliseconds(static_cast<std::int64_t>(below(7'200'000)) - 3'600'000));
        break;
      case 2:
        (void)ledger_->tidy().value();
        break;
      case 3:
        expect_sound();
        break;
      default:
        clock_.advance(Milliseconds(below(60)));
    }
  }
  EXPECT_EQ(most, rules.at_once);
  EXPECT_TRUE(watched.keeps("", rules.rate));
  for (int group = 0; group < 5; ++group) EXPECT_TRUE(watched.keeps("g" + std::to_string(group), rules.group_rate));
  expect_sound();
  EXPECT_EQ(ledger_->queues().at(0).running, watched.running());
  // What is left runs, and nothing is held for ever.
  put({.queue = "mail"});
  ledger_->set_credit(last_subscription_, 1'000'000);
  subscribe({.queues = {{"mail"}}, .credit = 1'000'000});
  run_for(seconds(10));
  EXPECT_EQ(ledger_->queues().at(0).ready, 0u);
  expect_sound();
}

INSTANTIATE_TEST_SUITE_P(Seeds, LedgerRulesUnderCrashes, ::testing::Range<std::uint64_t>(1, 31));

TEST_F(LedgerRules, OfGroupsUseNearlyAllOfTheRateWhileThereIsWork) {
  put({.queue = "mail", .group_rate = {.count = 10, .period = seconds(1)}, .fair = true});
  for (int group = 0; group < 20; ++group) {
    Job job{.kind = "send", .queue = "mail", .group = "g" + std::to_string(group)};
    enqueue(100, job);
  }
  const std::size_t all = run_for(seconds(5));
  EXPECT_GE(all, 20u * 50 * 95 / 100);
  EXPECT_LE(all, 20u * (50 + 1));
  expect_sound();
}

TEST_F(LedgerRules, TheNextJobOfAGroupStartsWhenOneEndsAlsoAfterARestart) {
  put({.queue = "mail", .group_at_once = 1});
  enqueue(4, {.kind = "send", .queue = "mail", .group = "g"});
  std::vector<Lease> leases = step();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(leases.size(), 1u);
    EXPECT_EQ(started(), 0u);
    if (i == 1) reopen();
    EXPECT_EQ(started(), 0u);
    finish(leases[0]);
    leases = step();
  }
  EXPECT_EQ(leases.size(), 1u);
  expect_sound();
}

TEST_F(LedgerRules, AGroupThatComesBackHasItsNextStartBeforeItsBucketIsFull) {
  put({.queue = "mail", .group_rate = {.count = 1, .period = seconds(1), .burst = 10}});
  const Job job{.kind = "send", .queue = "mail", .group = "g"};
  enqueue(10, job);
  for (const Lease& lease : step()) finish(lease);
  clock_.advance(Milliseconds(100));
  enqueue(2, job);
  EXPECT_EQ(started(), 0u);
  EXPECT_EQ(run_for(Milliseconds(2100)), 2u);
}

TEST_F(LedgerRules, AGroupWhoseWaitingJobsAreAllCancelledIsWokenWithoutThem) {
  put({.queue = "mail", .group_at_once = 1});
  const auto ids = enqueue(4, {.kind = "send", .queue = "mail", .group = "g"});
  const std::vector<Lease> leases = step();
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(started(), 0u);
  ASSERT_TRUE(ledger_->begin());
  for (const Status& cancelled : ledger_->cancel({ids[1], ids[2], ids[3]})) ASSERT_TRUE(cancelled);
  ASSERT_TRUE(ledger_->commit());
  EXPECT_EQ(ledger_->queues().size(), 1u);  // Whoever looks drops what was cancelled.
  put({.queue = "mail", .group_at_once = 2});
  finish(leases[0]);
  EXPECT_EQ(started(), 0u);
  enqueue(1, {.kind = "send", .queue = "mail", .group = "g"});
  EXPECT_EQ(started(), 1u);
  expect_sound();
}

TEST_F(LedgerRules, AGroupThatOutlivesItsQueueIsNotInASnapshot) {
  put({.queue = "other", .group_rate = {.count = 1, .period = hours(10)}});
  enqueue(1, {.kind = "send", .queue = "other", .group = "g"});
  subscribe({.queues = {{"other"}}, .credit = 10, .outlives_process = true});
  const std::vector<Lease> leases = step();
  ASSERT_EQ(leases.size(), 1u);
  finish(leases[0]);
  ledger_->unsubscribe(last_subscription_);
  put({.queue = "other"});
  clock_.advance(hours(2));  // The done job is forgotten, and with it the queue.
  step();
  ASSERT_FALSE(ledger_->state().queues().names().find("other"));
  die(Survival::kEverything);
  open(16 << 10);
  enqueue(500, {.kind = "k", .queue = "another", .body = std::string(200, 'x')});
  for (int i = 0; i < 1000 && ledger_->tidy().value(); ++i) {
  }
  ASSERT_EQ(snapshots(), 1);
  reopen();
  expect_sound();
}

TEST_F(LedgerRules, AGroupIsNamedAndThePlaceInItWhenAJobIsExplained) {
  put({.queue = "mail", .group_at_once = 3});
  const auto ids = enqueue(815, {.kind = "send", .queue = "mail", .group = "tenant:42"});
  EXPECT_EQ(started(), 3u);
  EXPECT_EQ(ledger_->explain(ids[814]).value().text, "It is ready; 3 of 3 running in group tenant:42, position 812.");
  expect_sound();
}

TEST_F(LedgerRules, AGroupIsThereAsLongAsItHasJobsOrItsRateRemembersIt) {
  put({.queue = "mail", .group_rate = {.count = 1, .period = seconds(10)}});
  enqueue(1, {.kind = "send", .queue = "mail", .group = "g"});
  const std::vector<Lease> leases = step();
  ASSERT_EQ(leases.size(), 1u);
  finish(leases[0]);
  const std::uint16_t queue = *ledger_->state().queues().names().find("mail");
  EXPECT_NE(ledger_->state().groups().find(queue, "g"), kNoGroup);
  EXPECT_EQ(run_for(seconds(11)), 0u);
  EXPECT_EQ(ledger_->state().groups().find(queue, "g"), kNoGroup);
}

}  // namespace
}  // namespace bide::engine
