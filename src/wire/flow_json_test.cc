// Jobs that name each other, flows, steps, progress and changes of jobs: read, resolved and written back.

#include "wire/flow_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/time_text.h"
#include "wire/batch_json.h"
#include "wire/edit_json.h"
#include "wire/info_json.h"
#include "wire/lease_json.h"

namespace bide::wire {
namespace {

using namespace std::chrono_literals;

const Time kMoment = core::parse_time("2026-01-01T00:00:00Z").value();

JobId id_at(std::uint8_t number) {
  const std::string digits = std::to_string(100 + number);
  return JobId::parse("018f3c1e-7d5a-7000-8000-000000000" + digits).value();
}

class Labels : public testing::Test {
 protected:
  Batch& resolved(const std::string& body) {
    batch_ = {};
    const auto problem = read_batch(body, kMoment, batch_);
    EXPECT_FALSE(problem) << problem->detail;
    resolve_labels(batch_, kMoment, [this] { return id_at(next_++); });
    return batch_;
  }
  std::string problem_at(std::size_t i) {
    const auto& problem = batch_.items.at(i).problem;
    return problem ? problem->code + ": " + problem->detail : "";
  }

  std::uint8_t next_ = 1;
  Batch batch_;
};

TEST_F(Labels, NameOtherJobsOfTheRequestWhereverTheyStand) {
  const Batch& batch = resolved(R"([
    {"kind":"publish","after":["#left","#right"],"flow":"#fetch","after_death":"cancel"},
    {"kind":"fetch","label":"fetch","flow":"#fetch"},
    {"kind":"cut","label":"left","after":["#fetch","018f3c1e-7d5a-7000-8000-0000000000aa"],"flow":"#fetch"},
    {"kind":"cut","label":"right","after":["#fetch"],"flow":"018f3c1e-7d5a-7000-8000-0000000000bb"},
    {"kind":"alone"}])");
  for (std::size_t i = 0; i < batch.items.size(); ++i) EXPECT_EQ(problem_at(i), "");
  const Job& fetch = batch.items[1].job;
  const Job& left = batch.items[2].job;
  const Job& right = batch.items[3].job;
  EXPECT_FALSE(fetch.id.is_nil());
  EXPECT_EQ(fetch.flow, fetch.id);
  EXPECT_EQ(left.after, (std::vector{JobId::parse("018f3c1e-7d5a-7000-8000-0000000000aa").value(), fetch.id}));
  EXPECT_EQ(right.after, std::vector{fetch.id});
  EXPECT_EQ(right.flow.to_string(), "018f3c1e-7d5a-7000-8000-0000000000bb");
  EXPECT_EQ(batch.items[0].job.after, (std::vector{left.id, right.id}));
  EXPECT_EQ(batch.items[0].job.flow, fetch.id);
  EXPECT_EQ(batch.items[0].job.after_death, AfterDeath::kCancel);
  // Nobody names them: their ids are the broker's.
  EXPECT_TRUE(batch.items[0].job.id.is_nil());
  EXPECT_TRUE(batch.items[4].job.id.is_nil());
}

TEST_F(Labels, OfAJobWithAnIdStandForIt) {
  const Batch& batch = resolved(
      R"([{"kind":"a","label":"a","id":"018f3c1e-7d5a-7000-8000-0000000000aa"},{"kind":"b","after":["#a"]}])");
  EXPECT_EQ(batch.items[1].job.after, std::vector{batch.items[0].job.id});
}

TEST_F(Labels, ThatNobodyHasAreRefused) {
  resolved(R"([{"kind":"a","label":"fetch"},{"kind":"b","after":["#fetsh"]},{"kind":"c","flow":"#nobody"}])");
  EXPECT_EQ(problem_at(0), "");
  EXPECT_EQ(problem_at(1), "invalid_label: after: no job of this request has the label 'fetsh'; did you mean 'fetch'?");
  EXPECT_TRUE(problem_at(2).starts_with("invalid_label: flow: no job of this request has the label 'nobody'")) << problem_at(2);
}

TEST_F(Labels, ThatTwoHaveAreRefused) {
  resolved(R"([{"kind":"a","label":"x"},{"kind":"b","label":"x"}])");
  EXPECT_EQ(problem_at(0), "");
  EXPECT_EQ(problem_at(1), "invalid_label: label 'x' is given to two jobs; a label is for one");
}

TEST_F(Labels, WhoeverWaitsForAJobThatIsNotValidIsRefusedAsWell) {
  resolved(R"([{"kind":"c","label":"c","after":["#b"]},{"kind":"b","label":"b","after":["#a"]},{"kind":"a","label":"a","priority":1000},
               {"kind":"d"}])");
  EXPECT_TRUE(problem_at(2).starts_with("invalid_priority"));
  EXPECT_EQ(problem_at(1), "aborted: the job with the label 'a' is not valid");
  EXPECT_EQ(problem_at(0), "aborted: the job with the label 'b' is not valid");
  EXPECT_EQ(problem_at(3), "");
}

TEST_F(Labels, OfTheJobItselfAreRefused) {
  resolved(R"({"kind":"a","label":"a","after":["#a"]})");
  EXPECT_EQ(problem_at(0), "invalid_predecessor: after has the job's own id; a job cannot wait for itself");
}

TEST_F(Labels, AreNames) {
  for (const char* label : {"", "a b", ".x", "#x"}) {
    resolved(R"([{"kind":"a","label":")" + std::string(label) + R"("},{"kind":"a","after":["#)" + label + R"("]}])");
    EXPECT_TRUE(problem_at(0).starts_with("invalid_label")) << label;
    EXPECT_TRUE(problem_at(1).starts_with("invalid_label")) << label;
  }
  resolved(R"([{"kind":"a","after":["x"]},{"kind":"a","after":"x"},{"kind":"a","flow":"00000000-0000-0000-0000-000000000000"}])");
  EXPECT_TRUE(problem_at(0).starts_with("invalid_id"));
  EXPECT_TRUE(problem_at(1).starts_with("wrong_type"));
  EXPECT_TRUE(problem_at(2).starts_with("invalid_id"));
}

TEST(FlowFields, OfAJobReadBack) {
  const Job job{.id = id_at(1),
                .kind = "a",
                .unique_key = "u",
                .unique_for = 90s,
                .on_conflict = OnConflict::kReplace,
                .after = {id_at(2), id_at(3)},
                .after_death = AfterDeath::kRun,
                .flow = id_at(4)};
  Batch batch;
  const std::string text = batch_json({job});
  ASSERT_FALSE(read_batch(text, kMoment, batch));
  ASSERT_FALSE(batch.items.at(0).problem) << batch.items[0].problem->detail;
  const Job& read = batch.items[0].job;
  EXPECT_EQ(read.unique_for, 90s);
  EXPECT_EQ(read.on_conflict, OnConflict::kReplace);
  EXPECT_EQ(read.after, job.after);
  EXPECT_EQ(read.after_death, AfterDeath::kRun);
  EXPECT_EQ(read.flow, job.flow);
  EXPECT_EQ(batch_json({Job{.kind = "a"}}), R"({"jobs":[{"kind":"a","queue":"default"}]})");
}

TEST(FlowFields, AReplacedJobIsToldApart) {
  const auto results = read_batch_results(
      R"({"results":[{"index":0,"status":200,"id":"018f3c1e-7d5a-7000-8000-000000000101","existed":false,"replaced":true}]})");
  ASSERT_TRUE(results);
  ASSERT_TRUE((*results)[0]);
  EXPECT_TRUE((*results)[0]->replaced);
  const std::string text = batch_results_json({.one = false, .items = {{}}}, {{.enqueued = {.id = id_at(1), .replaced = true}}});
  EXPECT_NE(text.find(R"("status":200)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("replaced":true)"), std::string::npos) << text;
}

TEST(FlowFields, StepsAndProgressReadBack) {
  JobInfo info;
  info.job = Job{.id = id_at(1), .kind = "a"};
  info.state = JobState::kRunning;
  info.progress = Progress{0.25, "page 12"};
  info.steps = {{"charge", "ch_1"}, {"mail", "\xff"}};
  info.waits_for = 2;
  const auto read = read_job_info(job_info_json(info));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->progress, info.progress);
  EXPECT_EQ(read->steps, info.steps);
  EXPECT_EQ(read->waits_for, 2u);
  const auto leases = read_leases(leases_json({{.job = info.job, .token = 7, .steps = info.steps}}));
  ASSERT_TRUE(leases) << leases.error().message;
  EXPECT_EQ((*leases)[0].steps, info.steps);
  StepRequest request;
  ASSERT_FALSE(read_step_request(step_request_json({{id_at(1), 7}, info.steps[1]}), request));
  EXPECT_EQ(request.lease.token, 7u);
  EXPECT_EQ(request.step, info.steps[1]);
  for (const std::string body : {"", "{}", R"({"id":"018f3c1e-7d5a-7000-8000-000000000101","token":"1"})",
                                 R"({"id":"018f3c1e-7d5a-7000-8000-000000000101","token":"1","name":"a","result":{}})"}) {
    EXPECT_TRUE(read_step_request(body, request)) << body;
  }
}

class Flow : public testing::Test {
 protected:
  void add(std::uint8_t number, JobState state, const std::vector<std::uint8_t>& after = {}) {
    JobInfo& info = jobs_.emplace_back();
    info.job = Job{.id = id_at(number), .kind = "k" + std::to_string(number)};
    for (const std::uint8_t each : after) info.job.after.push_back(id_at(each));
    info.state = state;
    info.due = kMoment;
  }
  std::vector<std::string> order() const {
    std::vector<std::string> kinds;
    for (const FlowJob& job : flow_of(id_at(1), jobs_, true).jobs) kinds.push_back(job.kind);
    return kinds;
  }

  std::vector<JobInfo> jobs_;
};

TEST_F(Flow, ShowsEachJobBehindThoseItWaitsFor) {
  add(1, JobState::kWaiting, {4, 5});
  add(4, JobState::kDone);
  add(2, JobState::kWaiting, {1});
  add(5, JobState::kRunning, {4});
  add(3, JobState::kReady);
  EXPECT_EQ(order(), (std::vector<std::string>{"k3", "k4", "k5", "k1", "k2"}));
}

TEST_F(Flow, PassesOverPredecessorsThatAreForgotten) {
  add(2, JobState::kWaiting, {9, 9});
  add(1, JobState::kReady);
  EXPECT_EQ(order(), (std::vector<std::string>{"k1", "k2"}));
}

TEST_F(Flow, ThatGoesInACircleIsShownAllTheSame) {
  add(2, JobState::kWaiting, {1});
  add(1, JobState::kWaiting, {2});
  EXPECT_EQ(order(), (std::vector<std::string>{"k1", "k2"}));
}

TEST_F(Flow, IsAsFarAsItsJobs) {
  add(1, JobState::kDone);
  add(2, JobState::kRunning);
  add(3, JobState::kWaiting, {2});
  EXPECT_EQ(flow_of(id_at(1), jobs_, true).percent, 33.3);
  jobs_[1].progress = Progress{0.5, ""};
  const FlowInfo flow = flow_of(id_at(1), jobs_, true);
  EXPECT_EQ(flow.percent, 50);
  EXPECT_EQ(flow.counts.at("done"), 1u);
  EXPECT_EQ(flow.counts.at("dead"), 0u);
  for (JobInfo& info : jobs_) info.state = JobState::kDone;
  EXPECT_EQ(flow_of(id_at(1), jobs_, true).percent, 100);
}

TEST_F(Flow, ReadsBack) {
  add(1, JobState::kDead);
  jobs_[0].history = {{.attempt = 1, .at = kMoment, .text = "no"}};
  jobs_[0].finished = kMoment;
  add(2, JobState::kWaiting, {1});
  const auto read = read_flow(flow_json(flow_of(id_at(7), jobs_, false)));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->id, id_at(7));
  EXPECT_FALSE(read->complete);
  EXPECT_EQ(read->jobs.at(0).error, "no");
  EXPECT_EQ(read->jobs[0].finished, kMoment);
  EXPECT_EQ(read->jobs.at(1).after, std::vector{id_at(1)});
  EXPECT_EQ(read->counts.at("waiting"), 1u);
}

TEST(Edit, ReadsBack) {
  JobEdit all{.body = "{\"a\": 1}",
              .content_type = "application/json",
              .headers = Headers{{"a", "1"}, {"a", "\xff"}},
              .queue = "other",
              .priority = 5,
              .retry = RetryPolicy::fixed(30s, 5),
              .time_limit = 90s,
              .due = kMoment + 1h};
  JobEdit read;
  const auto problem = read_edit(edit_json(all), kMoment, read);
  ASSERT_FALSE(problem) << problem->detail;
  EXPECT_EQ(read.body, all.body);
  EXPECT_EQ(read.content_type, all.content_type);
  EXPECT_EQ(read.headers, all.headers);
  EXPECT_EQ(read.queue, all.queue);
  EXPECT_EQ(read.priority, all.priority);
  EXPECT_EQ(read.retry, all.retry);
  EXPECT_EQ(read.time_limit, all.time_limit);
  EXPECT_EQ(read.due, all.due);
  EXPECT_FALSE(is_reschedule(all));
}

TEST(Edit, ChangesOnlyWhatIsGiven) {
  JobEdit edit;
  ASSERT_FALSE(read_edit(R"({"body":{"x":1}})", kMoment, edit));
  EXPECT_EQ(edit.body, R"({"x":1})");
  EXPECT_FALSE(edit.content_type);
  EXPECT_FALSE(edit.queue);
  EXPECT_FALSE(edit.priority);
  EXPECT_FALSE(edit.retry);
  EXPECT_FALSE(edit.due);
  edit = {};
  ASSERT_FALSE(read_edit(R"({"headers":{}})", kMoment, edit));
  EXPECT_EQ(edit.headers, Headers());
  EXPECT_EQ(edit_json(edit), R"({"headers":{}})");
  edit = {};
  ASSERT_FALSE(read_edit(R"({"delay":"10s"})", kMoment, edit));
  EXPECT_EQ(edit.due, kMoment + 10s);
  EXPECT_TRUE(is_reschedule(edit));
  // Nothing that is usual for a job is taken for a change.
  edit = {};
  ASSERT_FALSE(read_edit(R"({"priority":0})", kMoment, edit));
  EXPECT_EQ(edit.priority, 0);
}

TEST(Edit, IsReadStrictly) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "empty_body"},
      {"{}", "missing_field"},
      {R"({"kind":"b"})", "unknown_field"},
      {R"({"unique_key":"b"})", "unknown_field"},
      {R"({"due":"2026-01-01T00:00:00Z","delay":"1s"})", "conflicting_fields"},
      {R"({"due":"9000-01-01T00:00:00Z"})", "too_far"},
      {R"({"due":"x"})", "invalid_time"},
      {R"({"delay":"40000d"})", "too_far"},
      {R"({"queue":"a b"})", "invalid_queue_name"},
      {R"({"priority":101})", "invalid_priority"},
      {R"({"retry":"never"})", "invalid_retry"},
      {R"({"time_limit":"0s"})", "invalid_duration"},
      {R"({"headers":{"":"x"}})", "invalid_header"},
  };
  for (const auto& [body, code] : wrong) {
    JobEdit edit;
    const auto problem = read_edit(body, kMoment, edit);
    ASSERT_TRUE(problem) << body;
    EXPECT_EQ(problem->code, code) << body << ": " << problem->detail;
  }
}

}  // namespace
}  // namespace bide::wire
