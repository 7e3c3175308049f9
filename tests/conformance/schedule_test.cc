// Schedules: a job is made for each due time, exactly one.

#include <set>

#include "conformance/broker_conformance.h"

namespace bide::conformance {
namespace {

using namespace std::chrono_literals;

Schedule each_second(std::string name = "tick") {
  return {.name = std::move(name), .every = 1s, .job = {.kind = "tick", .queue = "ticks", .body = "body"}};
}

std::string header(const Job& job, std::string_view wanted) {
  for (const auto& [name, value] : job.headers) {
    if (name == wanted) return value;
  }
  return {};
}

}  // namespace

TEST_P(BrokerConformance, AScheduleMakesAJobForEachDueTime) {
  BIDE_NEEDS(schedules);
  const Time put = now();
  const auto answer = put_schedule(each_second());
  ASSERT_TRUE(succeeded(answer));
  EXPECT_TRUE(answer->created);
  ASSERT_TRUE(answer->next);
  EXPECT_GE(*answer->next, put + 1s);
  Consumer consumer = subscribe_to("ticks");
  expect_nothing_before(*answer->next, consumer);
  advance(2s);
  const std::vector<Lease> leases = consumer.leases().take(3);
  std::set<JobId> ids;
  std::set<std::string> dues;
  for (const Lease& lease : leases) {
    EXPECT_EQ(lease.job.kind, "tick");
    EXPECT_EQ(lease.job.body, "body");
    EXPECT_EQ(header(lease.job, "bide-schedule"), "tick");
    ids.insert(lease.job.id);
    dues.insert(header(lease.job, "bide-schedule-due"));
  }
  EXPECT_EQ(ids.size(), 3u);
  EXPECT_EQ(dues.size(), 3u);
}

TEST_P(BrokerConformance, AScheduleThatIsPutAgainStaysAsItIs) {
  BIDE_NEEDS(schedules);
  Schedule schedule{.name = "daily", .owner = "shop", .cron = "@daily", .zone = "Europe/Berlin", .job = {.kind = "k"}};
  const auto first = put_schedule(schedule);
  ASSERT_TRUE(succeeded(first));
  auto again = put_schedule(schedule);
  ASSERT_TRUE(succeeded(again));
  EXPECT_FALSE(again->created || again->changed);
  EXPECT_EQ(again->next, first->next);
  schedule.job.priority = 3;
  EXPECT_TRUE(put_schedule(schedule)->changed);
  EXPECT_EQ(schedule_info("daily").version, 1u);
  schedule.cron = "@hourly";
  EXPECT_TRUE(put_schedule(schedule)->changed);
  EXPECT_EQ(schedule_info("daily").version, 2u);
  schedule.owner = "billing";
  EXPECT_TRUE(refused(put_schedule(schedule), ErrorCode::kAlreadyExists));
}

TEST_P(BrokerConformance, AScheduleThatCannotBeIsRefused) {
  BIDE_NEEDS(schedules);
  const auto message_of = [&](Schedule schedule) {
    const auto answer = put_schedule(std::move(schedule));
    EXPECT_TRUE(refused(answer, ErrorCode::kInvalidArgument));
    return answer ? std::string() : answer.error().message;
  };
  const Job job{.kind = "k"};
  EXPECT_NE(message_of({.name = "a", .cron = "0 0 30 2 *", .job = job}).find("never"), std::string::npos);
  EXPECT_NE(message_of({.name = "a", .cron = "@daily", .zone = "Europe/Berln", .job = job}).find("'Europe/Berlin'"),
            std::string::npos);
  message_of({.name = "a", .job = job});
  message_of({.name = "a", .cron = "@daily", .every = 1h, .job = job});
  message_of({.name = "a b", .every = 1h, .job = job});
  message_of({.name = "a", .every = 1h});
  EXPECT_TRUE(all_schedules().empty());
}

TEST_P(BrokerConformance, SchedulesAreListedWithTheirLastOccurrences) {
  BIDE_NEEDS(schedules);
  const auto answer = put_schedule(each_second());
  ASSERT_TRUE(succeeded(answer));
  Consumer consumer = subscribe_to("ticks", 1);
  advance(*answer->next - now());
  const Lease lease = consumer.leases().take();
  ASSERT_TRUE(succeeded(settle_one(lease)));
  const ScheduleInfo info = schedule_info("tick");
  EXPECT_EQ(info.schedule.every, 1s);
  EXPECT_EQ(info.schedule.job.body, "body");
  EXPECT_FALSE(info.paused);
  ASSERT_FALSE(info.last.empty());
  EXPECT_EQ(info.last.back().job, lease.job.id);
  EXPECT_EQ(info.last.back().due, *answer->next);
  EXPECT_EQ(info.last.back().state, JobState::kDone);
  EXPECT_EQ(info.last.back().note, "");
  ASSERT_TRUE(info.next);
  EXPECT_GT(*info.next, info.last.front().due);
}

TEST_P(BrokerConformance, APausedScheduleMakesNothing) {
  BIDE_NEEDS(schedules);
  ASSERT_TRUE(succeeded(put_schedule(each_second())));
  ASSERT_TRUE(succeeded(pause_schedule("tick", true)));
  // One may have come before the pause, where time goes on by itself.
  const std::size_t before = schedule_info("tick").last.size();
  EXPECT_FALSE(schedule_info("tick").next);
  advance(2s);
  EXPECT_EQ(schedule_info("tick").last.size(), before);
  ASSERT_TRUE(succeeded(pause_schedule("tick", false)));
  const std::optional<Time> next = schedule_info("tick").next;
  ASSERT_TRUE(next);
  Consumer consumer = subscribe_to("ticks", 1);
  advance(std::max(*next - now(), Milliseconds(0)));
  consumer.leases().take();
}

TEST_P(BrokerConformance, AScheduleIsRunByHandBesideItsTimes) {
  BIDE_NEEDS(schedules);
  Schedule schedule = each_second();
  schedule.every = 1h;
  const auto answer = put_schedule(schedule);
  const auto id = run_schedule("tick");
  ASSERT_TRUE(succeeded(id));
  EXPECT_EQ(lease_one("ticks").job.id, *id);
  EXPECT_EQ(schedule_info("tick").next, answer->next);
  EXPECT_EQ(schedule_info("tick").last.front().job, *id);
}

TEST_P(BrokerConformance, ARemovedScheduleIsGone) {
  BIDE_NEEDS(schedules);
  ASSERT_TRUE(succeeded(put_schedule(each_second())));
  ASSERT_TRUE(succeeded(remove_schedule("tick")));
  EXPECT_TRUE(all_schedules().empty());
  EXPECT_TRUE(refused(remove_schedule("tick"), ErrorCode::kNotFound));
  EXPECT_TRUE(refused(pause_schedule("tick", true), ErrorCode::kNotFound));
  EXPECT_TRUE(refused(run_schedule("tick"), ErrorCode::kNotFound));
}

TEST_P(BrokerConformance, SchedulesSurviveARestart) {
  BIDE_NEEDS(schedules);
  Schedule kept{.name = "kept", .owner = "shop", .cron = "30 7 * * mon-fri", .zone = "America/New_York", .job = {.kind = "k"}};
  kept.job.headers = {{"a", "b"}};
  kept.missed = Missed::kAll;
  kept.most_missed = 7;
  kept.overlap = Overlap::kQueue;
  kept.jitter = 5s;
  const auto answer = put_schedule(kept);
  ASSERT_TRUE(succeeded(answer));
  ASSERT_TRUE(succeeded(put_schedule(each_second("removed"))));
  ASSERT_TRUE(succeeded(remove_schedule("removed")));
  for (const Restart how : {Restart::kClean, Restart::kCrash}) {
    restart(how);
    ASSERT_EQ(all_schedules().size(), 1u);
    const auto again = put_schedule(kept);
    ASSERT_TRUE(succeeded(again));
    EXPECT_FALSE(again->created || again->changed);
    EXPECT_EQ(again->next, answer->next);
  }
}

TEST_P(BrokerConformance, EachDueTimeIsOneJobOverRestarts) {
  BIDE_NEEDS(schedules);
  Schedule schedule = each_second();
  schedule.missed = Missed::kAll;
  const auto answer = put_schedule(schedule);
  ASSERT_TRUE(succeeded(answer));
  for (const Restart how : {Restart::kClean, Restart::kCrash, Restart::kCrash}) {
    advance(1s);
    restart(how);
  }
  ASSERT_TRUE(eventually([&] { return schedule_info("tick").last.size() >= 3; }));
  ASSERT_TRUE(succeeded(pause_schedule("tick", true)));
  const std::vector<Occurrence> last = schedule_info("tick").last;
  // From the first on without a gap, and newest first.
  for (std::size_t i = 0; i < last.size(); ++i) {
    EXPECT_EQ(last[last.size() - 1 - i].due, *answer->next + static_cast<int>(i) * 1s);
  }
  std::set<JobId> ids;
  for (const Occurrence& occurrence : last) ids.insert(occurrence.job);
  EXPECT_EQ(ids.size(), last.size());
  Consumer consumer = subscribe_to("ticks");
  consumer.leases().take(last.size());
  barrier();
  const std::vector<JobId> run = consumer.leases().ids();
  EXPECT_EQ(std::set<JobId>(run.begin(), run.end()), ids);
}

TEST_P(BrokerConformance, MissedTimesAreMadeUpForAsTheScheduleSays) {
  BIDE_NEEDS(schedules);
  BIDE_NEEDS_VIRTUAL_TIME();
  for (const Missed missed : {Missed::kSkip, Missed::kOnce, Missed::kAll}) {
    Schedule schedule = each_second(std::string(to_string(missed)));
    schedule.every = 1h;
    schedule.missed = missed;
    ASSERT_TRUE(succeeded(put_schedule(schedule)));
  }
  subject().step_wall_clock(3h + 30min);
  advance(0ms);
  const auto made = [&](const char* name) {
    std::size_t jobs = 0;
    for (const Occurrence& occurrence : schedule_info(name).last) jobs += occurrence.job.is_nil() ? 0 : 1;
    return jobs;
  };
  EXPECT_EQ(made("skip"), 0u);
  EXPECT_EQ(made("once"), 1u);
  EXPECT_EQ(made("all"), 3u);
}

TEST_P(BrokerConformance, AnOccurrenceWaitsForTheOneBeforeItOrIsLeftOut) {
  BIDE_NEEDS(schedules);
  BIDE_NEEDS_VIRTUAL_TIME();
  for (const Overlap overlap : {Overlap::kSkip, Overlap::kQueue}) {
    Schedule schedule = each_second(std::string(to_string(overlap)));
    schedule.job.queue = schedule.name;
    schedule.overlap = overlap;
    ASSERT_TRUE(succeeded(put_schedule(schedule)));
  }
  advance(1s);
  const Lease skipping = lease_one("skip"), queueing = lease_one("queue");
  advance(1s);
  EXPECT_EQ(schedule_info("skip").last.size(), 2u);
  EXPECT_NE(schedule_info("skip").last.front().note, "");
  EXPECT_TRUE(schedule_info("skip").last.front().job.is_nil());
  Consumer consumer = subscribe_to("queue");
  barrier();
  EXPECT_EQ(consumer.leases().count(), 0u);
  ASSERT_TRUE(succeeded(settle_one(skipping)));
  ASSERT_TRUE(succeeded(settle_one(queueing)));
  consumer.leases().take();
  advance(1s);
  lease_one("skip");
  EXPECT_EQ(schedule_info("skip").last.front().note, "");
}

TEST_P(BrokerConformance, AClockThatIsSetBackAndForthDoublesNoOccurrence) {
  BIDE_NEEDS(schedules);
  BIDE_NEEDS_VIRTUAL_TIME();
  Schedule schedule = each_second();
  schedule.every = 10min;
  schedule.missed = Missed::kAll;  // The clock of the test passes over them at once.
  ASSERT_TRUE(succeeded(put_schedule(schedule)));
  advance(2h);
  const auto count = [&] { return list_ids({.queue = "ticks"}).size(); };
  EXPECT_EQ(count(), 12u);
  subject().step_wall_clock(-1h);
  advance(1h);
  EXPECT_EQ(count(), 12u);
  subject().step_wall_clock(-1h);
  subject().step_wall_clock(1h);
  advance(0ms);
  EXPECT_EQ(count(), 12u);
  advance(10min);
  EXPECT_EQ(count(), 13u);
}

}  // namespace bide::conformance
