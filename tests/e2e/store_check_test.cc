// The offline checker against stores made by the engine: it must agree with the engine's own audit, and find what was
// spoiled where it was spoiled.

#include <gtest/gtest.h>

#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bide/wait.h"
#include "engine/check/check_store.h"
#include "engine/engine.h"
#include "support/temporary_directory.h"

namespace bide::engine::check {
namespace {

using namespace std::chrono_literals;

class StoreCheck : public ::testing::Test {
 protected:
  std::unique_ptr<Engine> open(EngineOptions options = {}) {
    options.directory = directory_.path();
    return Engine::open(std::move(options)).value();
  }

  static std::vector<JobId> enqueue(Engine& engine, std::vector<Job> jobs) {
    std::vector<JobId> ids;
    const auto answer = wait<std::vector<Result<Enqueued>>>(
        [&](auto done) { engine.enqueue(std::move(jobs), std::move(done)); });
    for (const auto& each : answer.value()) ids.push_back(each.value().id);
    return ids;
  }

  // Settles the next `count` leases of the queue as `outcome` says; before that it cancels them, if it is to.
  static void settle(Engine& engine, const std::string& queue, std::size_t count, const Outcome& outcome,
                     bool cancel = false) {
    std::mutex mutex;
    std::condition_variable arrived;
    std::vector<Lease> leases;
    {
      SubscribeOptions options;
      options.queues = {{queue, 1}};
      options.credit = static_cast<int>(count);
      const auto subscription = engine.subscribe(options, [&](std::vector<Lease> some) {
        std::lock_guard lock(mutex);
        for (Lease& lease : some) leases.push_back(std::move(lease));
        arrived.notify_one();
      });
      ASSERT_TRUE(subscription.has_value());
      std::unique_lock lock(mutex);
      arrived.wait(lock, [&] { return leases.size() == count; });
    }
    std::vector<Settlement> settlements;
    for (const Lease& lease : leases) {
      if (cancel) (void)wait<std::vector<Status>>([&](auto done) { engine.cancel({lease.job.id}, {}, std::move(done)); });
      settlements.push_back({.lease = {lease.job.id, lease.token}, .outcome = outcome, .effects = {}});
    }
    const auto settled =
        wait<std::vector<Status>>([&](auto done) { engine.settle(std::move(settlements), std::move(done)); });
    for (const Status& status : settled.value()) ASSERT_TRUE(status.has_value());
  }

  static Job job(const std::string& body, Milliseconds delay = Milliseconds(0), const std::string& queue = "default") {
    Job made;
    made.kind = "k";
    made.queue = queue;
    made.body = body;
    made.delay = delay;
    return made;
  }

  // A job in every state but running, and every way of removing one.
  void fill(Engine& engine) {
    std::vector<Job> jobs;
    for (int i = 0; i < 20; ++i) jobs.push_back(job("work " + std::to_string(i)));
    for (int i = 0; i < 10; ++i) jobs.push_back(job("later " + std::to_string(i), 1h, "later"));
    for (int i = 0; i < 3; ++i) jobs.push_back(job("purged", 1h, "purged"));
    const std::vector<JobId> ids = enqueue(engine, std::move(jobs));
    settle(engine, "default", 12, Done{.result = "fine"});
    settle(engine, "default", 3, Dead{.reason = DeadReason::kRejected, .error = "no"});
    settle(engine, "default", 2, RetryAt{.after = 1h, .error = "again"});
    settle(engine, "default", 1, RetryAt{.after = 1h, .error = "again", .body = "a new body"});
    settle(engine, "default", 1, RetryAt{.after = 1h}, true);
    (void)wait<std::vector<Status>>([&](auto done) { engine.cancel({ids[20], ids[21]}, {}, std::move(done)); }).value();
    (void)wait<std::uint64_t>([&](auto done) { engine.purge("purged", std::move(done)); }).value();
  }

  AuditReport audit(Engine& engine) {
    return wait<AuditReport>([&](auto done) { engine.audit(std::move(done)); }).value();
  }

  // A store whose journal has been compacted and which has a snapshot; its audit.
  AuditReport make_snapshot() {
    EngineOptions options;
    options.segment_bytes = 64 << 10;
    options.snapshot_bytes = 128 << 10;
    options.reserve_bytes = 1 << 20;
    options.done_limit = 10;
    auto engine = open(options);
    fill(*engine);
    for (int round = 0; round < 20; ++round) {
      std::vector<Job> jobs;
      for (int i = 0; i < 100; ++i) jobs.push_back(job(std::string(200, 'x'), Milliseconds(0), "many"));
      jobs.push_back(job("stays", 1h, "later"));
      enqueue(*engine, std::move(jobs));
      settle(*engine, "many", 100, Done{});
      engine->tidy_up();
    }
    return audit(*engine);
  }

  StoreReport check() { return check_store(platform::real_disk(), directory_.path()).value(); }

  static void expect_agreement(const StoreReport& report, AuditReport audit) {
    for (const Finding& finding : report.findings) {
      ADD_FAILURE() << finding.file << " " << finding.offset << ": " << finding.text;
    }
    EXPECT_TRUE(report.jobs_complete);
    EXPECT_EQ(report.accepted, audit.accepted);
    EXPECT_EQ(report.done, audit.done);
    EXPECT_EQ(report.cancelled, audit.details["cancelled"]);
    EXPECT_EQ(report.purged, audit.details["purged"]);
    EXPECT_EQ(report.waiting, audit.details["scheduled"] + audit.details["ready"]);
    EXPECT_EQ(report.running, audit.details["running"]);
    EXPECT_EQ(report.dead, audit.details["dead"]);
    EXPECT_EQ(report.waiting + report.running + report.dead, audit.live);
  }

