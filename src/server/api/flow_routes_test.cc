#include <gtest/gtest.h>

#include <string>

#include "server/api/api_test_bench.h"

namespace bide::server {
namespace {

constexpr const char* kStranger = "018f3c1e-7d5a-7000-8000-000000000001";

class FlowRoutes : public ApiBench {};

TEST_F(FlowRoutes, AFlowThatNobodyHasIsNotThere) {
  enqueue(R"({"kind":"a"})");
  expect_problem(get(std::string("/v1/flows/") + kStranger), 404, "not_found", kStranger);
  expect_problem(get("/v1/flows/x"), 404, "not_found");
  const Response cancelled = post(std::string("/v1/flows/") + kStranger + "/cancel", "");
  EXPECT_EQ(field_of(cancelled.body, "matched"), "0") << cancelled.body;
  expect_problem(post(std::string("/v1/flows/") + kStranger + "/cancel", R"({"dry":true})"), 400, "unknown_field", "dry_run");
  expect_problem(post(std::string("/v1/flows/") + kStranger + "/replay", R"({"delay":"40000d"})"), 422, "too_far");
}

TEST_F(FlowRoutes, AFlowIsShownWithWhatEachJobWaitsFor) {
  const auto made = items_of(post("/v1/jobs", R"([{"kind":"publish","label":"last","after":["#small","#large"],"flow":"#fetch"},
                                                {"kind":"fetch","label":"fetch","flow":"#fetch"},
                                                {"kind":"small","label":"small","after":["#fetch"],"flow":"#fetch"},
                                                {"kind":"large","label":"large","after":["#fetch"],"flow":"#fetch"},
                                                {"kind":"other","delay":"1h"}])")
                                 .body,
                             "results");
  ASSERT_EQ(made.size(), 5u);
  const std::string id = field_of(made[1], "id");
  const Response waiting = get("/v1/flows/" + id);
  EXPECT_EQ(field_of(waiting.body, "percent"), "0") << waiting.body;
  const auto jobs = items_of(waiting.body, "jobs");
  ASSERT_EQ(jobs.size(), 4u);
  EXPECT_EQ(field_of(jobs[0], "kind"), "fetch");
  EXPECT_EQ(field_of(jobs[3], "kind"), "publish");
  EXPECT_EQ(items_of(jobs[3], "after").size(), 2u);
  EXPECT_EQ(field_of(field_of(waiting.body, "counts"), "waiting"), "3");
  EXPECT_EQ(field_of(get("/v1/jobs/" + field_of(made[0], "id")).body, "waits_for"), "2");
  EXPECT_EQ(items_of(get("/v1/jobs?flow=" + id + "&state=waiting").body, "jobs").size(), 3u);

  post("/v1/leases/settle", settlement(lease_one(), R"("outcome":"done")"));
  EXPECT_EQ(field_of(get("/v1/flows/" + id).body, "percent"), "25");
  const std::string running = lease_one(R"({"wait":"5s","max":1})");
  const std::string ref = R"({"id":")" + field_of(running, "id") + R"(","token":")" + field_of(running, "token") + "\"";
  EXPECT_EQ(post("/v1/leases/extend", R"({"leases":[)" + ref + R"(,"progress":{"part":0.5,"note":"half"}}]})").status, 200);
  EXPECT_EQ(field_of(get("/v1/flows/" + id).body, "percent"), "37.5");
  EXPECT_EQ(field_of(field_of(get("/v1/jobs/" + field_of(running, "id")).body, "progress"), "note"), "half");
}

TEST_F(FlowRoutes, AFlowIsCancelledWithoutThatAnyOfItBegins) {
  const auto made = items_of(post("/v1/jobs", R"([{"kind":"a","label":"a","flow":"#a"},
                                                {"kind":"b","label":"b","after":["#a"],"flow":"#a"},
                                                {"kind":"c","after":["#b"],"flow":"#a"},
                                                {"kind":"d","flow":"#a","delay":"1h"},
                                                {"kind":"other","delay":"1h"}])")
                                 .body,
                             "results");
  ASSERT_EQ(made.size(), 5u);
  const std::string flow = "/v1/flows/" + field_of(made[0], "id");
  EXPECT_EQ(field_of(post(flow + "/cancel", R"({"dry_run":true})").body, "matched"), "4");
  const Response cancelled = post(flow + "/cancel", "");
  EXPECT_EQ(field_of(cancelled.body, "succeeded"), "4") << cancelled.body;
  EXPECT_EQ(get(flow).status, 404);
  EXPECT_EQ(get("/v1/jobs/" + field_of(made[4], "id")).status, 200);
  EXPECT_TRUE(items_of(post("/v1/leases", R"({"max":10})").body, "leases").empty());
}

