// A run of 500 operations, and the power lost at every write and every sync of it, in three ways. Whatever had been
// confirmed before that moment must be there afterwards.

#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "engine/ledger.h"
#include "support/seeded_random.h"
#include "support/simulated_disk.h"
#include "support/virtual_clock.h"

namespace bide::engine {
namespace {

using support::CrashOptions;
using support::SimulatedDisk;
using support::Survival;

enum class Fate { kLive, kDone, kDead, kGone };

class CrashImages : public ::testing::Test {
 protected:
  static constexpr int kOperations = 500;

  EngineOptions options(platform::Disk& disk, platform::Random& random) {
    EngineOptions options;
    options.directory = "/store";
    options.segment_bytes = 16 << 10;
    options.snapshot_bytes = 12 << 10;
    options.reserve_bytes = 64 << 10;
    options.max_crashes = 1'000'000;
    options.disk = &disk;
    options.clock = &clock_;
    options.random = &random;
    return options;
  }

  void open() { ledger_ = std::move(Ledger::open(options(disk_, random_))).value(); }

  Job make_job() {
    Job job;
    job.kind = "work";
    job.body = std::string(random_.next_below(300), static_cast<char>('a' + random_.next_below(26)));
    job.retry = RetryPolicy::fixed(Milliseconds(5), 10'000);
    if (random_.chance(0.2)) job.delay = Milliseconds(static_cast<std::int64_t>(random_.next_below(50)));
    std::array<std::uint8_t, JobId::kSize> bytes;
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random_.next());
    job.id = JobId(bytes);
    return job;
  }

  void enqueue() {
    std::vector<Job> jobs;
    for (std::uint64_t left = random_.chance(0.1) ? 8 : 1; left > 0; --left) jobs.push_back(make_job());
    for (const auto& result : ledger_->enqueue(engine::EnqueueBatch::of(std::move(jobs), {}))) {
      ASSERT_TRUE(result);
      pending_[result->id] = Fate::kLive;
    }
  }

  void settle() {
    if (leases_.empty()) return;
    const std::size_t index = random_.next_below(leases_.size());
    const LeaseRef lease = leases_[index];
    leases_.erase(leases_.begin() + static_cast<std::ptrdiff_t>(index));
    Settlement settlement{.lease = lease, .outcome = Done{.result = "result"}};
    Fate fate = Fate::kDone;
    if (random_.chance(0.3)) {
      settlement.outcome = RetryAt{.after = Milliseconds(3), .error = "again"};
      fate = Fate::kLive;
    } else if (random_.chance(0.2)) {
      settlement.outcome = Dead{.error = "no"};
      fate = Fate::kDead;
    }
    if (random_.chance(0.4)) {
      const Job effect = make_job();
      settlement.effects = {effect};
      pending_[effect.id] = Fate::kLive;
      if (fate == Fate::kDone) effects_of_[lease.id] = effect.id;
    }
    ASSERT_TRUE(ledger_->settle(engine::SettleBatch::of({settlement}, {})).front());
    pending_[lease.id] = fate;
  }

  void cancel_or_replay() {
    for (const auto& [id, fate] : confirmed_) {
      if (fate != Fate::kDead || pending_.contains(id)) continue;
      if (random_.chance(0.5)) {
        ASSERT_TRUE(ledger_->cancel({id}).front());
        pending_[id] = Fate::kGone;
      } else {
        ASSERT_TRUE(ledger_->replay({id}, {}).front());
        pending_[id] = Fate::kLive;
      }
      return;
    }
  }

  void confirm() {
    for (const auto& [id, fate] : pending_) confirmed_[id] = fate;
    pending_.clear();
    effects_of_.clear();
  }

  void run() {
    open();
    ledger_->subscribe(1, {.queues = {{"default", 1}}, .credit = 20, .lease = Milliseconds(60'000)}, {});
    for (int operation = 0; operation < kOperations; ++operation) {
      clock_.advance(static_cast<std::int64_t>(random_.next_below(4)));
      ASSERT_TRUE(ledger_->begin());
      const std::uint64_t which = random_.next_below(10);
      if (which < 4) {
        enqueue();
      } else if (which < 9) {
        settle();
      } else {
        cancel_or_replay();
      }
      const auto deliveries = ledger_->grant();
      ASSERT_TRUE(deliveries);
      ASSERT_TRUE(ledger_->commit());
      confirm();
      for (const Delivery& delivery : *deliveries) {
        for (const Lease& lease : delivery.leases) leases_.push_back({lease.job.id, lease.token});
      }
      ASSERT_TRUE(ledger_->tidy());
      if (HasFatalFailure()) return;
    }
  }

  // What became of the job, as the ledger tells it.
  static Fate fate_in(Ledger& ledger, const JobId& id) {
    const auto info = ledger.find(id);
    if (!info) return Fate::kGone;
    return info->state == JobState::kDone ? Fate::kDone : info->state == JobState::kDead ? Fate::kDead : Fate::kLive;
  }

  void check(SimulatedDisk& image) {
    support::SeededRandom random(images_);
    auto opened = Ledger::open(options(image, random));
    ASSERT_TRUE(opened) << opened.error().message;
    Ledger& ledger = **opened;
    const AuditReport audit = ledger.audit();
    ASSERT_TRUE(audit.ok()) << audit.problems.front();
    torn_tails_ += ledger.open_report().torn_tails.size();
    for (const auto& [id, fate] : confirmed_) {
      const auto pending = pending_.find(id);
      const Fate found = fate_in(ledger, id);
      if (pending != pending_.end() && found == pending->second) continue;
      ASSERT_EQ(found, fate) << "job " << id.to_string();
    }
    for (const auto& [id, effect] : effects_of_) {
      ASSERT_EQ(fate_in(ledger, id) == Fate::kDone, fate_in(ledger, effect) == Fate::kLive)
          << "the effect of job " << id.to_string() << " is apart from its outcome";
    }
    ++images_;
  }

  support::SeededRandom random_{20240229};
  SimulatedDisk disk_{7};
  support::VirtualClock clock_;
  std::unique_ptr<Ledger> ledger_;
  std::vector<LeaseRef> leases_;
  std::map<JobId, Fate> confirmed_;
  std::map<JobId, Fate> pending_;      // If the operation under way is done.
  std::map<JobId, JobId> effects_of_;  // Of operations under way.
  std::uint64_t images_ = 0;
  std::uint64_t torn_tails_ = 0;
};

TEST_F(CrashImages, EverythingConfirmedIsThereAfterACrashAtAnyWriteOrSync) {
  std::uint64_t boundaries = 0;
  disk_.on_operation([&](const support::OperationInfo&) {
    if (HasFatalFailure()) return;
    ++boundaries;
    for (const Survival survival : {Survival::kEverything, Survival::kNothing, Survival::kChance}) {
      const auto image = disk_.clone();
      image->crash({.unsynced = survival, .seed = boundaries});
      check(*image);
      if (HasFatalFailure()) {
        ADD_FAILURE() << "at boundary " << boundaries << ", survival " << static_cast<int>(survival);
        return;
      }
    }
  });
  run();
  disk_.on_operation(nullptr);
  EXPECT_GT(boundaries, 1000u);
  EXPECT_EQ(images_, boundaries * 3);
  EXPECT_GT(torn_tails_, 10u);
  EXPECT_GT(ledger_->journal().segments().size(), 1u);
  EXPECT_GT(confirmed_.size(), 200u);
}

}  // namespace
}  // namespace bide::engine
