// Which queues and kinds exist, and for how long.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/ledger_fixture.h"

namespace bide::engine {
namespace {

class LedgerNames : public LedgerFixture {
 protected:
  void SetUp() override { open(); }

  void open() {
    EngineOptions options;
    options.snapshot_bytes = snapshot_bytes_;
    open_ledger(std::move(options));
  }
  void crash() {
    die(support::Survival::kChance);
    open();
  }
  void begin() { ASSERT_TRUE(ledger_->begin()); }
  Result<Enqueued> enqueue(const std::string& queue, const std::string& kind = "work") {
    return ledger_->enqueue(EnqueueBatch::of({Job{.kind = kind, .queue = queue}}, {})).at(0);
  }
  JobId enqueued(const std::string& queue) { return enqueue(queue).value().id; }
  void subscribe(std::uint32_t number, const std::vector<std::string>& queues) {
    SubscribeOptions options{.queues = {}, .credit = 2000};
    for (const std::string& queue : queues) options.queues.push_back({queue, 1});
    ledger_->subscribe(number, options, [](const std::vector<Lease>&) {});
  }
  std::vector<std::string> queues() const {
    std::vector<std::string> names;
    for (const QueueInfo& info : ledger_->queues()) names.push_back(info.name);
    std::sort(names.begin(), names.end());
    return names;
  }
  static std::vector<std::string> names_from(int first, int count) {
    std::vector<std::string> names;
    for (int i = first; i < first + count; ++i) names.push_back("name" + std::to_string(i));
    return names;
  }
  void settle_as_done(const std::vector<Lease>& leases) {
    std::vector<Settlement> settlements;
    for (const Lease& lease : leases) settlements.push_back({{lease.job.id, lease.token}, Done{}, {}});
    for (const Status& status : ledger_->settle(SettleBatch::of(std::move(settlements), {}))) ASSERT_TRUE(status);
  }
  void expect_sound() {
    const AuditReport report = ledger_->audit();
    EXPECT_TRUE(report.problems.empty()) << report.problems.front();
  }

