// Backups of a store that is open, on the real disk: whole, of one point in time, and never in the way.

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bide/wait.h"
#include "engine/backup.h"
#include "engine/check/check_store.h"
#include "engine/engine.h"
#include "support/ledger_fixture.h"
#include "support/temporary_directory.h"

namespace bide::engine {
namespace {

namespace fs = std::filesystem;

class Backups : public testing::Test {
 protected:
  void open(std::uint64_t segment_bytes = 1 << 20) {
    auto opened = Engine::open({.directory = store_, .reserve_bytes = 0, .segment_bytes = segment_bytes});
    ASSERT_TRUE(opened) << opened.error().message;
    engine_ = std::move(*opened);
  }
  void enqueue(std::size_t many, std::size_t bytes = 1000) {
    const auto answers = wait<std::vector<Result<Enqueued>>>([&](auto done) {
      engine_->enqueue(std::vector<Job>(many, Job{.kind = "k", .body = std::string(bytes, 'x')}), std::move(done));
    });
    ASSERT_TRUE(answers);
  }
  // Waits until it has come to its end.
  BackupInfo back_up() {
    const Status begun = wait<void>([&](auto done) { engine_->backup(target_, std::move(done)); });
    EXPECT_TRUE(begun) << begun.error().message;
    return ended();
  }
  BackupInfo ended() {
    for (;;) {
      const auto info = *wait<BackupInfo>([&](auto done) { engine_->backup_info(std::move(done)); });
      if (info.finished) return info;
      std::this_thread::yield();
    }
  }
  AuditReport audit_of(const std::string& directory) {
    auto opened = Engine::open({.directory = directory, .reserve_bytes = 0});
    EXPECT_TRUE(opened) << opened.error().message;
    return *wait<AuditReport>([&](auto done) { (*opened)->audit(std::move(done)); });
  }
  void expect_sound(const std::string& directory) {
    const auto report = check::check_store(platform::real_disk(), directory);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_FALSE(report->damaged()) << report->findings.front().text;
    EXPECT_TRUE(report->jobs_complete);
  }

