#include <gtest/gtest.h>

#include <set>

#include "server/api/api_test_bench.h"

namespace bide::server {
namespace {

class JobRoutes : public ApiBench {
 protected:
  std::string kill(const std::string& queue, const std::string& error) {
    const std::string id = enqueue(R"({"kind":"a","queue":")" + queue + "\"}");
    const std::string lease = lease_one(R"({"queue":")" + queue + R"(","wait":"5s"})");
    EXPECT_EQ(post("/v1/leases/settle", settlement(lease, R"("outcome":"dead","error":")" + error + "\"")).status, 200);
    return id;
  }
};

TEST_F(JobRoutes, AnUnknownJobIsNotFound) {
  const std::string nobody = "/v1/jobs/018f3c1e-7d5a-7000-8000-000000000009";
  expect_problem(get(nobody), 404, "not_found");
  expect_problem(get("/v1/jobs/nonsense"), 404, "not_found", "nonsense");
  expect_problem(get(nobody + "/explain"), 404, "not_found");
  expect_problem(get(nobody + "/result"), 404, "not_found");
  expect_problem(get(nobody + "/result?wait=5s"), 404, "not_found");
  expect_problem(call(Method::kDelete, nobody), 404, "not_found");
  expect_problem(call(Method::kPatch, nobody, R"({"delay":"5s"})"), 404, "not_found");
}

TEST_F(JobRoutes, PagesFollowOneAnotherByTheirCursor) {
  std::string jobs = "[";
  for (int i = 0; i < 25; ++i)
    jobs +=
        (i == 0 ? "" : ",") + std::string(R"({"kind":"a","queue":"q","delay":")") + std::to_string(i + 100) + R"(s"})";
  post("/v1/jobs", jobs + R"(,{"kind":"b","queue":"q"}])");
  std::set<std::string> ids;
  std::string cursor;
  int pages = 0;
  do {
    const Response page =
        get("/v1/jobs?queue=q&kind=a&state=scheduled&limit=10" + (cursor.empty() ? "" : "&cursor=" + cursor));
    ASSERT_EQ(page.status, 200) << page.body;
    for (const std::string& job : items_of(page.body, "jobs")) EXPECT_TRUE(ids.insert(field_of(job, "id")).second);
    cursor = field_of(page.body, "next");
    ++pages;
    if (cursor == "null") break;
    // Changed, or used for another question, it is refused.
    std::string tampered = cursor;
    tampered[3] = tampered[3] == 'A' ? 'B' : 'A';
    expect_problem(get("/v1/jobs?queue=q&kind=a&state=scheduled&cursor=" + tampered), 400, "invalid_cursor");
    expect_problem(get("/v1/jobs?queue=q&cursor=" + cursor), 400, "invalid_cursor");
  } while (pages < 10);
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(ids.size(), 25u);
}

TEST_F(JobRoutes, BadQueriesAreRefused) {
  for (const std::string limit : {"0", "-1", "abc", "1001", ""})
    expect_problem(get("/v1/jobs?limit=" + limit), 400, "invalid_limit");
  expect_problem(get("/v1/jobs?cursor=abc"), 400, "invalid_cursor");
  expect_problem(get("/v1/jobs?state=redy"), 400, "invalid_parameter", "did you mean 'ready'?");
  expect_problem(get("/v1/jobs?sate=ready"), 400, "unknown_parameter", "did you mean 'state'?");
  expect_problem(get("/v1/jobs?since=yesterday"), 400, "invalid_parameter");
  expect_problem(get("/v1/dead?state=ready"), 400, "unknown_parameter");
  expect_problem(get("/v1/jobs?bodies=1"), 400, "invalid_parameter", "true");
  expect_problem(get("/v1/jobs?queue=a%20b"), 422, "invalid_queue_name", "a%20b");
  expect_problem(get("/v1/dead?queue=.a"), 422, "invalid_queue_name");
  expect_problem(get("/v1/jobs?kind=a/b"), 422, "invalid_kind_name");
  expect_problem(get("/v1/events?queue=a/b"), 422, "invalid_queue_name");
  expect_problem(post("/v1/dead/delete", R"({"filter":{"queue":"a b"}})"), 422, "invalid_queue_name");
  const std::string id = enqueue(R"({"kind":"a"})");
  expect_problem(get("/v1/jobs/" + id + "?wait=5"), 400, "invalid_parameter", "units");
  expect_problem(get("/v1/jobs/" + id + "/result?wait=1h"), 400, "invalid_parameter", "at most 5m");
}

TEST_F(JobRoutes, ListsHaveBodiesOnlyWhenAskedFor) {
  enqueue(R"({"kind":"a","queue":"q","body":{"n":1}})");
  const auto listed = [&](const std::string& more) { return items_of(get("/v1/jobs?queue=q" + more).body, "jobs").at(0); };
  EXPECT_EQ(field_of(listed(""), "body"), "");
  EXPECT_EQ(field_of(listed("&bodies=false"), "body"), "");
  EXPECT_EQ(field_of(listed("&bodies=true"), "body"), R"({"n":1})");
  EXPECT_EQ(field_of(listed(""), "content_type"), "application/json");
}

TEST_F(JobRoutes, PagesOfLargeJobsEndEarly) {
  const std::string body(JobPage::kMostBytes * 3 / 4, 'x');
  for (int i = 0; i < 3; ++i) enqueue(R"({"kind":"a","queue":"q","body_text":")" + body + "\"}");
  const Response first = get("/v1/jobs?queue=q&bodies=true");
  EXPECT_EQ(items_of(first.body, "jobs").size(), 2u);
  const Response second = get("/v1/jobs?queue=q&bodies=true&cursor=" + field_of(first.body, "next"));
  EXPECT_EQ(items_of(second.body, "jobs").size(), 1u);
  EXPECT_EQ(field_of(second.body, "next"), "null");
  // The cursor is of the list, with or without bodies.
  EXPECT_EQ(items_of(get("/v1/jobs?queue=q&cursor=" + field_of(first.body, "next")).body, "jobs").size(), 1u);
  EXPECT_EQ(items_of(get("/v1/jobs?queue=q").body, "jobs").size(), 3u);
}