  // Paths within the directory, in the order of their names.
  std::vector<std::string> files(const std::string& folder, const std::string& prefix = "") {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path() + "/" + folder)) {
      const std::string name = entry.path().filename();
      if (name.starts_with(prefix) && name != "synced") found.push_back(folder + name);
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  std::string first_segment() { return files("journal/").front(); }
  std::string last_segment() { return files("journal/").back(); }
  static std::uint64_t base_of(const std::string& segment) {
    return std::stoull(segment.substr(std::string("journal/").size()), nullptr, 16);
  }

  std::string read(const std::string& name) {
    std::ifstream file(directory_.path() + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  void write(const std::string& name, const std::string& content) {
    std::ofstream(directory_.path() + "/" + name, std::ios::binary | std::ios::trunc) << content;
  }

  support::TemporaryDirectory directory_;
};

TEST_F(StoreCheck, AStoreOfTheEngineIsCleanAndAgreesWithItsAudit) {
  auto engine = open();
  fill(*engine);
  const AuditReport before = audit(*engine);
  engine.reset();
  const StoreReport report = check();
  expect_agreement(report, before);
  EXPECT_EQ(report.segments, 1u);
  EXPECT_GT(report.records_by_type.at("accepted"), 0u);
  EXPECT_GT(report.records_by_type.at("done"), 0u);
  EXPECT_GT(report.records_by_type.at("cancel asked"), 0u);
}

TEST_F(StoreCheck, SnapshotsAndCompactedSegmentsAgreeToo) {
  const AuditReport before = make_snapshot();
  const StoreReport report = check();
  ASSERT_TRUE(report.snapshot_address.has_value());
  EXPECT_GT(report.records_by_type.at("moved"), 0u);
  expect_agreement(report, before);
}

TEST_F(StoreCheck, AnOpenStoreIsRefusedWithThePidOfItsOwner) {
  const auto engine = open();
  const auto report = check_store(platform::real_disk(), directory_.path());
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::kBusy);
  EXPECT_NE(report.error().message.find(std::to_string(::getpid())), std::string::npos);
}

TEST_F(StoreCheck, ADirectoryWithoutAStoreIsNotFound) {
  const auto report = check_store(platform::real_disk(), directory_.path());
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::kNotFound);
}

// Every byte up to the end of the last whole batch is covered by some checksum.
TEST_F(StoreCheck, AFlippedBitIsFoundInTheBatchWhereItIs) {
  auto engine = open();
  fill(*engine);
  engine.reset();
  const std::string name = first_segment();
  const std::string good = read(name);
  const std::uint64_t end = check().journal_bytes;
  ASSERT_LE(end, good.size());
  // Not the very last batch, the mark: nothing behind it says that it had been synced.
  for (std::uint64_t offset = 0; offset + 64 < end; offset += 7) {
    std::string bad = good;
    bad[offset] = static_cast<char>(bad[offset] ^ (1 << (offset % 8)));
    write(name, bad);
    const StoreReport report = check();
    ASSERT_TRUE(report.damaged()) << "offset " << offset;
    const Finding& first = report.findings.front();
    EXPECT_EQ(first.file, name);
    EXPECT_LE(first.offset, offset);
    // The damaged place is told by the batch or record that begins before it, not by one before that.
    const auto next = good.find("BTCH", first.offset + 4);
    EXPECT_TRUE(next == std::string::npos || offset < next + 4 || first.offset == 0) << offset << " " << first.offset;
  }
  write(name, good);
  EXPECT_FALSE(check().damaged());
}

TEST_F(StoreCheck, AnEndThatIsNotWholeIsATornTailAndNoDamage) {
  auto engine = open();
  fill(*engine);
  engine.reset();
  const std::string name = first_segment();
  const std::string good = read(name);
  const std::uint64_t end = check().journal_bytes;
  std::string torn = good.substr(0, end) + "BTCH" + std::string(100, 'x');
  write(name, torn);
  const StoreReport report = check();
  EXPECT_FALSE(report.damaged());
  EXPECT_TRUE(report.jobs_complete);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings.front().kind, Finding::Kind::kTornTail);
  EXPECT_EQ(report.findings.front().offset, end);
}

TEST_F(StoreCheck, ASpoiledSnapshotIsFoundInItsBlock) {
  make_snapshot();
  const std::string name = files("", "snapshot-").back();
  std::string bad = read(name);
  bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 1);
  write(name, bad);
  const StoreReport report = check();
  ASSERT_TRUE(report.damaged());
  EXPECT_EQ(report.findings.front().file, name);
  EXPECT_LE(report.findings.front().offset, bad.size() / 2);
}

TEST_F(StoreCheck, AJournalThatEndsBeforeTheSnapshotIsDamaged) {
  make_snapshot();
  const std::uint64_t snapshot = check().snapshot_address.value();
  while (base_of(last_segment()) > snapshot) std::filesystem::remove(directory_.path() + "/" + last_segment());
  const std::string holds_it = last_segment();
  ASSERT_GT(snapshot - base_of(holds_it), 64u);
  write(holds_it, read(holds_it).substr(0, 64));
  EXPECT_TRUE(check().damaged());
}

TEST_F(StoreCheck, ASegmentThatWasRenamedIsDamage) {
  auto engine = open();
  fill(*engine);
  engine.reset();
  std::filesystem::rename(directory_.path() + "/" + first_segment(), directory_.path() + "/journal/0000000000001000.seg");
  EXPECT_TRUE(check().damaged());
}

}  // namespace
}  // namespace bide::engine::check
