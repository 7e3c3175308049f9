// Jobs that wait for others, by chance: enqueued, settled, cancelled, edited and replayed, with crashes and snapshots between, beside a
// model that knows what each of them must be.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/ledger_fixture.h"

namespace bide::engine {
namespace {

using support::Survival;

struct Known {
  std::set<JobId> waits_for = {};
  AfterDeath after_death = AfterDeath::kHold;
  enum class Phase { kLive, kDone, kDead, kGone } phase = Phase::kLive;
  std::uint64_t token = 0;  // Not 0: it runs.
  std::size_t body = 0;
  std::vector<Step> steps = {};
};

class LedgerFlows : public LedgerFixture, public ::testing::WithParamInterface<int> {
 protected:
  using Phase = Known::Phase;

  void SetUp() override {
    chance_ = support::SeededRandom(static_cast<std::uint64_t>(GetParam()));
    open();
  }
  std::uint64_t below(std::uint64_t end) { return chance_.next() % end; }

  void open() {
    EngineOptions options;
    options.segment_bytes = 32 << 10;
    options.snapshot_bytes = 4 << 10;
    options.piece = 1 + below(8);
    open_ledger(options);
    ledger_->subscribe(1, {.credit = 20, .outlives_process = true}, [](const std::vector<Lease>&) {});
  }

  void step() {
    ASSERT_TRUE(ledger_->begin());
    for (const Lease& lease : end_step()) {
      Known& job = jobs_.at(lease.job.id);
      EXPECT_EQ(job.phase, Phase::kLive);
      EXPECT_TRUE(job.waits_for.empty()) << "it was to wait";
      EXPECT_EQ(lease.job.body.size(), job.body);
      EXPECT_EQ(lease.steps, job.steps);
      job.token = lease.token;
    }
  }
  template <class F>
  const JobId* pick(F fits) {
    std::vector<const JobId*> fitting;
    for (const auto& [id, job] : jobs_) {
      if (fits(job)) fitting.push_back(&id);
    }
    return fitting.empty() ? nullptr : fitting[below(fitting.size())];
  }

  // What becomes of those that wait for a job.
  void finish(const JobId& id) {
    for (auto& [other, job] : jobs_) job.waits_for.erase(id);
  }
  void end_badly(const JobId& id, bool gone) {
    for (auto& [other, job] : jobs_) {
      if (job.phase != Phase::kLive || !job.waits_for.contains(id)) continue;
      if (job.after_death == AfterDeath::kRun) {
        job.waits_for.erase(id);
      } else if (gone || job.after_death == AfterDeath::kCancel) {
        job.phase = Phase::kGone;
        end_badly(other, true);
      }
    }
  }