  support::TemporaryDirectory directory_;
  const std::string store_ = directory_.path() + "/store";
  const std::string target_ = directory_.path() + "/backup";
  std::unique_ptr<Engine> engine_;
};

TEST_F(Backups, OneOfAnOpenStoreIsWholeAndOpens) {
  open();
  enqueue(5'000);
  const BackupInfo made = back_up();
  ASSERT_EQ(made.state, BackupState::kDone) << made.error;
  EXPECT_EQ(made.live_jobs, 5'000u);
  EXPECT_EQ(made.copied_bytes + made.linked_bytes, made.bytes);
  EXPECT_GT(made.linked_bytes, made.copied_bytes);  // One file system: only the last segment is copied.
  enqueue(10);                                      // Not in it.
  expect_sound(target_);
  EXPECT_EQ(audit_of(target_).live, 5'000u);
  EXPECT_FALSE(fs::exists(target_ + ".unfinished"));
}

TEST_F(Backups, OnesThatAreMadeWhileJobsComeHoldAllThatWereConfirmedBefore) {
  open(256 << 10);
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> confirmed = 0;
  std::thread writer([&] {
    while (!stop) {
      enqueue(20);
      confirmed += 20;
    }
  });
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t before = confirmed;
    const BackupInfo made = back_up();
    ASSERT_EQ(made.state, BackupState::kDone) << made.error;
    EXPECT_GE(made.live_jobs, before);
    expect_sound(target_);
  }
  stop = true;
  writer.join();
  const AuditReport audit = audit_of(target_);
  EXPECT_TRUE(audit.ok());
  EXPECT_LE(audit.live, confirmed);
}

TEST_F(Backups, ASecondOneCopiesOnlyWhatIsNew) {
  open();
  enqueue(5'000);
  ASSERT_EQ(back_up().state, BackupState::kDone);
  // As on another file system: what is there must be found by its content, and cannot be a link to the store.
  for (const auto& each : fs::directory_iterator(target_ + "/journal")) {
    fs::copy_file(each.path(), each.path().string() + "x");
    fs::rename(each.path().string() + "x", each.path());
  }
  enqueue(2'000);
  const BackupInfo second = back_up();
  ASSERT_EQ(second.state, BackupState::kDone) << second.error;
  EXPECT_EQ(second.live_jobs, 7'000u);
  EXPECT_LT(second.copied_bytes, second.bytes / 2);
  EXPECT_FALSE(fs::exists(target_ + ".previous"));
  expect_sound(target_);
}

class PlannedBackups : public LedgerFixture {
 protected:
  void SetUp() override {
    open_ledger({.directory = "", .segment_bytes = 64 << 10, .snapshot_bytes = 1});
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(ledger_->begin());
      (void)ledger_->enqueue(EnqueueBatch::of(std::vector<Job>(20, Job{.kind = "k", .body = std::string(1000, 'x')}), Time()));
      end_step();
    }
  }
  void tidy() {
    while (ledger_->tidy().value()) ledger_->take_garbage()();
    ledger_->take_garbage()();
  }
  void purge() {
    ASSERT_TRUE(ledger_->begin());
    ledger_->purge("default", [](const auto&) {});
    end_step();
    while (ledger_->has_tasks()) {
      ASSERT_TRUE(ledger_->begin());
      end_step();
    }
  }
  std::size_t missing(const BackupPlan& plan) {
    std::size_t missing = 0;
    for (const StoreFile& file : plan.files) missing += disk_.exists("/store/" + file.name).value() ? 0 : 1;
    return missing;
  }
};

TEST_F(PlannedBackups, FilesThatCompactionDoesWithoutAreKeptUntilTheEnd) {
  tidy();
  const auto plan = ledger_->begin_backup();
  ASSERT_TRUE(plan);
  ASSERT_GT(plan->files.size(), 3u);
  purge();
  tidy();
  EXPECT_EQ(missing(*plan), 0u);
  ledger_->end_backup();
  ledger_->take_garbage()();
  EXPECT_GE(missing(*plan), 3u);
}

TEST_F(PlannedBackups, WhatIsCollectedAndNotWrittenIsNotInThem) {
  ASSERT_TRUE(ledger_->begin());
  const std::uint64_t end = ledger_->journal().written();
  (void)ledger_->enqueue(EnqueueBatch::of({Job{.kind = "late"}}, Time()));
  const auto plan = ledger_->begin_backup();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->end, end);
  ledger_->end_backup();
  end_step();
}

TEST_F(Backups, NothingElseIsOverwritten) {
  open();
  enqueue(10);
  fs::create_directories(target_);
  std::ofstream(target_ + "/letter") << "dear";
  const Status refused = wait<void>([&](auto done) { engine_->backup(target_, std::move(done)); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kAlreadyExists);
  EXPECT_TRUE(fs::exists(target_ + "/letter"));

  // A store in which somebody has worked is none either.
  fs::remove(target_ + "/letter");
  ASSERT_EQ(back_up().state, BackupState::kDone);
  (void)audit_of(target_);
  const Status used = wait<void>([&](auto done) { engine_->backup(target_, std::move(done)); });
  ASSERT_FALSE(used);
  EXPECT_EQ(used.error().code, ErrorCode::kAlreadyExists);
}

TEST_F(Backups, APlaceWithinTheStoreIsRefused) {
  open();
  for (const std::string& target : {store_, store_ + "/backup", std::string("backup"), std::string("/")}) {
    const Status refused = wait<void>([&](auto done) { engine_->backup(target, std::move(done)); });
    ASSERT_FALSE(refused) << target;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument) << target;
  }
}

TEST_F(Backups, OneThatWasInterruptedSaysThatItIsNotCompleteAndTheNextTakesItsPlace) {
  open();
  enqueue(2'000);
  ASSERT_EQ(back_up().state, BackupState::kDone);
  enqueue(2'000);
  // The plan is carried out by hand, and stopped by its second pause.
  const auto plan = plan_backup(store_);
  ASSERT_TRUE(plan);
  BackupPlan copied = *plan;
  for (StoreFile& file : copied.files) file.is_final = false;
  int pauses = 0;
  const auto broken = write_backup(store_, copied, {.target = target_}, {.pause = [&](auto) { return ++pauses < 2; }});
  ASSERT_FALSE(broken);
  const std::string unfinished = target_ + ".unfinished";
  const auto report = check::check_store(platform::real_disk(), unfinished);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->damaged());
  const auto opened = Engine::open({.directory = unfinished, .reserve_bytes = 0});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kDamaged);
  expect_sound(target_);  // The one before is whole still.

  const BackupInfo made = back_up();
  ASSERT_EQ(made.state, BackupState::kDone) << made.error;
  EXPECT_EQ(made.live_jobs, 4'000u);
  EXPECT_FALSE(fs::exists(unfinished));
}

TEST_F(Backups, OneIsMadeAtATime) {
  open();
  enqueue(5'000);
  ASSERT_TRUE(wait<void>([&](auto done) { engine_->backup(target_, std::move(done)); }));
  const Status second = wait<void>([&](auto done) { engine_->backup(target_ + "2", std::move(done)); });
  if (!second) {
    EXPECT_EQ(second.error().code, ErrorCode::kBusy);
  }
  EXPECT_EQ(ended().state, BackupState::kDone);
}

TEST_F(Backups, AClosedStoreIsBackedUpWithoutOpeningIt) {
  open();
  enqueue(1'000);
  engine_.reset();
  const auto plan = plan_backup(store_);
  ASSERT_TRUE(plan);
  const auto made = write_backup(store_, *plan, {.target = target_}, {});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->live_jobs, 1'000u);
  EXPECT_EQ(audit_of(target_).live, 1'000u);
}

}  // namespace
}  // namespace bide::engine
