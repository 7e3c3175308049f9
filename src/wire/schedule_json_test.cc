// Schedules and the rules of queues: read, refused, written and read back.

#include "wire/schedule_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/time_text.h"
#include "wire/rules_json.h"

namespace bide::wire {
namespace {

using namespace std::chrono_literals;

const Time kNewYear = core::parse_time("2026-01-01T00:00:00Z").value();
const JobId kMadeJob = JobId::parse("018f3c1e-7d5a-7000-8000-000000000001").value();

Schedule schedule_of(std::string_view text, std::string_view callback_queue = {}) {
  Schedule schedule{.name = "report"};
  const auto problem = read_schedule(text, kNewYear, callback_queue, schedule);
  EXPECT_FALSE(problem) << problem->detail;
  return schedule;
}

QueueRules rules_of(std::string_view text) {
  QueueRules rules{.queue = "mail"};
  const auto problem = read_rules(text, rules);
  EXPECT_FALSE(problem) << problem->detail;
  return rules;
}

struct Refusal {
  std::string text;
  int status;
  std::string code;
  std::string says;  // Part of the detail.
};

TEST(ScheduleJson, EveryFieldIsRead) {
  const Schedule cron = schedule_of(
      R"({"owner":"billing","cron":"30 7 * * mon-fri","zone":"Europe/Berlin","job":{"kind":"report","queue":"q","body":{"a":1},
          "group":"tenant:42"},"missed":"all","most_missed":7,"overlap":"queue","jitter":"5s"})");
  EXPECT_EQ(cron.name, "report");
  EXPECT_EQ(cron.owner, "billing");
  EXPECT_EQ(cron.cron, "30 7 * * mon-fri");
  EXPECT_EQ(cron.zone, "Europe/Berlin");
  EXPECT_EQ(cron.job.kind, "report");
  EXPECT_EQ(cron.job.queue, "q");
  EXPECT_EQ(cron.job.body, R"({"a":1})");
  EXPECT_EQ(cron.job.group, "tenant:42");
  EXPECT_EQ(cron.missed, Missed::kAll);
  EXPECT_EQ(cron.most_missed, 7u);
  EXPECT_EQ(cron.overlap, Overlap::kQueue);
  EXPECT_EQ(cron.jitter, 5s);
  const Schedule every = schedule_of(R"({"every":"15m","anchor":"2026-01-01T00:00:00Z","job":{"kind":"a"},"jitter_ms":20})");
  EXPECT_EQ(every.every, 15min);
  EXPECT_EQ(every.anchor, kNewYear);
  EXPECT_EQ(every.zone, "UTC");
  EXPECT_EQ(every.missed, Missed::kOnce);
  EXPECT_EQ(every.jitter, 20ms);
  EXPECT_EQ(schedule_of(R"({"every_ms":1500,"job":{"kind":"a"}})").every, 1500ms);
}

TEST(ScheduleJson, ACallbackWithoutAQueueGoesWhereTheServerDelivers) {
  const std::string text = R"({"every":"1m","job":{"kind":"a","callback":"https://example.org/x"}})";
  EXPECT_EQ(schedule_of(text, "callbacks").job.queue, "callbacks");
  EXPECT_EQ(schedule_of(text).job.queue, "default");
}

