#include <gtest/gtest.h>

#include <string>

#include "server/api/api_test_bench.h"

namespace bide::server {
namespace {

class ScheduleRoutes : public ApiBench {
 protected:
  Response put(const std::string& name, const std::string& body) {
    return call(Method::kPut, "/v1/schedules/" + name, body);
  }
  std::string schedule(const std::string& name) { return get("/v1/schedules/" + name).body; }
};

constexpr char kNightly[] = R"({"cron":"30 7 * * mon-fri","job":{"kind":"report","queue":"reports","body":{"a":1}},"owner":"billing"})";

TEST_F(ScheduleRoutes, PuttingTheSameAgainChangesNothing) {
  const Response first = put("report", kNightly);
  ASSERT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(field_of(first.body, "created"), "true");
  EXPECT_NE(field_of(first.body, "next"), "null");
  const Response again = put("report", kNightly);
  EXPECT_EQ(field_of(again.body, "created"), "false");
  EXPECT_EQ(field_of(again.body, "changed"), "false");
  const Response changed = put("report", R"({"every":"1h","job":{"kind":"report"},"owner":"billing"})");
  EXPECT_EQ(field_of(changed.body, "changed"), "true");
  EXPECT_EQ(field_of(schedule("report"), "every_ms"), "3600000");
  EXPECT_EQ(field_of(schedule("report"), "cron"), "");
  EXPECT_EQ(items_of(get("/v1/schedules").body, "schedules").size(), 1u);
  expect_problem(put("report", R"({"every":"1h","job":{"kind":"report"},"owner":"shop"})"), 409, "already_exists", "report");
}

TEST_F(ScheduleRoutes, WhatIsShownCanBePutAgain) {
  ASSERT_EQ(put("report", kNightly).status, 200);
  const std::string shown = schedule("report");
  EXPECT_EQ(field_of(shown, "job"), R"({"kind":"report","queue":"reports","body":{"a":1}})");
  std::string same = "{";
  for (const std::string name : {"cron", "zone", "owner", "missed", "overlap"}) {
    same += (same.size() > 1 ? "," : "") + ("\"" + name) + "\":\"" + field_of(shown, name) + "\"";
  }
  const Response again = put("report", same + ",\"job\":" + field_of(shown, "job") + "}");
  EXPECT_EQ(field_of(again.body, "changed"), "false") << again.body;
}

TEST_F(ScheduleRoutes, AScheduleIsPausedRunAndRemoved) {
  ASSERT_EQ(put("report", kNightly).status, 200);
  EXPECT_EQ(post("/v1/schedules/report/pause", "").body, R"({"name":"report","paused":true})");
  EXPECT_EQ(field_of(schedule("report"), "paused"), "true");
  EXPECT_EQ(post("/v1/schedules/report/resume", "").body, R"({"name":"report","paused":false})");
  const Response run = post("/v1/schedules/report/run", "");
  ASSERT_EQ(run.status, 200) << run.body;
  const std::string lease = lease_one(R"({"queue":"reports","wait":"5s"})");
  EXPECT_EQ(field_of(lease, "id"), field_of(run.body, "id"));
  EXPECT_EQ(field_of(lease, "body"), R"({"a":1})");
  EXPECT_EQ(call(Method::kDelete, "/v1/schedules/report").body, R"({"name":"report","removed":true})");
  for (const std::string verb : {"/pause", "/resume", "/run"}) {
    expect_problem(post("/v1/schedules/report" + verb, ""), 404, "not_found");
  }
  expect_problem(call(Method::kDelete, "/v1/schedules/report"), 404, "not_found");
  expect_problem(get("/v1/schedules/report"), 404, "not_found", "'report'");
}

TEST_F(ScheduleRoutes, TimesAreToldOfASchedule) {
  ASSERT_EQ(put("report", R"({"every":"15m","anchor":"2026-01-01T00:05:00Z","job":{"kind":"a"}})").status, 200);
  const Response times = get("/v1/schedules/report/times?limit=3");
  EXPECT_EQ(field_of(times.body, "text"), "every 15m");
  const auto listed = items_of(times.body, "times");
  ASSERT_EQ(listed.size(), 3u);
  EXPECT_EQ(listed[0], "\"" + field_of(schedule("report"), "next") + "\"");
  expect_problem(get("/v1/schedules/report/times?limit=0"), 400, "invalid_limit");
  expect_problem(get("/v1/schedules/nobodys/times"), 404, "not_found");
}

TEST_F(ScheduleRoutes, AnExpressionIsExplainedWithoutASchedule) {
  const Response times = get("/v1/schedule-times?cron=30 7 * * mon-fri&limit=2");
  EXPECT_EQ(field_of(times.body, "text"), "at 07:30, on Monday to Friday (UTC)");
  EXPECT_EQ(items_of(times.body, "times").size(), 2u);
  EXPECT_EQ(items_of(get("/v1/schedule-times?every=1h").body, "times").size(), 5u);
  expect_problem(get("/v1/schedule-times?cron=30 7"), 422, "invalid_cron", "'30 7'");
  expect_problem(get("/v1/schedule-times"), 422, "missing_field");
  expect_problem(get("/v1/schedule-times?cron=@daily&every=1h"), 422, "conflicting_fields");
  expect_problem(get("/v1/schedule-times?every=often"), 400, "invalid_parameter", "every");
  expect_problem(get("/v1/schedule-times?cron=@daily&zone=Nowhere/Land"), 422, "unknown_zone", "Nowhere/Land");
  expect_problem(get("/v1/schedule-times?cron=@daily&zon=UTC"), 400, "unknown_parameter", "did you mean 'zone'?");
}

TEST_F(ScheduleRoutes, MistakesAreToldByTheirField) {
  expect_problem(put("report", R"({"cron":"0 0 30 feb *","job":{"kind":"a"}})"), 422, "invalid_cron");
  expect_problem(put("report", R"({"job":{"kind":"a"}})"), 422, "missing_field", "cron");
  expect_problem(put("a b", kNightly), 422, "invalid_schedule_name", "'a b'");
  const Response delayed = put("report", R"({"cron":"@daily","job":{"kind":"a","delay":"1h"}})");
  expect_problem(delayed, 422, "conflicting_fields", "delay");
  EXPECT_EQ(field_of(delayed.body, "field"), "job.delay");
  expect_problem(put("report", R"({"cron":"@daily","zone":"Nowhere/Land","job":{"kind":"a"}})"), 422, "invalid_argument",
                 "Nowhere/Land");
  EXPECT_EQ(items_of(get("/v1/schedules").body, "schedules").size(), 0u);
}

TEST_F(ScheduleRoutes, AJobOfAScheduleIsCheckedAsOneThatIsEnqueued) {
  ApiOptions options;
  options.callback_queue = "callbacks";
  options.find_callback_problem = [](const Job& job) -> std::optional<wire::Problem> {
    if (job.kind != "bad") return std::nullopt;
    return wire::make_problem("callback_address_blocked", "not there", "callback");
  };
  open(std::move(options));
  expect_problem(put("report", R"({"every":"1h","job":{"kind":"bad","callback":"http://127.0.0.1/"}})"), 422,
                 "callback_address_blocked");
  ASSERT_EQ(put("report", R"({"every":"1h","job":{"kind":"a","callback":"https://example.org/"}})").status, 200);
  EXPECT_EQ(field_of(field_of(schedule("report"), "job"), "queue"), "callbacks");
}

TEST_F(ScheduleRoutes, ATokenForSomeQueuesSeesAndChangesSchedulesOfTheseOnly) {
  ASSERT_EQ(put("theirs", R"({"every":"1h","job":{"kind":"a","queue":"theirs"}})").status, 200);
  ASSERT_EQ(put("mine", R"({"every":"1h","job":{"kind":"a","queue":"mine"}})").status, 200);
  ASSERT_EQ(call(Method::kPut, "/v1/queues/theirs/rules", R"({"at_once":5})").status, 200);
  caller_queues_ = {"mine"};
  const auto listed = items_of(get("/v1/schedules").body, "schedules");
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(field_of(listed[0], "name"), "mine");
  expect_problem(get("/v1/schedules/theirs"), 404, "not_found");
  expect_problem(get("/v1/schedules/theirs/times"), 404, "not_found");
  for (const std::string verb : {"/pause", "/resume", "/run"}) {
    expect_problem(post("/v1/schedules/theirs" + verb, ""), 404, "not_found");
  }
  expect_problem(call(Method::kDelete, "/v1/schedules/theirs"), 404, "not_found");
  // Neither there, nor over what is there, nor with a reply there.
  expect_problem(put("new", R"({"every":"1h","job":{"kind":"a","queue":"theirs"}})"), 403, "forbidden", "mine");
  expect_problem(put("new", R"({"every":"1h","job":{"kind":"a","queue":"mine","reply_queue":"theirs"}})"), 403, "forbidden");
  expect_problem(put("theirs", R"({"every":"1h","job":{"kind":"a","queue":"mine"}})"), 409, "already_exists", "another name");
  EXPECT_EQ(put("mine", R"({"every":"2h","job":{"kind":"a","queue":"mine"}})").status, 200);
  EXPECT_EQ(post("/v1/schedules/mine/run", "").status, 200);
  EXPECT_EQ(items_of(get("/v1/rules").body, "rules").size(), 0u);
  EXPECT_EQ(field_of(get("/v1/queues/theirs/rules").body, "at_once"), "0");
  expect_problem(call(Method::kPut, "/v1/queues/theirs/rules", R"({"at_once":1})"), 404, "not_found");
  expect_problem(call(Method::kDelete, "/v1/queues/theirs/rules"), 404, "not_found");
  EXPECT_EQ(call(Method::kPut, "/v1/queues/mine/rules", R"({"at_once":1})").status, 200);
  caller_queues_ = {};
  EXPECT_EQ(field_of(schedule("theirs"), "paused"), "false");
  EXPECT_EQ(field_of(get("/v1/queues/theirs/rules").body, "at_once"), "5");
}

}  // namespace
}  // namespace bide::server