  std::uint64_t snapshot_bytes_ = EngineOptions().snapshot_bytes;};

using Strings = std::vector<std::string>;

TEST_F(LedgerNames, AQueueIsThereWhileItHasAJobOrIsPaused) {
  begin();
  const JobId id = enqueued("jobs");
  ASSERT_TRUE(ledger_->pause("paused", true));
  end_step();
  EXPECT_EQ(queues(), (Strings{"jobs", "paused"}));
  begin();
  ASSERT_TRUE(ledger_->cancel({id}).at(0));
  end_step();
  EXPECT_EQ(queues(), Strings{"paused"});
  crash();
  EXPECT_EQ(queues(), Strings{"paused"});
  begin();
  ASSERT_TRUE(ledger_->pause("paused", false));
  end_step();
  EXPECT_EQ(queues(), Strings{});
  expect_sound();
}

TEST_F(LedgerNames, AWorkerMakesNoQueueButKeepsTheOneItTakesFrom) {
  begin();
  subscribe(1, {"jobs"});
  end_step();
  EXPECT_EQ(queues(), Strings{});
  begin();
  const JobId id = enqueued("jobs");
  const std::vector<Lease> leases = end_step();
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(leases[0].job.id, id);
  begin();
  settle_as_done(leases);
  end_step();
  clock_.advance(std::chrono::hours(2));
  begin();
  end_step();
  EXPECT_EQ(queues(), Strings{"jobs"});
  expect_sound();
  begin();
  ledger_->unsubscribe(1);
  end_step();
  EXPECT_EQ(queues(), Strings{});
  expect_sound();
}

TEST_F(LedgerNames, WorkersThatAskForManyNamesLeaveThemToOthers) {
  begin();
  for (int i = 0; i < 300; ++i) subscribe(static_cast<std::uint32_t>(i + 1), names_from(i * 250, 250));
  end_step();
  EXPECT_EQ(queues(), Strings{});
  begin();
  for (int i = 0; i < 300; ++i) ledger_->unsubscribe(static_cast<std::uint32_t>(i + 1));
  EXPECT_TRUE(enqueue("another"));
  end_step();
  EXPECT_EQ(queues(), Strings{"another"});
}

TEST_F(LedgerNames, WhoHasAllTheNamesInUseGetsNoMoreUntilOneIsFree) {
  begin();
  JobId last;
  for (const std::string& name : names_from(0, static_cast<int>(kMaxNames))) last = enqueued(name);
  EXPECT_EQ(enqueue("another").error().code, ErrorCode::kOverloaded);
  EXPECT_TRUE(enqueue("name7"));
  ASSERT_TRUE(ledger_->cancel({last}).at(0));
  EXPECT_TRUE(enqueue("another"));
  EXPECT_EQ(enqueue("yet_another").error().code, ErrorCode::kOverloaded);
  end_step();
  crash();
  EXPECT_EQ(queues().size(), kMaxNames);
  begin();
  EXPECT_EQ(enqueue("yet_another").error().code, ErrorCode::kOverloaded);
  end_step();
  expect_sound();
}

// Of what is done the results are kept, so that the names are in use until there are too many.
TEST_F(LedgerNames, MoreThanThereAreNumbersAreUsedInTurnAndFoundAfterARestart) {
  constexpr int kAtOnce = 1000;
  constexpr int kAll = 140'000;
  for (int first = 0; first < kAll; first += kAtOnce) {
    const Strings names = names_from(first, kAtOnce);
    begin();
    subscribe(1, names);
    for (const std::string& name : names) ASSERT_TRUE(enqueue(name, "kind_of_" + name));
    const std::vector<Lease> leases = end_step();
    ASSERT_EQ(leases.size(), names.size());
    begin();
    settle_as_done(leases);
    ledger_->unsubscribe(1);
    end_step();
  }
  EXPECT_LE(queues().size(), kMaxNames);
  expect_sound();
  crash();
  expect_sound();
  const Strings found = queues();
  EXPECT_LE(found.size(), kMaxNames);
  EXPECT_TRUE(std::binary_search(found.begin(), found.end(), "name" + std::to_string(kAll - 1)));
  begin();
  EXPECT_TRUE(enqueue("another", "another_kind"));
  end_step();
  EXPECT_EQ(ledger_->audit().done, static_cast<std::uint64_t>(kAll));
}

TEST_F(LedgerNames, ASnapshotWithGapsInTheNumbersIsReadAsItWas) {
  snapshot_bytes_ = 1;
  crash();
  begin();
  const JobId a = enqueued("a");
  const JobId b = enqueue("b", "kind_b").value().id;
  const JobId c = enqueue("c", "kind_c").value().id;
  ASSERT_TRUE(ledger_->pause("paused", true));
  ASSERT_TRUE(ledger_->cancel({a}).at(0));
  end_step();
  while (ledger_->tidy().value()) ledger_->take_garbage()();
  begin();
  ASSERT_TRUE(ledger_->cancel({b}).at(0));
  const JobId d = enqueue("d", "kind_d").value().id;
  end_step();
  bool has_snapshot = false;
  for (const std::string& file : disk_.files()) has_snapshot |= file.find("/snapshot-") != std::string::npos;
  ASSERT_TRUE(has_snapshot);
  crash();
  EXPECT_EQ(queues(), (Strings{"c", "d", "paused"}));
  EXPECT_EQ(ledger_->find(c)->job.queue, "c");
  EXPECT_EQ(ledger_->find(c)->job.kind, "kind_c");
  EXPECT_EQ(ledger_->find(d)->job.queue, "d");
  EXPECT_EQ(ledger_->find(d)->job.kind, "kind_d");
  expect_sound();
}

// The number of the queue that is gone is given to the next one while the purge is under way.
TEST_F(LedgerNames, APurgeOfAQueueThatIsGoneLeavesTheOthersAlone) {
  begin();
  const JobId old = enqueued("old");
  end_step();
  begin();
  std::optional<Result<std::uint64_t>> purged;
  ledger_->purge("old", [&](Result<std::uint64_t> answer) { purged = std::move(answer); });
  ASSERT_TRUE(ledger_->cancel({old}).at(0));
  const JobId other = enqueued("new");
  end_step();
  while (ledger_->has_tasks()) {
    begin();
    end_step();
  }
  ASSERT_TRUE(purged.has_value());
  EXPECT_EQ(purged->value(), 0u);
  EXPECT_TRUE(ledger_->find(other));
}

TEST_F(LedgerNames, AQueueCountsEachSubscriptionOnce) {
  begin();
  subscribe(1, {"a", "b", "a"});
  subscribe(2, {"a"});
  subscribe(3, {"c"});
  for (const char* queue : {"a", "b", "d"}) (void)enqueued(queue);
  (void)end_step();
  std::vector<std::pair<std::string, int>> workers;
  for (const QueueInfo& info : ledger_->queues()) workers.emplace_back(info.name, info.workers);
  EXPECT_EQ(workers, (std::vector<std::pair<std::string, int>>{{"a", 2}, {"b", 1}, {"d", 0}}));
}

}  // namespace
}  // namespace bide::engine