TEST(ScheduleJson, EveryMistakeHasItsCodeAndSaysWhatIsAllowed) {
  const std::vector<Refusal> cases = {
      {"", 400, "empty_body", R"({"every":"1h","job":{"kind":"report"}})"},
      {"[]", 400, "expected_object", "found an array"},
      {R"({"cron":"@daily")", 400, "invalid_json", "at byte"},
      {R"({"every":"1h"})", 422, "missing_field", "job is missing"},
      {R"({"cron":"@daily","every":"1h","job":{"kind":"a"}})", 422, "conflicting_fields", "cron and every"},
      {R"({"every":"1h","every_ms":5,"job":{"kind":"a"}})", 422, "conflicting_fields", "every and every_ms"},
      {R"({"crn":"@daily","job":{"kind":"a"}})", 400, "unknown_field", "did you mean 'cron'?"},
      {R"({"every":"1h","job":{"kind":"a"},"name":"x"})", 400, "unknown_field", "'name'"},
      {R"({"every":"1h","job":{"kind":"a"},"paused":true})", 400, "unknown_field", "'paused'"},
      {R"({"every":15,"job":{"kind":"a"}})", 422, "invalid_duration", "every_ms"},
      {R"({"every":"5 parsecs","job":{"kind":"a"}})", 422, "invalid_duration", "units"},
      {R"({"every_ms":-5,"job":{"kind":"a"}})", 422, "invalid_duration", "not negative"},
      {R"({"every":"1h","anchor":"tomorrow","job":{"kind":"a"}})", 422, "invalid_time", "anchor"},
      {R"({"every":"1h","missed":"sometimes","job":{"kind":"a"}})", 422, "invalid_argument", "skip, once, all"},
      {R"({"every":"1h","overlap":"skp","job":{"kind":"a"}})", 422, "invalid_argument", "did you mean 'skip'?"},
      {R"({"every":"1h","most_missed":-1,"job":{"kind":"a"}})", 422, "out_of_range", "most_missed is -1"},
      {R"({"every":"1h","cron":5,"job":{"kind":"a"}})", 422, "conflicting_fields", "every and cron"},
      {R"({"cron":5,"job":{"kind":"a"}})", 422, "wrong_type", "cron: expected a string"},
      {R"({"cron":"@daily","job":5})", 422, "wrong_type", "job: expected an object"},
      {R"({"cron":"@daily","job":{}})", 422, "missing_field", "kind is missing"},
      {R"({"cron":"@daily","job":{"kind":"a","qeue":"b"}})", 400, "unknown_field", "did you mean 'queue'?"},
      {R"({"cron":"@daily","job":{"kind":"a","group":")" + std::string(200, 'g') + "\"}}", 422, "invalid_group", "128 bytes"},
  };
  for (const Refusal& bad : cases) {
    Schedule schedule;
    const auto problem = read_schedule(bad.text, kNewYear, {}, schedule);
    ASSERT_TRUE(problem) << bad.text;
    EXPECT_EQ(problem->code, bad.code) << bad.text << ": " << problem->detail;
    EXPECT_EQ(problem->status, bad.status) << bad.text;
    EXPECT_NE(problem->detail.find(bad.says), std::string::npos) << bad.text << ": " << problem->detail;
  }
  Schedule schedule;
  EXPECT_EQ(read_schedule(R"({"cron":"@daily","job":{"kind":"a b"}})", kNewYear, {}, schedule)->field, "job.kind");
}

TEST(ScheduleJson, WhatIsWrittenReadsBack) {
  ScheduleInfo info;
  info.schedule = schedule_of(
      R"({"owner":"billing","cron":"@daily","zone":"Europe/Berlin","job":{"kind":"report","queue":"q","body_base64":"/w==",
          "headers":{"h":"v"}},"missed":"all","most_missed":7,"overlap":"queue","jitter":"5s"})");
  info.version = 3;
  info.paused = true;
  info.next = kNewYear;
  info.last = {{.due = kNewYear, .job = kMadeJob, .state = JobState::kDone}, {.due = kNewYear - 1h, .note = "paused"}};
  ScheduleInfo every;
  every.schedule = schedule_of(R"({"every":"15m","anchor":"2026-01-01T00:00:00Z","job":{"kind":"a"}})");
  const auto read = read_schedules(schedules_json({info, every}));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(schedule_json(read->at(0)), schedule_json(info));
  EXPECT_EQ(schedule_json(read->at(1)), schedule_json(every));
  EXPECT_EQ(read->at(0).schedule.job.body, "\xff");
  EXPECT_EQ(read->at(0).schedule.overlap, Overlap::kQueue);
  EXPECT_EQ(read->at(0).next, kNewYear);
  ASSERT_EQ(read->at(0).last.size(), 2u);
  EXPECT_EQ(read->at(0).last[0].job, kMadeJob);
  EXPECT_EQ(read->at(0).last[0].state, JobState::kDone);
  EXPECT_TRUE(read->at(0).last[1].job.is_nil());
  EXPECT_EQ(read->at(0).last[1].note, "paused");
  EXPECT_EQ(read->at(1).schedule.anchor, kNewYear);
  EXPECT_FALSE(read->at(1).next);
  // What a client sends is what a server reads.
  EXPECT_EQ(schedule_json({.schedule = schedule_of(schedule_request_json(info.schedule))}),
            schedule_json({.schedule = info.schedule}));
  const auto put = read_put_schedule(put_schedule_json("report", {.created = true, .changed = false, .next = kNewYear}));
  ASSERT_TRUE(put);
  EXPECT_TRUE(put->created);
  EXPECT_FALSE(put->changed);
  EXPECT_EQ(put->next, kNewYear);
}