  void enqueue() {
    std::vector<Job> jobs(1 + below(4));
    for (Job& job : jobs) {
      std::array<std::uint8_t, JobId::kSize> bytes;
      for (auto& byte : bytes) byte = static_cast<std::uint8_t>(chance_.next());
      job.id = JobId(bytes);
      job.kind = "work";
      job.body = std::string(below(500), 'x');
      job.after_death = static_cast<AfterDeath>(below(3));
    }
    std::map<JobId, Known> made;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      Known known{.after_death = jobs[i].after_death, .body = jobs[i].body.size()};
      std::set<JobId> after;
      for (std::uint64_t left = below(4); left > 0; --left) {
        const JobId* other = pick([&](const Known& job) {
          return job.phase != Phase::kGone && !(job.phase == Phase::kDead && jobs[i].after_death == AfterDeath::kCancel);
        });
        if (other != nullptr) after.insert(*other);
      }
      if (i > 0 && below(2) == 0) after.insert(jobs[below(i)].id);
      jobs[i].after.assign(after.begin(), after.end());
      for (const JobId& id : after) {
        const auto before = jobs_.find(id);
        const Phase phase = before == jobs_.end() ? Phase::kLive : before->second.phase;
        const bool counts = phase == Phase::kLive || (phase == Phase::kDead && jobs[i].after_death == AfterDeath::kHold);
        if (counts) known.waits_for.insert(id);
      }
      made.emplace(jobs[i].id, std::move(known));
    }
    std::swap(jobs.front(), jobs.back());  // Those of one call come in any order.
    ASSERT_TRUE(ledger_->begin());
    for (const auto& result : ledger_->enqueue(EnqueueBatch::of(std::move(jobs), {}))) {
      ASSERT_TRUE(result) << result.error().message;
    }
    ASSERT_TRUE(ledger_->commit());
    jobs_.merge(made);
  }
  void settle() {
    const JobId* id = pick([](const Known& job) { return job.token != 0; });
    if (id == nullptr) return;
    Known& job = jobs_.at(*id);
    const Outcome outcomes[] = {Done{}, Done{}, Done{}, Dead{.error = "no"}, Returned{}, RetryAt{.error = "again"}};
    const Outcome outcome = outcomes[below(std::size(outcomes))];
    ASSERT_TRUE(ledger_->begin());
    ASSERT_TRUE(ledger_->settle(SettleBatch::of({{.lease = {*id, job.token}, .outcome = outcome}}, {})).at(0));
    ASSERT_TRUE(ledger_->commit());
    job.token = 0;
    if (std::holds_alternative<Done>(outcome)) {
      job.phase = Phase::kDone;
      finish(*id);
    } else if (std::holds_alternative<Dead>(outcome)) {
      job.phase = Phase::kDead;
      end_badly(*id, false);
    }
  }
  void save_step() {
    const JobId* id = pick([](const Known& job) { return job.token != 0 && job.steps.size() < 3; });
    if (id == nullptr) return;
    Known& job = jobs_.at(*id);
    job.steps.push_back({"step " + std::to_string(job.steps.size()), std::string(below(50), 's')});
    ASSERT_TRUE(ledger_->begin());
    ASSERT_TRUE(ledger_->save_step({*id, job.token}, job.steps.back()));
    ASSERT_TRUE(ledger_->commit());
  }
  void cancel() {
    const JobId* id = pick([](const Known& job) {
      return job.token == 0 && (job.phase == Phase::kLive || job.phase == Phase::kDead);
    });
    if (id == nullptr) return;
    ASSERT_TRUE(ledger_->begin());
    ASSERT_TRUE(ledger_->cancel({*id}).at(0));
    ASSERT_TRUE(ledger_->commit());
    jobs_.at(*id).phase = Phase::kGone;
    end_badly(*id, true);
  }
  void edit() {
    const JobId* id = pick([](const Known& job) {
      return job.token == 0 && (job.phase == Phase::kLive || job.phase == Phase::kDead);
    });
    if (id == nullptr) return;
    const std::size_t bytes = below(500);
    ASSERT_TRUE(ledger_->begin());
    ASSERT_TRUE(ledger_->edit(*id, {.body = std::string(bytes, 'e')}));
    ASSERT_TRUE(ledger_->commit());
    jobs_.at(*id).body = bytes;
  }
  void replay() {
    const JobId* id = pick([](const Known& job) { return job.phase == Phase::kDead; });
    if (id == nullptr) return;
    ASSERT_TRUE(ledger_->begin());
    ASSERT_TRUE(ledger_->replay({*id}, {}).at(0));
    ASSERT_TRUE(ledger_->commit());
    jobs_.at(*id).phase = Phase::kLive;
  }
  // Whoever is to be told has been.
  void quiet() {
    while (ledger_->state().relations().has_ended() || ledger_->state().relations().has_to_cancel()) step();
    step();
  }
  void compare() {
    for (const auto& [id, job] : jobs_) {
      const auto info = ledger_->find(id);
      if (job.phase == Phase::kGone) {
        EXPECT_FALSE(info) << id.to_string() << " is " << to_string(info->state);
        continue;
      }
      ASSERT_TRUE(info) << id.to_string();
      JobState expected = job.token != 0 ? JobState::kRunning : JobState::kReady;
      if (!job.waits_for.empty()) expected = JobState::kWaiting;
      if (job.phase == Phase::kDone) expected = JobState::kDone;
      if (job.phase == Phase::kDead) expected = JobState::kDead;
      EXPECT_EQ(info->state, expected) << id.to_string() << " is " << to_string(info->state);
      if (expected == JobState::kWaiting) {
        EXPECT_EQ(info->waits_for, job.waits_for.size());
      }
      if (expected != JobState::kDone) {
        EXPECT_EQ(info->job.body.size(), job.body);
        EXPECT_EQ(info->steps, job.steps);
      }
    }
    const AuditReport report = ledger_->audit();
    EXPECT_TRUE(report.ok()) << report.problems.front();
  }

  support::SeededRandom chance_{0};
  std::map<JobId, Known> jobs_;
};

TEST_P(LedgerFlows, AreWhatTheirModelSaysWhateverHappens) {
  for (int round = 0; round < 400 && !HasFailure(); ++round) {
    switch (below(12)) {
      case 0:
      case 1: enqueue(); break;
      case 2:
      case 3:
      case 4: settle(); break;
      case 5: save_step(); break;
      case 6: below(3) == 0 ? cancel() : edit(); break;
      case 7: replay(); break;
      case 8:
        if (below(2) == 0) quiet();
        for (std::uint64_t left = below(2) == 0 ? 1 : 20; left > 0 && ledger_->tidy().value(); --left) ledger_->take_garbage()();
        break;
      case 9:
        if (below(3) != 0) break;
        die(below(2) == 0 ? Survival::kNothing : Survival::kEverything);
        open();
        break;
      case 10:
        quiet();
        compare();
        break;
      default: quiet(); break;
    }
  }
  quiet();
  compare();
}

INSTANTIATE_TEST_SUITE_P(Seeds, LedgerFlows, ::testing::Range(1, 41));

}  // namespace
}  // namespace bide::engine
