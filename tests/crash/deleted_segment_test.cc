// A segment is deleted only when what made it superfluous is durable.

#include <gtest/gtest.h>

#include "engine/ledger.h"
#include "support/seeded_random.h"
#include "support/simulated_disk.h"
#include "support/virtual_clock.h"

namespace bide::engine {
namespace {

class DeletedSegment : public ::testing::Test {
 protected:
  void open() {
    EngineOptions options;
    options.directory = "/store";
    options.segment_bytes = 4 << 10;
    options.snapshot_bytes = 8 << 10;
    options.reserve_bytes = 16 << 10;
    options.done_limit = 1;
    options.disk = &disk_;
    options.clock = &clock_;
    options.random = &random_;
    auto opened = Ledger::open(options);
    ASSERT_TRUE(opened) << opened.error().message;
    ledger_ = std::move(*opened);
    ledger_->subscribe(1, {.queues = {{"default", 1}}, .credit = 10, .lease = Milliseconds(600'000)}, {});
  }

  JobId enqueue(Job job) {
    job.kind = "work";
    EXPECT_TRUE(ledger_->begin());
    const auto result = ledger_->enqueue(engine::EnqueueBatch::of({std::move(job)}, {})).front();
    EXPECT_TRUE(ledger_->commit());
    return result.value().id;
  }

  LeaseRef lease() {
    EXPECT_TRUE(ledger_->begin());
    const auto deliveries = std::move(ledger_->grant()).value();
    EXPECT_TRUE(ledger_->commit());
    return {deliveries.front().leases.front().job.id, deliveries.front().leases.front().token};
  }

  void settle(const LeaseRef& lease, Outcome outcome) {
    EXPECT_TRUE(ledger_->begin());
    EXPECT_TRUE(ledger_->settle(engine::SettleBatch::of({{.lease = lease, .outcome = std::move(outcome)}}, {})).front());
    EXPECT_TRUE(ledger_->commit());
  }

  // Fills segments with what nobody needs.
  void run_some_jobs() {
    for (int i = 0; i < 10; ++i) {
      enqueue({.body = std::string(1000, 'x')});
      settle(lease(), Done{});
    }
  }

  support::SimulatedDisk disk_{5};
  support::VirtualClock clock_;
  support::SeededRandom random_{5};
  std::unique_ptr<Ledger> ledger_;
};

TEST_F(DeletedSegment, StaysUntilTheRecordThatReplacedItsLastOneIsSynced) {
  open();
  // So much is live that nothing is compacted.
  enqueue({.body = std::string(200'000, 'l'), .delay = std::chrono::hours(1)});
  const Time soon(Milliseconds(ledger_->now_ms() + 10'000));
  const JobId id = enqueue({.expires = soon});
  const LeaseRef first = lease();
  ASSERT_EQ(first.id, id);
  run_some_jobs();
  settle(first, RetryAt{.after = Milliseconds(5000), .error = std::string(900, 'e')});
  const journal::Address details = ledger_->state()[ledger_->state().find(id)].details().address;
  run_some_jobs();
  for (int left = 100; std::move(ledger_->tidy()).value(); --left) ASSERT_GT(left, 0);
  // The segment with the job's error is behind a snapshot, and nothing else in it is needed.
  journal::Address base = 0;
  for (const journal::Segment& segment : ledger_->journal().segments()) {
    if (segment.base <= details) base = segment.base;
  }
  ASSERT_LT(ledger_->state().live_bytes().of(base), 1100u);
  ASSERT_LT(base, ledger_->journal().segments().back().base);

  // It expires when its turn comes, which is written and not yet synced.
  clock_.advance(20'000);
  enqueue({.delay = std::chrono::hours(1)});
  ASSERT_TRUE(ledger_->grant());
  ASSERT_TRUE(ledger_->write());
  ASSERT_EQ(ledger_->find(id).value().state, JobState::kDead);
  ASSERT_TRUE(ledger_->tidy());
  ASSERT_EQ(ledger_->state().live_bytes().of(base), 0u);
  disk_.halt();
  ledger_.reset();
  disk_.crash({.unsynced = support::Survival::kNothing});
  open();
  ASSERT_NE(ledger_, nullptr);
  const auto info = ledger_->find(id);
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->history.back().text, std::string(900, 'e'));
}

}  // namespace
}  // namespace bide::engine
