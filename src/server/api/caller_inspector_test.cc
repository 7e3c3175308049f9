#include "server/api/caller_inspector.h"

#include <gtest/gtest.h>

#include <string>

#include "server/api/api_test_bench.h"

namespace bide::server {
namespace {

// Everything is there twice: in the queue `mine`, to which the caller is restricted, and in `theirs`.
class QueueLimits : public ApiBench {
 protected:
  void SetUp() override {
    ApiBench::SetUp();
    mine_ = enqueue(R"({"kind":"a","queue":"mine","delay":"1h"})");
    theirs_ = enqueue(R"({"kind":"a","queue":"theirs","delay":"1h"})");
    caller_queues_ = {"mine"};
  }
  std::string ids() const { return R"({"ids":[")" + mine_ + R"(",")" + theirs_ + "\"]}"; }
  std::string as_anybody(const std::function<std::string()>& act) {
    const auto kept = std::exchange(caller_queues_, {});
    std::string result = act();
    caller_queues_ = kept;
    return result;
  }
  std::string state_of(const std::string& id) {
    return as_anybody([&] { return field_of(get("/v1/jobs/" + id).body, "state"); });
  }

  std::string mine_;
  std::string theirs_;
};

TEST_F(QueueLimits, WhatIsElsewhereDoesNotExist) {
  EXPECT_EQ(get("/v1/jobs/" + mine_).status, 200);
  for (const std::string more : {"", "/explain", "/result", "?wait=5s", "/result?wait=5s"}) {
    expect_problem(get("/v1/jobs/" + theirs_ + more), 404, "not_found");
  }
  const auto listed = items_of(get("/v1/jobs").body, "jobs");
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(field_of(listed[0], "id"), mine_);
  EXPECT_EQ(items_of(get("/v1/jobs?queue=theirs").body, "jobs").size(), 0u);
  const auto queues = items_of(get("/v1/queues").body, "queues");
  ASSERT_EQ(queues.size(), 1u);
  EXPECT_EQ(field_of(queues[0], "name"), "mine");
  expect_problem(get("/v1/queues/theirs"), 404, "not_found");
  // With several queues the caller says which.
  caller_queues_ = {"mine", "other"};
  expect_problem(get("/v1/jobs"), 422, "invalid_argument", "mine, other");
  EXPECT_EQ(items_of(get("/v1/jobs?queue=mine").body, "jobs").size(), 1u);
}

TEST_F(QueueLimits, WhatIsElsewhereCannotBeChanged) {
  expect_problem(call(Method::kDelete, "/v1/jobs/" + theirs_), 404, "not_found");
  expect_problem(call(Method::kPatch, "/v1/jobs/" + theirs_, R"({"delay":"0"})"), 404, "not_found");
  expect_problem(post("/v1/queues/theirs/pause", ""), 404, "not_found");
  expect_problem(post("/v1/queues/theirs/purge", ""), 404, "not_found");
  const auto results = items_of(post("/v1/jobs/cancel", ids()).body, "results");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(field_of(results[0], "status"), "200");
  EXPECT_EQ(field_of(results[1], "status"), "404");
  EXPECT_EQ(state_of(theirs_), "scheduled");
}

TEST_F(QueueLimits, NothingIsEnqueuedElsewhere) {
  expect_problem(post("/v1/jobs", R"({"kind":"a","queue":"theirs"})"), 403, "forbidden", "mine");
  expect_problem(post("/v1/jobs", R"({"kind":"a"})"), 403, "forbidden");
  expect_problem(post("/v1/jobs", R"({"kind":"a","queue":"mine","reply_queue":"theirs"})"), 403, "forbidden");
  EXPECT_EQ(post("/v1/jobs", R"({"kind":"a","queue":"mine"})").status, 201);
  const auto results = items_of(post("/v1/jobs", R"([{"kind":"a","queue":"mine"},{"kind":"a","queue":"theirs"}])").body, "results");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(field_of(results[1], "status"), "403");
}

TEST_F(QueueLimits, NoNameOfAWorkerIsAWayIntoTheQueuesOfAnother) {
  std::shared_ptr<Caller> others;
  as_anybody([&] {
    others = start(Method::kPost, "/v1/leases", R"({"queues":["mine","theirs"],"wait":"60s"})");
    return std::string();
  });
  const auto intruder = start(Method::kPost, "/v1/leases", R"({"queue":"mine","worker":"theirs*1 ","wait":"60s"})");
  as_anybody([&] { return enqueue(R"({"kind":"a","queue":"theirs"})"); });
  EXPECT_EQ(items_of(others->wait().body, "leases").size(), 1u);
  EXPECT_FALSE(intruder->answered());
}

TEST_F(QueueLimits, NothingIsLeasedExtendedOrSettledElsewhere) {
  expect_problem(post("/v1/leases", R"({"queue":"theirs"})"), 403, "forbidden");
  expect_problem(post("/v1/leases", R"({"queues":["mine","theirs"]})"), 403, "forbidden");
  std::string lease;
  as_anybody([&] {
    enqueue(R"({"kind":"b","queue":"theirs"})");
    lease = lease_one(R"({"queue":"theirs","wait":"5s"})");
    return "";
  });
  const std::string id = field_of(lease, "id");
  const std::string ref = R"({"id":")" + id + R"(","token":")" + field_of(lease, "token") + "\"}";
  const Response extended = post("/v1/leases/extend", R"({"leases":[)" + ref + "]}");
  EXPECT_NE(extended.body.find(R"("lost":true)"), std::string::npos) << extended.body;
  expect_problem(post("/v1/leases/settle", settlement(lease, R"("outcome":"done")")), 404, "not_found");
  EXPECT_EQ(state_of(id), "running");
  // Also what an earlier process gave out.
  const auto kept = caller_queues_;
  open({});
  caller_queues_ = kept;
  expect_problem(post("/v1/leases/settle", settlement(lease, R"("outcome":"done")")), 404, "not_found");
  EXPECT_EQ(state_of(id), "running");
  caller_queues_ = {"theirs"};
  expect_problem(
      post("/v1/leases/settle", settlement(lease, R"("outcome":"done","effects":[{"kind":"a","queue":"mine"}])")), 403,
      "forbidden");
  EXPECT_EQ(post("/v1/leases/settle", settlement(lease, R"("outcome":"done")")).status, 200);
}

