// What was given for a job stays while the job is remembered as done, within done_bytes.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/check/check_store.h"
#include "support/ledger_fixture.h"

namespace bide::engine {
namespace {

using support::Survival;

class DoneBodies : public LedgerFixture {
 protected:
  void open(std::uint64_t done_bytes) {
    done_bytes_ = done_bytes;
    open_ledger({.directory = "", .done_bytes = done_bytes, .segment_bytes = 64 << 10, .snapshot_bytes = 1});
    ledger_->subscribe(++last_subscription_, {.credit = 1000}, [](const std::vector<Lease>&) {});
  }
  JobId run(const std::string& body) {
    EXPECT_TRUE(ledger_->begin());
    Job job{.kind = "work", .body = body};
    job.headers = {{"tenant", "acme"}};
    const JobId id = ledger_->enqueue(EnqueueBatch::of({job}, {})).at(0)->id;
    for (const Lease& lease : end_step()) {
      EXPECT_TRUE(ledger_->begin());
      Settlement settlement{.lease = {lease.job.id, lease.token}, .outcome = Done{.result = "fine"}};
      EXPECT_TRUE(ledger_->settle(SettleBatch::of({std::move(settlement)}, {})).at(0));
      end_step();
    }
    return id;
  }
  JobInfo find(const JobId& id) {
    auto info = ledger_->find(id);
    EXPECT_TRUE(info) << info.error().message;
    EXPECT_EQ(info->state, JobState::kDone);
    EXPECT_EQ(info->result, "fine");
    return std::move(*info);
  }
  void tidy() {
    while (ledger_->tidy().value()) ledger_->take_garbage()();
    ledger_->take_garbage()();
  }
  void expect_audit_agrees() {
    const AuditReport audit = ledger_->audit();
    EXPECT_TRUE(audit.ok()) << (audit.ok() ? "" : audit.problems.front());
  }
  void expect_sound_on_disk() {
    die(Survival::kEverything);
    const auto report = check::check_store(disk_, "/store");
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_FALSE(report->damaged()) << (report->findings.empty() ? "" : report->findings.front().text);
    open(done_bytes_);
  }

  std::uint64_t done_bytes_ = 0;
  std::uint32_t last_subscription_ = 0;
};

TEST_F(DoneBodies, AJobThatIsDoneTellsWhatItWas) {
  open(1 << 20);
  const JobId id = run("the body");
  const JobInfo info = find(id);
  EXPECT_TRUE(info.whole);
  EXPECT_EQ(info.job.body, "the body");
  EXPECT_EQ(info.job.headers, (Headers{{"tenant", "acme"}}));
  EXPECT_EQ(info.job.kind, "work");
  expect_audit_agrees();
}

TEST_F(DoneBodies, TheNewestAreKeptWithinTheBytes) {
  open(10'000);
  std::vector<JobId> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(run(std::string(1000, 'x')));
  EXPECT_FALSE(find(ids.front()).whole);
  EXPECT_EQ(find(ids.front()).job.body, "");
  EXPECT_EQ(find(ids.front()).job.kind, "work");
  EXPECT_TRUE(find(ids.back()).whole);
  std::size_t kept = 0;
  for (const JobId& id : ids) kept += find(id).whole ? 1 : 0;
  EXPECT_GE(kept, 8u);
  EXPECT_LE(kept, 10u);
  expect_audit_agrees();
}

TEST_F(DoneBodies, NoneAreKeptWithoutRoomForThem) {
  open(0);
  EXPECT_FALSE(find(run("x")).whole);
  expect_audit_agrees();
}

TEST_F(DoneBodies, SurviveACrashASnapshotAndCompaction) {
  open(50'000);
  std::vector<JobId> ids;
  for (int i = 0; i < 300; ++i) {
    ids.push_back(run(std::string(1000, static_cast<char>('a' + i % 26))));
    if (i % 20 == 0) tidy();
  }
  expect_audit_agrees();
  expect_sound_on_disk();
  EXPECT_EQ(find(ids.back()).job.body, std::string(1000, static_cast<char>('a' + 299 % 26)));
  EXPECT_FALSE(find(ids.front()).whole);
  expect_audit_agrees();
  tidy();
  expect_sound_on_disk();
  EXPECT_TRUE(find(ids.back()).whole);
  expect_audit_agrees();
}

TEST_F(DoneBodies, ThatWereMovedAreNoReasonNotToOpenWithoutRoomForThem) {
  open(200'000);
  std::vector<JobId> ids;
  for (int i = 0; i < 300; ++i) {
    ids.push_back(run(std::string(1000, 'x')));
    // Some segments become mostly garbage, and what is left of them moves.
    if (i % 2 == 0) (void)run(std::string(5000, 'y'));
    if (i % 10 == 0) tidy();
  }
  die(Survival::kEverything);
  open(0);
  EXPECT_FALSE(find(ids.back()).whole);
  expect_audit_agrees();
  expect_sound_on_disk();
}

TEST_F(DoneBodies, FewerAreKeptByWhoeverOpensWithLessRoom) {
  open(100'000);
  std::vector<JobId> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(run(std::string(1000, 'x')));
  die(Survival::kEverything);
  open(5'000);
  EXPECT_FALSE(find(ids.front()).whole);
  EXPECT_TRUE(find(ids.back()).whole);
  expect_audit_agrees();
}

}  // namespace
}  // namespace bide::engine
