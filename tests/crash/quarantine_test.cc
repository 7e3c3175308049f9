// Damage behind the snapshot: one damaged record harms one job, which is quarantined and named; the rest goes on. Only a
// failed write or sync ends the process.

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/check/repair_store.h"
#include "engine/ledger.h"
#include "support/seeded_random.h"
#include "support/simulated_disk.h"
#include "support/virtual_clock.h"

namespace bide::engine {
namespace {

using journal::Address;
using journal::RecordRef;
using support::SimulatedDisk;

// A disk on which nothing can be opened while the process has no descriptors left.
class FewDescriptors final : public platform::Disk {
 public:
  explicit FewDescriptors(platform::Disk& disk) : disk_(disk) {}

  Result<std::unique_ptr<platform::File>> open(const std::string& path, platform::OpenMode mode) override {
    if (none_left) return Error{ErrorCode::kOverloaded, "cannot open " + path + ": Too many open files"};
    return disk_.open(path, mode);
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    if (none_left) return Error{ErrorCode::kOverloaded, "cannot list " + directory + ": Too many open files"};
    return disk_.list(directory);
  }
  Result<bool> exists(const std::string& path) override { return disk_.exists(path); }
  Status rename(const std::string& from, const std::string& to) override { return disk_.rename(from, to); }
  Status remove(const std::string& path) override { return disk_.remove(path); }
  Status make_directory(const std::string& path) override { return disk_.make_directory(path); }
  Status sync_directory(const std::string& path) override { return disk_.sync_directory(path); }
  Result<std::unique_ptr<platform::DirectoryLock>> lock(const std::string& directory) override {
    return disk_.lock(directory);
  }

  bool none_left = false;

 private:
  platform::Disk& disk_;
};

class QuarantineTest : public ::testing::Test {
 protected:
  static constexpr int kJobs = 60;

  EngineOptions options(platform::Disk& disk) {
    EngineOptions options;
    options.directory = "/store";
    options.segment_bytes = 4 << 10;
    options.snapshot_bytes = 8 << 10;
    options.reserve_bytes = 16 << 10;
    options.cache_bytes = 0;  // Everything is read back.
    options.result_retention = std::chrono::hours(24 * 365);
    options.done_bytes = 0;  // What is done needs no segment but for its result.
    options.disk = &disk;
    options.clock = &clock_;
    options.random = &random_;
    options.on_damage = [this](const Damage& damage) { told_.push_back(damage); };
    return options;
  }

  void open(platform::Disk& disk) {
    told_.clear();
    auto opened = Ledger::open(options(disk));
    ASSERT_TRUE(opened) << opened.error().message;
    ledger_ = std::move(*opened);
  }

