#include <gtest/gtest.h>

#include <set>

#include "server/api/api_test_bench.h"

namespace bide::server {
namespace {

class LeaseRoutes : public ApiBench {
 protected:
  std::string state_of(const std::string& id) { return field_of(get("/v1/jobs/" + id).body, "state"); }
};

TEST_F(LeaseRoutes, AJobIsLeasedAndSettledWithItsResult) {
  const std::string id = enqueue(R"({"kind":"add","queue":"q","body":[1,2],"headers":{"trace":"t"}})");
  const std::string lease = lease_one(R"({"queue":"q","wait":"5s","worker":"w1"})");
  EXPECT_EQ(field_of(lease, "id"), id);
  EXPECT_EQ(field_of(lease, "kind"), "add");
  EXPECT_EQ(field_of(lease, "body"), "[1,2]");
  EXPECT_EQ(field_of(lease, "headers"), R"({"trace":"t"})");
  EXPECT_EQ(field_of(lease, "attempt"), "1");
  EXPECT_EQ(field_of(get("/v1/jobs/" + id).body, "worker"), "w1");
  const Response settled = post("/v1/leases/settle", settlement(lease, R"("outcome":"done","result":{"sum":3})"));
  EXPECT_EQ(settled.status, 200);
  EXPECT_EQ(field_of(settled.body, "status"), "200");
  const Response result = get("/v1/jobs/" + id + "/result");
  EXPECT_EQ(result.status, 200);
  EXPECT_EQ(field_of(result.body, "state"), "done");
  EXPECT_EQ(field_of(result.body, "result"), R"({"sum":3})");
}

TEST_F(LeaseRoutes, APollWaitsForAJobThatComesLater) {
  const auto poll = start(Method::kPost, "/v1/leases", R"({"wait":"60s"})");
  EXPECT_FALSE(poll->answered());
  const std::string id = enqueue(R"({"kind":"a"})");
  EXPECT_EQ(field_of(items_of(poll->wait().body, "leases").at(0), "id"), id);
}

TEST_F(LeaseRoutes, AnEmptyQueueIsAnsweredWithNothing) {
  const Response response = post("/v1/leases", "");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(field_of(response.body, "leases"), "[]");
}

TEST_F(LeaseRoutes, BatchesAreLeasedAndSettledAtOnce) {
  std::string jobs = "[";
  for (int i = 0; i < 100; ++i) jobs += (i == 0 ? "" : ",") + std::string(R"({"kind":"a"})");
  post("/v1/jobs", jobs + "]");
  std::set<std::string> ids;
  while (ids.size() < 100) {
    std::string settlements;
    for (const std::string& lease : items_of(post("/v1/leases", R"({"max":100,"wait":"5s"})").body, "leases")) {
      EXPECT_TRUE(ids.insert(field_of(lease, "id")).second);
      settlements += (settlements.empty() ? "" : ",") + settlement(lease, R"("outcome":"done")");
    }
    const Response settled = post("/v1/leases/settle", R"({"settlements":[)" + settlements + "]}");
    EXPECT_EQ(field_of(settled.body, "failed"), "0") << settled.body;
  }
  EXPECT_EQ(audit().live, 0u);
}

TEST_F(LeaseRoutes, AFailedJobComesAgainByItsPolicyAndDiesWhenThatIsUsedUp) {
  const std::string id = enqueue(R"json({"kind":"a","retry":"fixed(0,x2)"})json");
  std::string lease = lease_one();
  EXPECT_EQ(post("/v1/leases/settle", settlement(lease, R"("outcome":"failed","error":"first","body_text":"changed")"))
                .status,
            200);
  lease = lease_one();
  EXPECT_EQ(field_of(lease, "attempt"), "2");
  EXPECT_EQ(field_of(lease, "body_text"), "changed");
  EXPECT_EQ(field_of(field_of(lease, "counts"), "failed"), "1");
  EXPECT_EQ(post("/v1/leases/settle", settlement(lease, R"("outcome":"failed","error":"second")")).status, 200);
  const Response job = get("/v1/jobs/" + id);
  EXPECT_EQ(field_of(job.body, "state"), "dead");
  EXPECT_EQ(field_of(job.body, "dead_reason"), "exhausted");
  const auto errors = items_of(job.body, "errors");
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(field_of(errors[0], "text"), "first");
  EXPECT_EQ(field_of(get("/v1/jobs/" + id + "/result").body, "error"), "second");
}

TEST_F(LeaseRoutes, ThePolicyIsKnownAlsoOfLeasesThatAnEarlierServerGaveOut) {
  const std::string id = enqueue(R"json({"kind":"a","retry":"none"})json");
  const std::string lease = lease_one();
  open({});
  EXPECT_EQ(post("/v1/leases/settle", settlement(lease, R"("outcome":"failed","error":"x")")).status, 200);
  EXPECT_EQ(state_of(id), "dead");
}

TEST_F(LeaseRoutes, RetryDeadAndReturnedDoWhatTheySay) {
  const std::string again = enqueue(R"({"kind":"a","queue":"again"})");
  post("/v1/leases/settle",
       settlement(lease_one(R"({"queue":"again","wait":"5s"})"), R"("outcome":"retry","after":"1h","error":"x")"));
  EXPECT_EQ(state_of(again), "scheduled");
  const std::string dead = enqueue(R"({"kind":"a","queue":"dead"})");
  post("/v1/leases/settle",
       settlement(lease_one(R"({"queue":"dead","wait":"5s"})"), R"("outcome":"dead","error":"no such file")"));
  EXPECT_EQ(field_of(get("/v1/jobs/" + dead).body, "dead_reason"), "rejected");
  const std::string back = enqueue(R"({"kind":"a","queue":"back"})");
  post("/v1/leases/settle", settlement(lease_one(R"({"queue":"back","wait":"5s"})"),
                                       R"("outcome":"returned","after":"1h","note":"stopping")"));
  EXPECT_EQ(field_of(get("/v1/jobs/" + back).body, "attempts"), "0");
  EXPECT_EQ(field_of(get("/v1/jobs/" + back).body, "note"), "stopping");
}

TEST_F(LeaseRoutes, EffectsBecomeRealWithTheOutcome) {
  enqueue(R"({"kind":"a"})");
  const std::string lease = lease_one();
  post("/v1/leases/settle",
       settlement(lease, R"("outcome":"done","effects":[{"kind":"next","queue":"later","body":{"x":1}}])"));
  EXPECT_EQ(field_of(lease_one(R"({"queue":"later","wait":"5s"})"), "body"), R"({"x":1})");
}

TEST_F(LeaseRoutes, AnEffectTakesThePlaceOfAnotherJobOnlyForWhoMayWrite) {
  const std::string other = enqueue(R"({"kind":"theirs","queue":"later","delay":"1h","unique_key":"u"})");
  enqueue(R"({"kind":"a"})");
  const std::string lease = lease_one();
  const std::string outcome = settlement(
      lease, R"("outcome":"done","effects":[{"kind":"mine","queue":"later","unique_key":"u","on_conflict":"replace"}])");
  caller_scopes_ = 5;  // Reads and works.
  expect_problem(post("/v1/leases/settle", outcome), 403, "forbidden", "write");
  EXPECT_EQ(field_of(get("/v1/jobs/" + other).body, "kind"), "theirs");
  caller_scopes_ = 15;
  EXPECT_EQ(post("/v1/leases/settle", outcome).status, 200);
  EXPECT_EQ(field_of(get("/v1/jobs/" + other).body, "kind"), "mine");
}

TEST_F(LeaseRoutes, SettlingWhatCannotBeSettledSaysWhy) {
  enqueue(R"({"kind":"a"})");
  const std::string lease = lease_one();
  const std::string unknown = R"({"id":"018f3c1e-7d5a-7000-8000-000000000001","token":"1","outcome":"done"})";
  expect_problem(post("/v1/leases/settle", unknown), 404, "not_found");
  const std::string stale = R"({"id":")" + field_of(lease, "id") + R"(","token":"999999","outcome":"done"})";
  expect_problem(post("/v1/leases/settle", stale), 409, "lease_lost");
  EXPECT_EQ(post("/v1/leases/settle", settlement(lease, R"("outcome":"done")")).status, 200);
  EXPECT_EQ(post("/v1/leases/settle", settlement(lease, R"("outcome":"done")")).status, 200);
  const Response mixed = post("/v1/leases/settle", R"({"settlements":[)" + unknown + "," + stale + R"(,{"id":5}]})");
  EXPECT_EQ(mixed.status, 200);
  const auto results = items_of(mixed.body, "settlements");
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(field_of(results[0], "status"), "404");
  EXPECT_EQ(field_of(results[1], "status"), "409");
  EXPECT_EQ(field_of(results[2], "status"), "422");
  EXPECT_EQ(field_of(mixed.body, "failed"), "3");
  expect_problem(post("/v1/leases/settle", ""), 400, "empty_body");
  expect_problem(post("/v1/leases/settle", "{"), 400, "invalid_json");
}

TEST_F(LeaseRoutes, ACancelledJobIsToldAtTheNextExtension) {
  const std::string id = enqueue(R"({"kind":"a"})");
  const std::string lease = lease_one();
  const std::string ref = R"({"leases":[{"id":")" + id + R"(","token":")" + field_of(lease, "token") + "\"}]}";
  EXPECT_EQ(field_of(items_of(post("/v1/leases/extend", ref).body, "leases").at(0), "cancel_requested"), "false");
  EXPECT_EQ(call(Method::kDelete, "/v1/jobs/" + id).status, 200);
  EXPECT_EQ(field_of(items_of(post("/v1/leases/extend", ref).body, "leases").at(0), "cancel_requested"), "true");
  EXPECT_EQ(post("/v1/leases/settle", settlement(lease, R"("outcome":"failed","error":"stopped")")).status, 200);
  expect_problem(post("/v1/leases/settle", settlement(lease, R"("outcome":"done")")), 409, "wrong_state",
                 "was cancelled");
  EXPECT_EQ(get("/v1/jobs/" + id).status, 404);
  EXPECT_EQ(field_of(items_of(post("/v1/leases/extend", ref).body, "leases").at(0), "lost"), "true");
}

TEST_F(LeaseRoutes, LeasesOfAnAnswerThatCouldNotBeSentAreReturnedUncharged) {
  const auto poll = start(Method::kPost, "/v1/leases", R"({"wait":"60s"})");
  poll->vanish();
  const std::string id = enqueue(R"json({"kind":"a","retry":"none"})json");
  const std::string lease = lease_one(R"({"wait":"60s"})");
  EXPECT_EQ(field_of(lease, "id"), id);
  EXPECT_EQ(field_of(lease, "attempt"), "1");
}

TEST_F(LeaseRoutes, ADeadWorkersLeasesGoBackToTheBacklogAndNobodySeizesIt) {
  std::string jobs = "[";
  for (int i = 0; i < 500; ++i) jobs += (i == 0 ? "" : ",") + std::string(R"json({"kind":"a","retry":"none"})json");
  ASSERT_EQ(post("/v1/jobs", jobs + "]").status, 200);
  const auto taken = items_of(post("/v1/leases", R"({"max":8,"lease":"1s","wait":"5s"})").body, "leases");
  ASSERT_FALSE(taken.empty());
  // Nobody is heard of them again: they run out and are charged, since they had been delivered.
  for (const std::string& lease : taken) {
    const Response result = get("/v1/jobs/" + field_of(lease, "id") + "/result?wait=60s");
    EXPECT_EQ(field_of(result.body, "state"), "dead") << result.body;
  }
  const auto queues = items_of(get("/v1/queues").body, "queues");
  ASSERT_EQ(queues.size(), 1u);
  EXPECT_EQ(field_of(queues[0], "running"), "0");
  EXPECT_EQ(field_of(queues[0], "dead"), std::to_string(taken.size()));
  EXPECT_EQ(field_of(queues[0], "ready"), std::to_string(500 - taken.size()));
  EXPECT_TRUE(audit().ok());
}

TEST_F(LeaseRoutes, StoppingAnswersThosePollsThatWait) {
  const auto poll = start(Method::kPost, "/v1/leases", R"({"wait":"5m"})");
  api_->stop();
  EXPECT_EQ(field_of(poll->wait().body, "leases"), "[]");
  const Response refused = post("/v1/leases", "{}");
  expect_problem(refused, 503, "unavailable", "shutting down");
  EXPECT_EQ(refused.fields.at(0).first, "Retry-After");
}

TEST_F(LeaseRoutes, APollerIsToldToLeaveByItsOwnTokenOnly) {
  const auto poll = start(Method::kPost, "/v1/leases", R"({"wait":"5m","poller":"p"})");
  caller_name_ = "another";
  EXPECT_EQ(post("/v1/leases/leave", R"({"poller":"p"})").status, 200);
  EXPECT_FALSE(poll->answered());
  caller_name_ = "local";
  EXPECT_EQ(post("/v1/leases/leave", R"({"poller":"p"})").status, 200);
  EXPECT_EQ(items_of(poll->wait().body, "leases").size(), 0u);
}

TEST_F(LeaseRoutes, AWorkerDoesNotSayWhatIsForTheBrokerToSay) {
  enqueue(R"({"kind":"a"})");
  const std::string lease = lease_one(R"({"wait":"5s"})");
  for (const char* said : {R"("outcome":"failed","fault":"crashed")", R"("outcome":"failed","fault":"lost")",
                           R"("outcome":"dead","reason":"poison")", R"("outcome":"dead","reason":"expired")"}) {
    expect_problem(post("/v1/leases/settle", settlement(lease, said)), 422, "invalid_argument");
  }
  EXPECT_EQ(post("/v1/leases/settle", settlement(lease, R"("outcome":"failed","fault":"timed_out")")).status, 200);
}

TEST_F(LeaseRoutes, AThousandPollsAreWokenByAThousandJobs) {
  std::vector<std::shared_ptr<Caller>> polls;
  for (int i = 0; i < 1000; ++i) {
    polls.push_back(
        start(Method::kPost, "/v1/leases", R"({"wait":"5m","worker":"w)" + std::to_string(i % 200) + "\"}"));
  }
  std::string jobs = "[";
  for (int i = 0; i < 1000; ++i) jobs += (i == 0 ? "" : ",") + std::string(R"({"kind":"a"})");
  post("/v1/jobs", jobs + "]");
  std::set<std::string> ids;
  for (const auto& poll : polls) {
    const auto leases = items_of(poll->wait().body, "leases");
    ASSERT_EQ(leases.size(), 1u);
    ids.insert(field_of(leases[0], "id"));
  }
  EXPECT_EQ(ids.size(), 1000u);
}

}  // namespace
}  // namespace bide::server