TEST_F(JobRoutes, AnAnswerToAPollEndsWhenItsJobsAreLarge) {
  const std::string body(12 << 20, 'x');
  for (int i = 0; i < 3; ++i) enqueue(R"({"kind":"a","queue":"q","body_text":")" + body + "\"}");
  std::size_t leased = 0;
  for (int polls = 0; leased < 3; ++polls) {
    ASSERT_LT(polls, 10);
    const Response answer = post("/v1/leases", R"({"queue":"q","max":100,"wait":"5s"})");
    const auto leases = items_of(answer.body, "leases");
    EXPECT_LE(leases.size(), 2u);
    for (const std::string& lease : leases) EXPECT_EQ(field_of(lease, "body_text").size(), body.size());
    leased += leases.size();
  }
}

TEST_F(JobRoutes, ADoneJobShowsItsFailures) {
  const std::string id = enqueue(R"x({"kind":"a","retry":"fixed(1ms)"})x");
  post("/v1/leases/settle", settlement(lease_one(), R"("outcome":"failed","error":"no luck")"));
  post("/v1/leases/settle", settlement(lease_one(), R"("outcome":"done")"));
  const Response shown = get("/v1/jobs/" + id);
  EXPECT_EQ(field_of(shown.body, "state"), "done");
  EXPECT_EQ(field_of(field_of(shown.body, "counts"), "failed"), "1");
  const auto errors = items_of(shown.body, "errors");
  ASSERT_EQ(errors.size(), 1u) << shown.body;
  EXPECT_EQ(field_of(errors[0], "text"), "no luck");
}

