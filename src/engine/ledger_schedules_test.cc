// Schedules: each due time is one job, whatever happens to the process, the disk and the clock.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/time_text.h"
#include "support/ledger_fixture.h"
#include "support/zone_table.h"

namespace bide::engine {
namespace {

using namespace std::chrono_literals;

class LedgerSchedules : public LedgerFixture {
 protected:
  void SetUp() override { open(); }

  void open() {
    EngineOptions options;
    options.zones = zones_;
    options.snapshot_bytes = snapshot_bytes_;
    options.max_jobs = max_jobs_;
    open_ledger(std::move(options));
  }
  void crash(support::Survival unsynced = support::Survival::kChance) {
    die(unsynced);
    open();
  }
  Time now() const { return Time(Milliseconds(clock_.now().wall_us / 1000)); }

  std::vector<Lease> step() {
    EXPECT_TRUE(ledger_->begin());
    return end_step();
  }
  // Time goes on, with a step wherever the ledger asks for one.
  void pass(Milliseconds time) {
    const std::int64_t end_us = clock_.now().elapsed_us + time.count() * 1000;
    while (true) {
      step();
      const auto wake = ledger_->next_wake_us();
      const std::int64_t now_us = clock_.now().elapsed_us;
      if (!wake || *wake > end_us) {
        clock_.advance(std::chrono::microseconds(end_us - now_us));
        break;
      }
      ASSERT_GT(++steps_, 0);
      ASSERT_LT(steps_, 200'000) << "it does not come to rest";
      clock_.advance(std::chrono::microseconds(std::max<std::int64_t>(*wake - now_us, 0)));
    }
    step();
  }
  Result<PutSchedule> put(Schedule schedule) {
    EXPECT_TRUE(ledger_->begin());
    auto result = ledger_->put_schedule(std::move(schedule));
    end_step();
    return result;
  }
  static Schedule every(Milliseconds period, const std::string& name = "tick") {
    return {.name = name, .every = period, .job = {.kind = "tick", .queue = "q"}};
  }
  ScheduleInfo info(const std::string& name = "tick") {
    for (ScheduleInfo& one : ledger_->schedules()) {
      if (one.schedule.name == name) return std::move(one);
    }
    ADD_FAILURE() << "no schedule " << name;
    return {};
  }
  // The due times for which there are jobs, from their headers; "by hand" for the others.
  std::vector<std::string> jobs() {
    std::vector<std::string> found;
    for (Slot slot = 0; slot < ledger_->state().slots(); ++slot) {
      const Entry& entry = ledger_->state()[slot];
      if (entry.entry_state() == EntryState::kFree || entry.entry_state() == EntryState::kTombstone) continue;
      const auto job = ledger_->find(entry.id);
      std::string due = "by hand";
      if (job) {
        for (const auto& [name, value] : job->job.headers) {
          if (name == core::kScheduleDueHeader) due = value.substr(0, 19);
        }
      }
      found.push_back(due);
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  static std::vector<std::string> times(Time first, Milliseconds step, int count) {
    std::vector<std::string> texts;
    for (int i = 0; i < count; ++i) texts.push_back(core::format_time(first + i * step).substr(0, 19));
    return texts;
  }
  void set_clock(std::string_view text) {
    clock_.step_wall(core::parse_time(text).value() - now());
    step();
  }
  std::vector<std::string> notes(const std::string& name = "tick") {
    std::vector<std::string> texts;
    for (const Occurrence& occurrence : info(name).last) texts.push_back(occurrence.note);
    return texts;
  }
  void finish(const JobId& id) {
    EXPECT_TRUE(ledger_->begin());
    EXPECT_TRUE(ledger_->cancel({id}).at(0));
    end_step();
  }

  core::ZoneData zones_ = support::zone_table();
  std::uint64_t snapshot_bytes_ = EngineOptions().snapshot_bytes;
  std::uint64_t max_jobs_ = EngineOptions().max_jobs;
  int steps_ = 0;
};

using Strings = std::vector<std::string>;

TEST_F(LedgerSchedules, EachDueTimeBecomesOneJob) {
  const Time begin = now();
  ASSERT_TRUE(put(every(15min)));
  EXPECT_EQ(info().next, begin + 15min);
  pass(14min);
  EXPECT_EQ(jobs(), Strings());
  pass(61min);
  EXPECT_EQ(jobs(), times(begin + 15min, 15min, 5));
  EXPECT_EQ(info().next, begin + 90min);
  ASSERT_EQ(info().last.size(), 5u);
  EXPECT_EQ(info().last.front().due, begin + 75min);
  EXPECT_EQ(info().last.front().job, core::occurrence_id("tick", 1, begin + 75min));
  EXPECT_EQ(info().last.front().state, JobState::kReady);
}

TEST_F(LedgerSchedules, TheJobIsTheOneThatWasGivenAndKnowsItsDueTime) {
  Schedule schedule = every(1h);
  schedule.job.body = "body";
  schedule.job.priority = 7;
  schedule.job.headers = {{"tenant", "42"}};
  schedule.jitter = 10min;
  const Time due = now() + 1h;
  ASSERT_TRUE(put(schedule));
  pass(1h);
  const JobId id = core::occurrence_id("tick", 1, due);
  const JobInfo made = ledger_->find(id).value();
  EXPECT_EQ(made.job.body, "body");
  EXPECT_EQ(made.job.priority, 7);
  EXPECT_EQ(made.job.headers.at(0).second, "42");
  EXPECT_EQ(made.due, due + core::jitter_of(id, 10min));
}

TEST_F(LedgerSchedules, PutAgainDoesNothingUnlessItIsDifferent) {
  const Time begin = now();
  EXPECT_TRUE(put(every(1h))->created);
  pass(10min);
  const std::uint64_t written = ledger_->journal().end();
  auto again = put(every(1h));
  EXPECT_FALSE(again->created || again->changed);
  EXPECT_EQ(again->next, begin + 1h);
  EXPECT_EQ(ledger_->journal().end(), written) << "nothing is written";
  // Another job, due at the same times: the same version.
  Schedule other = every(1h);
  other.job.body = "new";
  again = put(other);
  EXPECT_TRUE(again->changed);
  EXPECT_EQ(again->next, begin + 1h);
  EXPECT_EQ(info().version, 1u);
  other.every = 2h;
  again = put(other);
  EXPECT_TRUE(again->changed);
  EXPECT_EQ(info().version, 2u);
  EXPECT_EQ(again->next, begin + 10min + 2h);
}

TEST_F(LedgerSchedules, ANameBelongsToItsOwner) {
  Schedule schedule = every(1h);
  schedule.owner = "billing";
  ASSERT_TRUE(put(schedule));
  schedule.owner = "shop";
  const auto refused = put(schedule);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(refused.error().message, "the name 'tick' belongs to a schedule of 'billing'; choose another");
  schedule.owner = "";
  EXPECT_FALSE(put(schedule)->changed);
  EXPECT_EQ(info().schedule.owner, "billing");
}

TEST_F(LedgerSchedules, WhatIsWrongIsRefused) {
  EXPECT_EQ(put({.name = "a", .cron = "0 0 30 2 *", .job = {.kind = "k"}}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(put({.name = "a", .cron = "@daily", .zone = "Europe/Berln", .job = {.kind = "k"}}).error().message,
            "unknown time zone 'Europe/Berln'; did you mean 'Europe/Berlin'?");
  ASSERT_TRUE(put(every(1h, "nightly-report")));
  EXPECT_EQ(ledger_->remove_schedule("nightly-raport").error().message,
            "there is no schedule 'nightly-raport'; did you mean 'nightly-report'?");
  EXPECT_EQ(ledger_->pause_schedule("other", true).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ledger_->run_schedule("other").error().code, ErrorCode::kNotFound);
}

TEST_F(LedgerSchedules, AZoneIsObeyedAtBothChangesOfTheClock) {
  set_clock("2026-03-27T12:00:00Z");
  ASSERT_TRUE(put({.name = "report", .cron = "30 2 * * *", .zone = "Europe/Berlin", .job = {.kind = "report"}}));
  pass(72h);
  EXPECT_EQ(jobs(), (Strings{"2026-03-28T01:30:00", "2026-03-29T01:00:00", "2026-03-30T00:30:00"}));
  for (int i = 0; i < 7; ++i) pass((i == 0 ? 29 : 30) * 24h);
  EXPECT_EQ(info("report").next, core::parse_time("2026-10-26T01:30:00Z").value());
  EXPECT_EQ(jobs().back(), "2026-10-25T00:30:00");
}

TEST_F(LedgerSchedules, EachDueTimeIsOneJobOverCrashesAtAnyMoment) {
  const Time begin = now();
  ASSERT_TRUE(put(every(1s)));
  for (int i = 0; i < 60; ++i) {
    // A crash between the step and its commit, and one after it.
    clock_.advance(std::chrono::milliseconds(random_.next() % 1500));
    EXPECT_TRUE(ledger_->begin());
    if (i % 3 == 0) {
      crash(support::Survival::kChance);
    } else if (i % 3 == 1) {
      end_step();
      crash(support::Survival::kNothing);
    } else {
      end_step();
    }
    step();
  }
  const auto count = static_cast<int>((now() - begin) / 1s);
  EXPECT_EQ(jobs(), times(begin + 1s, 1s, count));
  EXPECT_TRUE(ledger_->audit().ok());
}

TEST_F(LedgerSchedules, EverythingOfItSurvivesARestartFromJournalAndSnapshot) {
  for (const std::uint64_t bytes : {std::uint64_t{1} << 30, std::uint64_t{1}}) {
    snapshot_bytes_ = bytes;
    const std::string name = "s" + std::to_string(bytes);
    Schedule schedule{.name = name,
                      .owner = "billing",
                      .cron = "*/10 * * * *",
                      .zone = "Europe/Berlin",
                      .job = {.kind = "k", .queue = "q", .body = "b", .headers = {{"a", "b"}}, .retry = RetryPolicy::none()},
                      .missed = Missed::kAll,
                      .most_missed = 7,
                      .overlap = Overlap::kQueue,
                      .jitter = 5s};
    ASSERT_TRUE(put(schedule));
    pass(30min);
    ASSERT_TRUE(ledger_->pause_schedule(name, true));
    step();
    const ScheduleInfo before = info(name);
    EXPECT_EQ(before.last.size(), 3u);
    while (ledger_->tidy().value()) {
    }
    crash();
    const ScheduleInfo after = info(name);
    EXPECT_EQ(after.schedule.owner, schedule.owner);
    EXPECT_EQ(after.schedule.cron, schedule.cron);
    EXPECT_EQ(after.schedule.zone, schedule.zone);
    EXPECT_EQ(after.schedule.missed, schedule.missed);
    EXPECT_EQ(after.schedule.most_missed, schedule.most_missed);
    EXPECT_EQ(after.schedule.overlap, schedule.overlap);
    EXPECT_EQ(after.schedule.jitter, schedule.jitter);
    EXPECT_EQ(after.schedule.job.body, "b");
    EXPECT_EQ(after.schedule.job.headers, schedule.job.headers);
    EXPECT_EQ(after.schedule.job.retry, schedule.job.retry);
    EXPECT_FALSE(after.schedule.job.due);
    EXPECT_TRUE(after.paused);
    ASSERT_EQ(after.last.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(after.last[i].due, before.last[i].due);
      EXPECT_EQ(after.last[i].job, before.last[i].job);
      EXPECT_EQ(after.last[i].note, before.last[i].note);
    }
    ASSERT_FALSE(put(schedule)->changed);
    // What waited for the job before it still does.
    ASSERT_TRUE(ledger_->pause_schedule(name, false));
    step();
    EXPECT_EQ(info(name).last[1].note, "it waits for the job before it to end");
    finish(after.last.back().job);
    step();
    EXPECT_EQ(info(name).last[1].note, "");
    EXPECT_EQ(info(name).last[1].state, JobState::kReady);
  }
}

TEST_F(LedgerSchedules, MissedOnesAreMadeUpForAsTheScheduleSays) {
  const Time begin = now();
  Schedule skip = every(1h, "skip"), once = every(1h, "once"), all = every(1h, "all"), some = every(1h, "some");
  skip.missed = Missed::kSkip;
  all.missed = some.missed = Missed::kAll;
  some.most_missed = 2;
  for (Schedule* schedule : {&skip, &once, &all, &some}) {
    schedule->job.queue = schedule->name;
    ASSERT_TRUE(put(*schedule));
  }
  die(support::Survival::kEverything);
  clock_.advance(5h + 30min);
  open();
  step();
  const auto made = [&](const std::string& name) {
    std::vector<Time> dues;
    for (const Occurrence& occurrence : info(name).last) {
      if (!occurrence.job.is_nil()) dues.push_back(occurrence.due);
    }
    return dues;
  };
  EXPECT_EQ(made("skip"), std::vector<Time>());
  EXPECT_EQ(made("once"), (std::vector<Time>{begin + 5h}));
  EXPECT_EQ(made("all"), (std::vector<Time>{begin + 5h, begin + 4h, begin + 3h, begin + 2h, begin + 1h}));
  EXPECT_EQ(made("some"), (std::vector<Time>{begin + 5h, begin + 4h}));
  EXPECT_EQ(notes("skip"), Strings(5, "it was missed"));
  EXPECT_EQ(notes("once"), (Strings{"", "it was missed", "it was missed", "it was missed", "it was missed"}));
  EXPECT_EQ(ledger_->state().jobs(), 8u);
  for (const ScheduleInfo& one : ledger_->schedules()) EXPECT_EQ(one.next, begin + 6h);
}

TEST_F(LedgerSchedules, WhatIsLessThanAMinuteLateWasNotMissed) {
  const Time begin = now();
  Schedule schedule = every(10s);
  schedule.missed = Missed::kSkip;
  ASSERT_TRUE(put(schedule));
  clock_.advance(59s);
  step();
  EXPECT_EQ(jobs(), times(begin + 10s, 10s, 5));
}

TEST_F(LedgerSchedules, AMillionMissedOnesAreMadeUpForUpToTheBoundInPieces) {
  Schedule schedule = every(1s);
  schedule.missed = Missed::kAll;
  schedule.most_missed = 5000;
  const Time begin = now();
  ASSERT_TRUE(put(schedule));
  clock_.advance(1'000'000s);
  ASSERT_TRUE(ledger_->begin());
  EXPECT_LE(ledger_->state().jobs(), 10'000u);
  end_step();
  pass(0ms);
  // Those of the last minute were on time.
  EXPECT_EQ(jobs(), times(begin + std::chrono::seconds(1'000'000 - 5000 - 60 + 1), 1s, 5060));
}

TEST_F(LedgerSchedules, OverlapIsAllowedSkippedOrQueued) {
  const Time begin = now();
  Schedule allow = every(1h, "allow"), skip = every(1h, "skip"), queue = every(1h, "queue");
  skip.overlap = Overlap::kSkip;
  queue.overlap = Overlap::kQueue;
  for (const Schedule& schedule : {allow, skip, queue}) ASSERT_TRUE(put(schedule));
  pass(3h);
  const auto id = [&](const char* name, int hour) { return core::occurrence_id(name, 1, begin + hour * 1h); };
  EXPECT_EQ(notes("allow"), Strings(3, ""));
  const std::string blocked = "the job before it, " + id("skip", 1).to_string() + ", had not ended";
  EXPECT_EQ(notes("skip"), (Strings{blocked, blocked, ""}));
  const std::string waits = "it waits for the job before it to end";
  EXPECT_EQ(notes("queue"), (Strings{waits, waits, ""}));
  finish(id("skip", 1));
  finish(id("queue", 1));
  step();
  EXPECT_EQ(notes("queue"), (Strings{waits, "", ""}));
  EXPECT_TRUE(ledger_->find(id("queue", 2)));
  finish(id("queue", 2));
  step();
  EXPECT_TRUE(ledger_->find(id("queue", 3)));
  EXPECT_EQ(notes("queue"), Strings(3, ""));
  pass(1h);
  EXPECT_EQ(notes("skip").front(), "");
  EXPECT_EQ(notes("queue").front(), waits);
}

TEST_F(LedgerSchedules, ADoneOrDeadJobDoesNotHoldUpTheNext) {
  const Time begin = now();
  Schedule schedule = every(1h);
  schedule.overlap = Overlap::kQueue;
  ASSERT_TRUE(put(schedule));
  ledger_->subscribe(1, {.queues = {{"q", 1}}}, [](const std::vector<Lease>&) {});
  pass(1h);
  const Slot slot = ledger_->state().find(core::occurrence_id("tick", 1, begin + 1h));
  ASSERT_EQ(ledger_->state()[slot].entry_state(), EntryState::kRunning);
  const LeaseRef lease{ledger_->state()[slot].id, ledger_->state().last_token()};
  pass(10s);
  ASSERT_TRUE(ledger_->begin());
  ASSERT_TRUE(ledger_->extend({lease}).size() == 1);
  ASSERT_TRUE(ledger_->settle(SettleBatch::of({{lease, Dead{.error = "no"}, {}}}, {})).at(0));
  end_step();
  pass(1h);
  EXPECT_EQ(notes(), Strings(2, ""));
}

TEST_F(LedgerSchedules, ATooLongQueueOfWaitingOnesIsCut) {
  Schedule schedule = every(1s);
  schedule.overlap = Overlap::kQueue;
  ASSERT_TRUE(put(schedule));
  pass(110s);
  EXPECT_EQ(notes().front(), "100 others waited already for the job before them to end");
  EXPECT_EQ(ledger_->state().schedules().find("tick")->waiting.size(), kMostWaiting);
}

TEST_F(LedgerSchedules, APausedScheduleMakesNothingAndMissesNothing) {
  const Time begin = now();
  ASSERT_TRUE(put(every(1h)));
  ASSERT_TRUE(ledger_->pause_schedule("tick", true));
  pass(150min);
  EXPECT_EQ(info().next, std::nullopt);
  EXPECT_EQ(jobs(), Strings());
  ASSERT_TRUE(ledger_->pause_schedule("tick", false));
  pass(30min);
  EXPECT_EQ(jobs(), times(begin + 3h, 1h, 1));
}

TEST_F(LedgerSchedules, RunByHandIsAJobBesideTheOthers) {
  const Time begin = now();
  ASSERT_TRUE(put(every(1h)));
  const auto id = ledger_->run_schedule("tick");
  ASSERT_TRUE(id);
  EXPECT_EQ(info().last.front().job, *id);
  EXPECT_EQ(info().last.front().due, begin);
  pass(1h);
  EXPECT_EQ(jobs().size(), 2u);
  EXPECT_EQ(info().next, begin + 2h);
}

TEST_F(LedgerSchedules, ARemovedOneIsGoneAndItsJobsStay) {
  ASSERT_TRUE(put(every(1h)));
  pass(1h);
  ASSERT_TRUE(ledger_->begin());
  ASSERT_TRUE(ledger_->remove_schedule("tick"));
  end_step();
  pass(5h);
  EXPECT_EQ(jobs().size(), 1u);
  crash();
  EXPECT_TRUE(ledger_->schedules().empty());
  EXPECT_EQ(jobs().size(), 1u);
}

TEST_F(LedgerSchedules, AClockThatIsSetBackAndForthLosesAndDoublesNothing) {
  const Time begin = now();
  ASSERT_TRUE(put(every(10min)));
  pass(2h);
  EXPECT_EQ(jobs(), times(begin + 10min, 10min, 12));
  clock_.step_wall(-1h);
  pass(1h);
  EXPECT_EQ(jobs(), times(begin + 10min, 10min, 12)) << "these due times have been already";
  pass(30min);
  EXPECT_EQ(jobs(), times(begin + 10min, 10min, 15));
  clock_.step_wall(30min);
  step();
  // Three due times at once: the one of this moment, and two that were missed, for which one is made up.
  EXPECT_EQ(info().last.at(2).note, "it was missed");
  EXPECT_EQ(jobs().size(), 17u);
  for (int i = 0; i < 5; ++i) {
    clock_.step_wall(-1h);
    step();
    crash();
    clock_.step_wall(1h);
    step();
  }
  EXPECT_EQ(jobs().size(), 17u);
  EXPECT_EQ(info().next, begin + 190min);
}

TEST_F(LedgerSchedules, AClockThatWasWrongByYearsDoesNotStopTheSchedule) {
  const Time begin = now();
  ASSERT_TRUE(put(every(1h)));
  clock_.step_wall(10 * 365 * 24h);
  step();
  EXPECT_EQ(jobs().size(), 2u);  // One for those that were missed, and that of this moment.
  clock_.step_wall(-10 * 365 * 24h);
  step();
  EXPECT_EQ(info().next, begin + 1h);
  pass(1h);
  EXPECT_EQ(jobs().size(), 3u);
}

TEST_F(LedgerSchedules, ADueTimeWaitsUntilThereIsRoomForItsJob) {
  max_jobs_ = 1;
  crash();
  const Time begin = now();
  ASSERT_TRUE(put(every(10s)));
  pass(10s);
  EXPECT_EQ(jobs(), times(begin + 10s, 10s, 1));
  pass(25s);
  EXPECT_EQ(jobs(), times(begin + 10s, 10s, 1));
  finish(core::occurrence_id("tick", 1, begin + 10s));
  pass(1s);
  EXPECT_EQ(jobs(), times(begin + 20s, 10s, 1));
}

TEST_F(LedgerSchedules, AUniqueKeyThatIsHeldIsNamed) {
  Schedule schedule = every(10s);
  schedule.job.unique_key = "only";
  ASSERT_TRUE(put(schedule));
  pass(20s);
  EXPECT_EQ(jobs().size(), 1u);
  EXPECT_TRUE(notes().front().starts_with("the unique key 'only' is held by job ")) << notes().front();
}

TEST_F(LedgerSchedules, ChangedTimeZoneDataCountFromTheNextOccurrenceOn) {
  std::string rule = "AAA0", version = "1";
  zones_ = {.read = [&](const std::string&) -> Result<std::string> { return support::tzif_of(rule); },
            .version = [&](const std::string&) { return version; },
            .names = [] { return std::vector<std::string>(); }};
  crash();
  ASSERT_TRUE(put({.name = "daily", .cron = "0 12 * * *", .zone = "A/B", .job = {.kind = "k"}}));
  const Time noon = info("daily").next.value();
  rule = "AAA-2", version = "2";
  pass(noon - now());
  EXPECT_EQ(info("daily").last.front().due, noon);
  EXPECT_EQ(info("daily").next, noon + 22h);
}

TEST_F(LedgerSchedules, AStoreIsMovedToAMachineThatDoesNotKnowTheZone) {
  ASSERT_TRUE(put({.name = "daily", .cron = "@daily", .zone = "Europe/Berlin", .job = {.kind = "k"}}));
  EXPECT_TRUE(ledger_->audit().ok());
  zones_.read = [](const std::string&) -> Result<std::string> { return Error{ErrorCode::kNotFound, "none"}; };
  zones_.names = [] { return std::vector<std::string>(); };
  crash();
  pass(48h);
  const AuditReport report = ledger_->audit();
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_EQ(report.problems.front(), "schedule 'daily' is not due at any time: unknown time zone 'Europe/Berlin'; this "
            "system has no time zones at all: install the package tzdata");
  EXPECT_EQ(jobs(), Strings());
  zones_ = support::zone_table();
  crash();
  step();
  EXPECT_TRUE(ledger_->audit().ok());
  EXPECT_EQ(jobs().size(), 1u);
}

}  // namespace
}  // namespace bide::engine