  void subscribe() {
    ledger_->subscribe(1, {.queues = {{"default", 1}}, .credit = 5, .lease = Milliseconds(600'000)}, {});
  }

  // One step of a worker: settles what it holds, once as a failure, takes more. Nothing in it may end the process.
  std::size_t step() {
    clock_.advance(10);
    if (Status begun = ledger_->begin(); !begun) return fail("begin", begun.error());
    for (const Lease& lease : std::exchange(held_, {})) {
      Settlement settlement{.lease = {lease.job.id, lease.token}, .outcome = Done{}};
      if (lease.attempt == 1) settlement.outcome = RetryAt{.after = Milliseconds(0), .error = "once more"};
      EXPECT_EQ(lease.job.body, bodies_[lease.job.id]);
      const Status settled = ledger_->settle(SettleBatch::of({settlement}, {})).front();
      if (!settled) {
        EXPECT_EQ(settled.error().code, ErrorCode::kDamaged) << settled.error().message;
      }
    }
    if (Status expired = ledger_->expire_leases(); !expired) return fail("expire", expired.error());
    auto deliveries = ledger_->grant();
    if (!deliveries) return fail("grant", deliveries.error());
    if (Status committed = ledger_->commit(); !committed) return fail("commit", committed.error());
    for (Delivery& delivery : *deliveries) {
      for (Lease& lease : delivery.leases) held_.push_back(std::move(lease));
    }
    if (const auto more = ledger_->tidy(); !more) return fail("tidy", more.error());
    ledger_->take_garbage()();
    return held_.size();
  }

  std::size_t fail(const char* where, const Error& error) {
    ADD_FAILURE() << where << ": " << error.message;
    return 0;
  }

  void work_until_idle() {
    for (int idle = 0, left = 1000; idle < 3 && !HasFailure(); --left) {
      ASSERT_GT(left, 0);
      idle = step() == 0 ? idle + 1 : 0;
    }
  }

  void tidy_up() {
    for (int left = 200; left > 0; --left) {
      const auto more = ledger_->tidy();
      ASSERT_TRUE(more) << more.error().message;
      ledger_->take_garbage()();
      if (!*more) return;
    }
  }

  // Jobs, half of which have been tried once, in many segments behind a snapshot.
  void make_store(SimulatedDisk& disk) {
    open(disk);
    for (int i = 0; i < kJobs; ++i) {
      clock_.advance(10);
      ASSERT_TRUE(ledger_->begin());
      Job job;
      job.kind = "work";
      job.body = std::string(static_cast<std::size_t>(100 + i * 7), static_cast<char>('a' + i % 26));
      const auto result = ledger_->enqueue(EnqueueBatch::of({job}, {})).front();
      ASSERT_TRUE(result);
      bodies_[result->id] = job.body;
      if (i % 2 == 0) {
        const auto id = result->id;
        ledger_->subscribe(9, {.queues = {{"default", 1}}, .credit = 1, .lease = Milliseconds(600'000)}, {});
        const auto deliveries = ledger_->grant();
        ASSERT_TRUE(deliveries);
        const Lease& lease = deliveries->front().leases.front();
        ASSERT_EQ(lease.job.id, id);
        const Settlement later{.lease = {id, lease.token},
                               .outcome = RetryAt{.after = Milliseconds(0), .error = std::string(200, 'e')}};
        ASSERT_TRUE(ledger_->settle(SettleBatch::of({later}, {})).front());
        ASSERT_TRUE(ledger_->reschedule(id, Time(Milliseconds(ledger_->now_ms() + 60'000))));
        ledger_->unsubscribe(9);
        (void)ledger_->take_callbacks();
      } else {
        ASSERT_TRUE(ledger_->reschedule(result->id, Time(Milliseconds(ledger_->now_ms() + 60'000))));
      }
      ASSERT_TRUE(ledger_->commit());
      ASSERT_TRUE(ledger_->tidy());
    }
    tidy_up();
    for (const auto& [id, body] : bodies_) {
      const Entry& entry = ledger_->state()[ledger_->state().find(id)];
      for (const RecordRef ref : {entry.body(), entry.details()}) {
        if (ref.bytes != 0) records_[ref.address] = {ref, id};
      }
    }
    segments_ = ledger_->journal().segments();
  }

  // The job whose record has this byte; nil: nobody's.
  JobId owner_of(Address at) {
    const auto after = records_.upper_bound(at);
    if (after == records_.begin()) return {};
    const auto& [ref, id] = std::prev(after)->second;
    return at < ref.address + ref.bytes ? id : JobId();
  }

  // All jobs are done but the damaged one, which is visible and named.
  void all_done_but(const JobId& damaged, const std::string& path, const std::string& what) {
    const AuditReport audit = ledger_->audit();
    std::uint64_t quarantined = 0;
    for (const auto& [id, body] : bodies_) {
      const auto info = ledger_->find(id);
      ASSERT_TRUE(info) << what << ": " << info.error().message;
      if (info->state == JobState::kDone) continue;
      ++quarantined;
      EXPECT_EQ(id, damaged) << what << ": " << info->note;
      EXPECT_EQ(info->state, JobState::kDead) << what;
      EXPECT_EQ(info->dead_reason, DeadReason::kDamaged) << what;
      EXPECT_NE(info->note.find(path + " offset "), std::string::npos) << what << ": " << info->note;
      const auto explained = ledger_->explain(id);
      ASSERT_TRUE(explained) << what;
      EXPECT_EQ(explained->code, "damaged") << what;
      EXPECT_NE(explained->text.find(path + " offset "), std::string::npos) << explained->text;
    }
    EXPECT_EQ(audit.details.at("quarantined"), quarantined) << what;
    EXPECT_EQ(audit.details.at("dead"), quarantined) << what;
    for (const std::string& problem : audit.problems) {
      EXPECT_NE(problem.find(path + " offset "), std::string::npos) << what << ": " << problem;
    }
    for (const Damage& damage : told_) {
      EXPECT_EQ(damage.file, path) << what;
      EXPECT_NE(damage.text.find(path + " offset " + std::to_string(damage.offset)), std::string::npos) << damage.text;
    }
    EXPECT_TRUE(audit.ok() || !told_.empty()) << what;
    if (quarantined > 0) ++quarantines_;
  }

  JobPage list(JobFilter filter) {
    std::optional<Result<JobPage>> page;
    ledger_->list(std::move(filter), "", 1000, [&](Result<JobPage> answer) { page = std::move(answer); });
    for (int left = 10; left > 0 && !page; --left) {
      EXPECT_TRUE(ledger_->begin());
      EXPECT_TRUE(ledger_->commit());
      for (const auto& callback : ledger_->take_callbacks()) callback({});
    }
    return std::move(page).value().value();
  }

  // A store in which the body of one job, behind the snapshot, is damaged; the job.
  JobId damage_one(SimulatedDisk& disk) {
    for (const auto& [at, record] : records_) {
      if (at >= segments_.front().end) break;
      if (ledger_->state()[ledger_->state().find(record.second)].body_address != at) continue;
      disk.flip_bit(segments_.front().path, at - segments_.front().base + 20, 3);
      return record.second;
    }
    return {};
  }

  support::SeededRandom random_{7};
  support::VirtualClock clock_;
  SimulatedDisk disk_{11};
  std::unique_ptr<Ledger> ledger_;
  std::vector<Lease> held_;
  std::vector<Damage> told_;
  std::map<JobId, std::string> bodies_;
  std::map<Address, std::pair<RecordRef, JobId>> records_;
  std::vector<journal::Segment> segments_;
  int quarantines_ = 0;
};

TEST_F(QuarantineTest, AFlippedBitInAnySegmentUnderARunningWorkerHarmsNoOtherJob) {
  make_store(disk_);
  ledger_.reset();
  ASSERT_GT(segments_.size(), 5u);
  std::uint64_t refused = 0;
  for (const bool while_open : {false, true}) {
    for (const journal::Segment& segment : segments_) {
      const std::uint64_t bytes = segment.end - segment.base;
      for (std::uint64_t offset = random_.next_below(97); offset < bytes; offset += 1 + random_.next_below(97)) {
        const auto image = disk_.clone();
        const std::string what = segment.path + " flipped at " + std::to_string(offset);
        if (!while_open) image->flip_bit(segment.path, offset, static_cast<unsigned>(random_.next_below(8)));
        held_.clear();
        told_.clear();
        auto opened = Ledger::open(options(*image));
        if (!opened) {
          // Not behind the snapshot: it is replayed, and nothing in it may be left out.
          ASSERT_EQ(opened.error().code, ErrorCode::kDamaged) << what << ": " << opened.error().message;
          ++refused;
          continue;
        }
        ledger_ = std::move(*opened);
        if (while_open) image->flip_bit(segment.path, offset, static_cast<unsigned>(random_.next_below(8)));
        subscribe();
        work_until_idle();
        clock_.advance(60'000);
        work_until_idle();
        tidy_up();
        all_done_but(owner_of(segment.base + offset), segment.path, what);
        ledger_.reset();
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(quarantines_, 50);
  EXPECT_GT(refused, 0u);
}

TEST_F(QuarantineTest, AJobInQuarantineIsListedOutlivesSnapshotsAndCanBeDeleted) {
  make_store(disk_);
  const JobId damaged = damage_one(disk_);
  ASSERT_FALSE(damaged.is_nil());
  ledger_.reset();
  for (int opening = 0; opening < 3; ++opening) {
    open(disk_);
    subscribe();
    clock_.advance(60'000);
    work_until_idle();
    tidy_up();
    all_done_but(damaged, segments_.front().path, "opening " + std::to_string(opening));
    EXPECT_GE(told_.size(), 1u);
    const JobPage page = list({.states = {JobState::kDead}});
    ASSERT_EQ(page.jobs.size(), 1u);
    EXPECT_EQ(page.jobs.front().job.id, damaged);
    EXPECT_EQ(page.jobs.front().job.kind, "work");
    EXPECT_EQ(page.jobs.front().dead_reason, DeadReason::kDamaged);
    ledger_.reset();
  }
  open(disk_);
  subscribe();
  work_until_idle();
  ASSERT_TRUE(ledger_->cancel({damaged}).front());
  ASSERT_TRUE(ledger_->commit());
  EXPECT_EQ(ledger_->audit().details.at("quarantined"), 0u);
  ledger_.reset();
  open(disk_);
  EXPECT_TRUE(ledger_->audit().ok());
  EXPECT_EQ(ledger_->find(damaged).error().code, ErrorCode::kNotFound);
}

TEST_F(QuarantineTest, AJobInQuarantineIsReplayedWhenItCanBeReadAgain) {
  make_store(disk_);
  const JobId damaged = damage_one(disk_);
  ledger_.reset();
  open(disk_);
  subscribe();
  clock_.advance(60'000);
  work_until_idle();
  EXPECT_EQ(ledger_->replay({damaged}, {}).front().error().code, ErrorCode::kDamaged);
  ASSERT_EQ(damage_one(disk_), damaged);  // The same bit is flipped back.
  ASSERT_TRUE(ledger_->replay({damaged}, {}).front());
  work_until_idle();
  EXPECT_EQ(ledger_->find(damaged).value().state, JobState::kDone);
  const AuditReport report = ledger_->audit();
  EXPECT_TRUE(report.ok()) << report.problems.front();
}

TEST_F(QuarantineTest, RepairRemovesTheJobThatIsLostAndNoOther) {
  make_store(disk_);
  const JobId damaged = damage_one(disk_);
  ledger_.reset();
  const auto repaired = check::repair_store(disk_, "/store", clock_.now().wall_us / 1000);
  ASSERT_TRUE(repaired) << repaired.error().message;
  EXPECT_EQ(repaired->jobs_removed, std::vector<JobId>{damaged});
  open(disk_);
  subscribe();
  clock_.advance(60'000);
  work_until_idle();
  EXPECT_TRUE(told_.empty());
  EXPECT_TRUE(ledger_->audit().ok());
  for (const auto& [id, body] : bodies_) {
    const auto info = ledger_->find(id);
    EXPECT_EQ(info.has_value(), id != damaged);
    if (!info) continue;
    EXPECT_EQ(info->state, JobState::kDone);
  }
}

TEST_F(QuarantineTest, ALeaseOfAJobThatCannotBeReadRunsOutIntoQuarantineAlsoOverACrash) {
  make_store(disk_);
  const auto crashed = [&](SimulatedDisk& disk) {
    disk.halt();
    ledger_.reset();
    held_.clear();
    disk.crash({.unsynced = support::Survival::kEverything});
  };
  clock_.advance(60'000);
  ledger_->subscribe(1, {.queues = {{"default", 1}}, .credit = kJobs, .lease = Milliseconds(600'000)}, {});
  ASSERT_EQ(step(), static_cast<std::size_t>(kJobs));
  const JobId damaged = damage_one(disk_);
  const auto image = disk_.clone();
  held_.clear();
  clock_.advance(700'000);
  ASSERT_TRUE(ledger_->begin());
  const Status expired = ledger_->expire_leases();
  ASSERT_TRUE(expired) << expired.error().message;
  ASSERT_TRUE(ledger_->commit());
  EXPECT_EQ(ledger_->find(damaged).value().dead_reason, DeadReason::kDamaged);
  EXPECT_EQ(ledger_->audit().details.at("running"), 0u);
  crashed(disk_);

  image->crash({.unsynced = support::Survival::kEverything});
  open(*image);
  EXPECT_EQ(ledger_->open_report().crashed_attempts, kJobs - 1u);
  EXPECT_EQ(ledger_->find(damaged).value().dead_reason, DeadReason::kDamaged);
  EXPECT_EQ(ledger_->audit().details.at("quarantined"), 1u);
  crashed(*image);
}

TEST_F(QuarantineTest, WithoutDescriptorsNothingIsQuarantinedAndNothingEnds) {
  FewDescriptors few(disk_);
  make_store(disk_);
  ledger_.reset();
  open(few);
  subscribe();
  few.none_left = true;
  clock_.advance(60'000);
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(step(), 0u);
    if (HasFailure()) return;
    // New segments and snapshots are wanted meanwhile.
    ASSERT_TRUE(ledger_->begin());
    const auto result = ledger_->enqueue(EnqueueBatch::of({{.kind = "work", .queue = "other", .body = std::string(900, 'o')}}, {}));
    ASSERT_TRUE(result.front());
    ASSERT_TRUE(ledger_->commit());
  }
  const auto wake = ledger_->next_wake_us();
  ASSERT_TRUE(wake);
  few.none_left = false;
  clock_.advance(std::chrono::microseconds(std::max<std::int64_t>(0, *wake - clock_.now().elapsed_us)));
  work_until_idle();
  clock_.advance(1000);
  work_until_idle();
  EXPECT_TRUE(told_.empty());
  for (const auto& [id, body] : bodies_) EXPECT_EQ(ledger_->find(id).value().state, JobState::kDone);
  ledger_.reset();
  open(few);
  EXPECT_TRUE(ledger_->audit().ok());
  EXPECT_EQ(ledger_->open_report().crashed_attempts, 0u);
}

}  // namespace
}  // namespace bide::engine