TEST_F(JobRoutes, OnlyWhatIsDeadIsDeletedFromTheDead) {
  const std::string dead = kill("q", "x");
  const std::string replayed = kill("q", "x");
  post("/v1/dead/replay", R"({"ids":[")" + replayed + "\"]}");
  const Response answer = post("/v1/dead/delete", R"({"ids":[")" + dead + R"(",")" + replayed + "\"]}");
  const auto results = items_of(answer.body, "results");
  ASSERT_EQ(results.size(), 2u) << answer.body;
  EXPECT_EQ(field_of(results[0], "status"), "200");
  EXPECT_EQ(field_of(results[1], "status"), "409");
  EXPECT_EQ(field_of(get("/v1/jobs/" + replayed).body, "state"), "ready");
  const Response cancelled = post("/v1/jobs/cancel", R"({"ids":[")" + replayed + R"("],"state":"dead"})");
  EXPECT_EQ(field_of(cancelled.body, "failed"), "1");
  expect_problem(post("/v1/jobs/cancel", R"({"ids":[],"state":"ded"})"), 400, "invalid_parameter", "dead");
}

TEST_F(JobRoutes, StrangersAreNotToldWhyThereIsPressure) {
  open({}, 1);
  enqueue(R"({"kind":"a"})");
  post("/v1/jobs", R"({"kind":"a"})");
  const Response known = get("/v1/pressure");
  EXPECT_NE(field_of(known.body, "reason"), "") << known.body;
  caller_scopes_ = 0;
  const Response strange = get("/v1/pressure");
  EXPECT_EQ(field_of(strange.body, "level"), field_of(known.body, "level"));
  EXPECT_EQ(field_of(strange.body, "reason"), "");
}

TEST_F(JobRoutes, AJobIsRescheduledAndCancelled) {
  const std::string id = enqueue(R"({"kind":"a","delay":"1h"})");
  EXPECT_EQ(field_of(get("/v1/jobs/" + id + "/explain").body, "code"), "scheduled");
  EXPECT_EQ(call(Method::kPatch, "/v1/jobs/" + id, R"({"delay":"0"})").status, 200);
  EXPECT_EQ(field_of(get("/v1/jobs/" + id).body, "state"), "ready");
  expect_problem(call(Method::kPatch, "/v1/jobs/" + id, R"({"due":"tomorrow"})"), 422, "invalid_time");
  expect_problem(call(Method::kPatch, "/v1/jobs/" + id, ""), 400, "empty_body");
  EXPECT_EQ(field_of(call(Method::kDelete, "/v1/jobs/" + id).body, "cancelled"), "true");
  EXPECT_EQ(get("/v1/jobs/" + id).status, 404);
  const std::string other = enqueue(R"({"kind":"a"})");
  const Response many = post("/v1/jobs/cancel", R"({"ids":[")" + other + R"(",")" + id + "\"]}");
  const auto results = items_of(many.body, "results");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(field_of(results[0], "status"), "200");
  EXPECT_EQ(field_of(results[1], "status"), "404");
}

TEST_F(JobRoutes, WhatMatchesAFilterIsCancelled) {
  const std::string running = enqueue(R"({"kind":"a"})");
  lease_one();
  const std::string dead = kill("default", "x");
  const std::string other_kind = enqueue(R"({"kind":"b"})");
  std::vector<std::string> waiting;
  for (int i = 0; i < 3; ++i) waiting.push_back(enqueue(R"({"kind":"a"})"));
  waiting.push_back(enqueue(R"({"kind":"a","delay":"1h"})"));

  const Response counted = post("/v1/jobs/cancel", R"({"filter":{"kind":"a"},"dry_run":true})");
  EXPECT_EQ(field_of(counted.body, "matched"), "4") << counted.body;
  EXPECT_EQ(get("/v1/jobs/" + waiting[0]).status, 200);
  const Response some = post("/v1/jobs/cancel", R"({"filter":{"kind":"a"},"limit":1})");
  EXPECT_EQ(field_of(some.body, "succeeded"), "1") << some.body;
  const Response rest = post("/v1/jobs/cancel", R"({"filter":{"kind":"a"}})");
  EXPECT_EQ(field_of(rest.body, "succeeded"), "3") << rest.body;

  for (const std::string& id : waiting) EXPECT_EQ(get("/v1/jobs/" + id).status, 404);
  EXPECT_EQ(field_of(get("/v1/jobs/" + running).body, "state"), "running");
  EXPECT_EQ(field_of(get("/v1/jobs/" + dead).body, "state"), "dead");
  EXPECT_EQ(field_of(get("/v1/jobs/" + other_kind).body, "state"), "ready");
  EXPECT_EQ(field_of(post("/v1/jobs/cancel", R"({"filter":{},"state":"dead"})").body, "succeeded"), "1");
  expect_problem(post("/v1/jobs/cancel", "{}"), 422, "missing_field", "filter");
}