TEST_F(FlowRoutes, TheDeadOfAFlowAreReplayedAndItGoesOn) {
  const auto made = items_of(post("/v1/jobs", R"([{"kind":"a","label":"a","flow":"#a","retry":"none"},
                                                {"kind":"b","after":["#a"],"flow":"#a"},
                                                {"kind":"other","retry":"none"}])")
                                 .body,
                             "results");
  ASSERT_EQ(made.size(), 3u);
  const std::string flow = "/v1/flows/" + field_of(made[0], "id");
  for (int i = 0; i < 2; ++i) post("/v1/leases/settle", settlement(lease_one(), R"("outcome":"dead","error":"no")"));
  EXPECT_EQ(field_of(get("/v1/jobs/" + field_of(made[1], "id")).body, "state"), "waiting");
  EXPECT_EQ(field_of(post(flow + "/replay", "").body, "succeeded"), "1");
  EXPECT_EQ(field_of(get("/v1/jobs/" + field_of(made[2], "id")).body, "state"), "dead");
  for (const char* kind : {"a", "b"}) {
    const std::string lease = lease_one();
    EXPECT_EQ(field_of(lease, "kind"), kind);
    post("/v1/leases/settle", settlement(lease, R"("outcome":"done")"));
  }
  EXPECT_EQ(field_of(get(flow).body, "percent"), "100");
}

TEST_F(FlowRoutes, OfAFlowThroughSeveralQueuesACallerSeesTheirOwn) {
  const auto made = items_of(post("/v1/jobs", R"([{"kind":"a","label":"a","flow":"#a","queue":"mine"},
                                                {"kind":"b","after":["#a"],"flow":"#a","queue":"ours"},
                                                {"kind":"c","flow":"#a","queue":"theirs"}])")
                                 .body,
                             "results");
  ASSERT_EQ(made.size(), 3u);
  const std::string flow = "/v1/flows/" + field_of(made[0], "id");
  caller_queues_ = {"mine", "ours"};
  EXPECT_EQ(items_of(get(flow).body, "jobs").size(), 2u);
  EXPECT_EQ(field_of(post(flow + "/cancel", "").body, "succeeded"), "2");
  EXPECT_EQ(get(flow).status, 404);
  caller_queues_ = {"others"};
  EXPECT_EQ(field_of(post(flow + "/cancel", "").body, "matched"), "0");
  caller_queues_.clear();
  EXPECT_EQ(items_of(get(flow).body, "jobs").size(), 1u);
}

TEST_F(FlowRoutes, StepsOfAnAttemptAreThereForTheNext) {
  enqueue(R"json({"kind":"a","retry":"fixed(0s,x3)"})json");
  const std::string first = lease_one();
  const auto step = [](const std::string& lease, const std::string& rest) {
    return R"({"id":")" + field_of(lease, "id") + R"(","token":")" + field_of(lease, "token") + "\"," + rest + "}";
  };
  EXPECT_EQ(post("/v1/leases/steps", step(first, R"("name":"charge","result":"ch_1")")).status, 200);
  EXPECT_EQ(post("/v1/leases/steps", step(first, R"("name":"seal","result_base64":"/w==")")).status, 200);
  post("/v1/leases/settle", settlement(first, R"("outcome":"failed","error":"no")"));
  const std::string second = lease_one();
  const auto steps = items_of(second, "steps");
  ASSERT_EQ(steps.size(), 2u) << second;
  EXPECT_EQ(field_of(steps[0], "result"), "ch_1");
  EXPECT_EQ(field_of(steps[1], "result_base64"), "/w==");
  expect_problem(post("/v1/leases/steps", step(first, R"("name":"late","result":"x")")), 409, "lease_lost");
  expect_problem(post("/v1/leases/steps", step(second, R"("result":"x")")), 422, "missing_field", "name");
  caller_queues_ = {"other"};
  expect_problem(post("/v1/leases/steps", step(second, R"("name":"x","result":"x")")), 404, "not_found");
}

TEST_F(FlowRoutes, JobsAreListedByTheirHeaders) {
  const std::string acme = enqueue(R"({"kind":"a","headers":{"tenant":"acme","region":"eu"}})");
  enqueue(R"({"kind":"a","headers":{"tenant":"acme"}})");
  enqueue(R"({"kind":"a","headers":{"tenant":"other"}})");
  EXPECT_EQ(items_of(get("/v1/jobs?header.tenant=acme").body, "jobs").size(), 2u);
  const auto both = items_of(get("/v1/jobs?header.tenant=acme&header.region=eu").body, "jobs");
  ASSERT_EQ(both.size(), 1u);
  EXPECT_EQ(field_of(both[0], "id"), acme);
  const Response cancelled = post("/v1/jobs/cancel", R"({"filter":{"headers":{"tenant":"acme"}}})");
  EXPECT_EQ(field_of(cancelled.body, "succeeded"), "2") << cancelled.body;
  EXPECT_EQ(items_of(get("/v1/jobs").body, "jobs").size(), 1u);
}

}  // namespace
}  // namespace bide::server