TEST(RulesJson, EveryFieldIsRead) {
  const QueueRules rules = rules_of(
      R"({"at_once":50,"rate":"100/s","group_at_once":3,"group_rate":{"count":10,"period":"1m","burst":20},"fair":true,
          "weights":{"tenant:42":3,"b":100},"ageing":"1m","most_jobs":5,"most_bytes":6,"oldest_ms":7000})");
  const QueueRules wanted{.queue = "mail",
                          .at_once = 50,
                          .rate = {.count = 100},
                          .group_at_once = 3,
                          .group_rate = {.count = 10, .period = 1min, .burst = 20},
                          .fair = true,
                          .weights = {{"tenant:42", 3}, {"b", 100}},
                          .ageing = 1min,
                          .most_jobs = 5,
                          .most_bytes = 6,
                          .oldest = 7s};
  EXPECT_EQ(rules, wanted);
  EXPECT_EQ(rules_of(rules_request_json(wanted)), wanted);
  EXPECT_EQ(rules_of("{}"), (QueueRules{.queue = "mail"}));
  EXPECT_EQ(rules_of(R"({"rate":null})"), (QueueRules{.queue = "mail"}));
  EXPECT_EQ(rules_of(R"({"rate":{"count":5,"period_ms":100}})").rate, (RateLimit{.count = 5, .period = 100ms}));
  const auto read = read_rules_list(rules_list_json({wanted, {.queue = "other"}}));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, (std::vector<QueueRules>{wanted, {.queue = "other"}}));
}

TEST(RulesJson, EveryMistakeHasItsCodeAndSaysWhatIsAllowed) {
  const std::vector<Refusal> cases = {
      {"", 400, "empty_body", "rules"},
      {"5", 400, "expected_object", "found a number"},
      {R"({"queue":"x"})", 400, "unknown_field", "'queue'"},
      {R"({"at_one":5})", 400, "unknown_field", "did you mean 'at_once'?"},
      {R"({"at_once":-1})", 422, "out_of_range", "at_once is -1"},
      {R"({"at_once":1.5})", 422, "out_of_range", "whole number"},
      {R"({"at_once":"5"})", 422, "wrong_type", "at_once: expected a number"},
      {R"({"rate":"10"})", 422, "invalid_rate", "rate: invalid rate '10'"},
      {R"({"group_rate":"0/s"})", 422, "invalid_rate", "group_rate: invalid rate '0/s'"},
      {R"({"rate":10})", 422, "invalid_rate", "\"10/s\""},
      {R"({"rate":{}})", 422, "invalid_rate", "count is missing"},
      {R"({"rate":{"count":0}})", 422, "invalid_rate", "count is 0"},
      {R"({"rate":{"count":1,"period":"0s"}})", 422, "invalid_rate", "longer than nothing"},
      {R"({"rate":{"count":1,"burst":0}})", 422, "invalid_rate", "burst is 0"},
      {R"({"rate":{"count":1,"per":"1s"}})", 400, "unknown_field", "known are count, period"},
      {R"({"fair":"yes"})", 422, "wrong_type", "fair: expected true or false"},
      {R"({"weights":{"a":0}})", 422, "out_of_range", "weights is 0; allowed: a whole number from 1 to 100"},
      {R"({"weights":["a"]})", 422, "wrong_type", "weights: expected an object"},
      {R"({"ageing":60})", 422, "invalid_duration", "ageing_ms"},
      {R"({"ageing":"1m","ageing_ms":5})", 422, "conflicting_fields", "ageing and ageing_ms"},
      {R"({"oldest_ms":-1})", 422, "invalid_duration", "oldest_ms"},
      {R"({"most_jobs":-1})", 422, "out_of_range", "most_jobs"},
  };
  for (const Refusal& bad : cases) {
    QueueRules rules;
    const auto problem = read_rules(bad.text, rules);
    ASSERT_TRUE(problem) << bad.text;
    EXPECT_EQ(problem->code, bad.code) << bad.text << ": " << problem->detail;
    EXPECT_EQ(problem->status, bad.status) << bad.text;
    EXPECT_NE(problem->detail.find(bad.says), std::string::npos) << bad.text << ": " << problem->detail;
  }
}

}  // namespace
}  // namespace bide::wire