TEST_F(JobRoutes, AResultIsWaitedFor) {
  const std::string id = enqueue(R"({"kind":"a"})");
  EXPECT_EQ(get("/v1/jobs/" + id + "/result").status, 202);
  const Response late = get("/v1/jobs/" + id + "/result?wait=10ms");
  EXPECT_EQ(late.status, 202);
  EXPECT_EQ(field_of(late.body, "state"), "ready");
  const auto first = start(Method::kGet, "/v1/jobs/" + id + "/result?wait=60s");
  const auto second = start(Method::kGet, "/v1/jobs/" + id + "?wait=60s");
  const auto gone = start(Method::kGet, "/v1/jobs/" + id + "?wait=60s");
  gone->leave();
  EXPECT_FALSE(first->answered());
  post("/v1/leases/settle", settlement(lease_one(), R"("outcome":"done","result_text":"fine")"));
  EXPECT_EQ(field_of(first->wait().body, "result_text"), "fine");
  EXPECT_EQ(field_of(second->wait().body, "state"), "done");
}

TEST_F(JobRoutes, QueuesAreCountedPausedAndPurged) {
  for (int i = 0; i < 3; ++i) enqueue(R"({"kind":"a","queue":"q"})");
  EXPECT_EQ(field_of(post("/v1/queues/q/pause", "").body, "paused"), "true");
  const Response queue = get("/v1/queues/q");
  EXPECT_EQ(field_of(queue.body, "ready"), "3");
  EXPECT_EQ(field_of(queue.body, "paused"), "true");
  EXPECT_EQ(items_of(get("/v1/queues").body, "queues").size(), 1u);
  EXPECT_EQ(field_of(post("/v1/queues/q/resume", "").body, "paused"), "false");
  EXPECT_EQ(field_of(post("/v1/queues/q/purge", "").body, "removed"), "3");
  expect_problem(get("/v1/queues/none"), 404, "not_found");
  expect_problem(post("/v1/queues/none/purge", ""), 404, "not_found");
  expect_problem(post("/v1/queues/a%20b/pause", ""), 422, "invalid_queue_name");
}

TEST_F(JobRoutes, DeadJobsAreReplayedByIdOrByFilter) {
  const std::string one = kill("q", "timeout");
  const std::string two = kill("q", "no such file");
  const std::string other = kill("r", "timeout");
  EXPECT_EQ(items_of(get("/v1/dead?queue=q&error=timeout").body, "jobs").size(), 1u);
  EXPECT_EQ(items_of(get("/v1/dead").body, "jobs").size(), 3u);
  const Response dry = post("/v1/dead/replay", R"({"filter":{"queue":"q"},"dry_run":true})");
  EXPECT_EQ(field_of(dry.body, "matched"), "2");
  EXPECT_EQ(field_of(dry.body, "succeeded"), "0");
  const Response filtered = post("/v1/dead/replay", R"({"filter":{"queue":"q","error":"timeout"},"delay":"1h"})");
  EXPECT_EQ(field_of(filtered.body, "succeeded"), "1");
  EXPECT_EQ(field_of(get("/v1/jobs/" + one).body, "state"), "scheduled");
  const Response by_id = post("/v1/dead/replay", R"({"ids":[")" + two + R"(",")" + one + "\"]}");
  EXPECT_EQ(field_of(by_id.body, "succeeded"), "1");
  EXPECT_EQ(field_of(items_of(by_id.body, "results").at(1), "status"), "409");
  const Response removed = post("/v1/dead/delete", R"({"ids":[")" + two + R"(",")" + other + "\"]}");
  EXPECT_EQ(field_of(items_of(removed.body, "results").at(0), "status"), "409");
  EXPECT_EQ(field_of(items_of(removed.body, "results").at(1), "status"), "200");
  EXPECT_EQ(items_of(get("/v1/dead").body, "jobs").size(), 0u);
  expect_problem(post("/v1/dead/replay", "{}"), 422, "missing_field");
}