TEST_F(QueueLimits, TheHolderOfAUniqueKeyIsNotNamed) {
  const std::string job = as_anybody([&] { return enqueue(R"({"kind":"b","queue":"theirs","unique_key":"k"})"); });
  const Response refused = post("/v1/jobs", R"({"kind":"a","queue":"mine","unique_key":"k"})");
  expect_problem(refused, 409, "already_exists");
  EXPECT_EQ(refused.body.find(job), std::string::npos) << refused.body;
}

TEST_F(QueueLimits, TheDeadOfOthersStayDead) {
  std::string dead;
  as_anybody([&] {
    dead = enqueue(R"({"kind":"b","queue":"theirs"})");
    post("/v1/leases/settle", settlement(lease_one(R"({"queue":"theirs","wait":"5s"})"), R"("outcome":"dead")"));
    return "";
  });
  EXPECT_EQ(field_of(post("/v1/dead/delete", R"({"filter":{}})").body, "matched"), "0");
  EXPECT_EQ(field_of(post("/v1/dead/replay", R"({"filter":{"queue":"theirs"}})").body, "matched"), "0");
  EXPECT_EQ(field_of(post("/v1/dead/replay", R"({"ids":[")" + dead + "\"]}").body, "failed"), "1");
  EXPECT_EQ(items_of(get("/v1/dead").body, "jobs").size(), 0u);
  EXPECT_EQ(state_of(dead), "dead");
  expect_problem(get("/v1/events?queue=theirs"), 403, "forbidden");
}

}  // namespace
}  // namespace bide::server