TEST_F(JobRoutes, EverythingDeadIsDeletedAPageAtATime) {
  std::string jobs = "[";
  for (int i = 0; i < 1201; ++i) jobs += (i == 0 ? "" : ",") + std::string(R"({"kind":"a"})");
  post("/v1/jobs", jobs + "]");
  for (int settled = 0; settled < 1201;) {
    std::string settlements;
    for (const std::string& lease : items_of(post("/v1/leases", R"({"max":2000,"wait":"5s"})").body, "leases")) {
      settlements += (settlements.empty() ? "" : ",") + settlement(lease, R"("outcome":"dead","error":"x")");
      ++settled;
    }
    post("/v1/leases/settle", R"({"settlements":[)" + settlements + "]}");
  }
  EXPECT_EQ(field_of(post("/v1/dead/delete", R"({"filter":{},"limit":700})").body, "succeeded"), "700");
  EXPECT_EQ(field_of(post("/v1/dead/delete", R"({"filter":{}})").body, "succeeded"), "501");
  EXPECT_EQ(audit().live, 0u);
}

TEST_F(JobRoutes, TheBrokerTellsAboutItself) {
  enqueue(R"({"kind":"a"})");
  const Response report = get("/v1/audit");
  EXPECT_EQ(field_of(report.body, "ok"), "true");
  EXPECT_EQ(field_of(report.body, "live"), "1");
  EXPECT_EQ(field_of(get("/v1/pressure").body, "level"), "ok");
  EXPECT_EQ(field_of(get("/v1/capabilities").body, "inspect"), "true");
}

TEST_F(JobRoutes, EventsTellWhatHappens) {
  const auto listener = start(Method::kGet, "/v1/events?queue=q");
  EXPECT_EQ(listener->wait().content_type, "text/event-stream");
  listener->wait_for_text("event: queues\n");
  const std::string id = enqueue(R"({"kind":"a","queue":"q"})");
  enqueue(R"({"kind":"unheard","queue":"other"})");
  listener->wait_for_text("\ndata: {\"id\":\"" + id + "\",\"kind\":\"a\",\"queue\":\"q\"}\n\n");
  const std::string lease = lease_one(R"({"queue":"q","wait":"5s"})");
  listener->wait_for_text("event: job.leased\n");
  post("/v1/leases/settle", settlement(lease, R"("outcome":"done")"));
  const std::string heard = listener->wait_for_text("\"outcome\":\"done\"}");
  EXPECT_EQ(heard.find("unheard"), std::string::npos);
  EXPECT_NE(heard.find("event: job.enqueued\nid: "), std::string::npos);
  listener->leave();
  // Who comes back with the id of an event hears what came after it; with one that nobody knows, that something is lost.
  const std::size_t at = heard.find("event: job.enqueued\nid: ") + 24;
  const std::string last = heard.substr(at, heard.find('\n', at) - at);
  const auto again = start(Method::kGet, "/v1/events?queue=q", "", {{"last-event-id", last}});
  const std::string missed = again->wait_for_text("\"outcome\":\"done\"}");
  EXPECT_EQ(missed.find("job.enqueued"), std::string::npos);
  EXPECT_NE(missed.find("job.leased"), std::string::npos);
  EXPECT_EQ(missed.find("event: reset"), std::string::npos);
  again->leave();
  const auto stranger = start(Method::kGet, "/v1/events", "", {{"last-event-id", "elsewhere-7"}});
  stranger->wait_for_text("event: reset\nid: ");
  stranger->leave();
}

}  // namespace
}  // namespace bide::server
