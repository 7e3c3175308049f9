#include <gtest/gtest.h>

#include <string>

#include "server/api/api_test_bench.h"

namespace bide::server {
namespace {

class RulesRoutes : public ApiBench {
 protected:
  Response put(const std::string& path, const std::string& body) { return call(Method::kPut, path, body); }
  std::string rules_of(const std::string& queue) { return get("/v1/queues/" + queue + "/rules").body; }
};

TEST_F(RulesRoutes, AQueueHasTheRulesThatWerePutLast) {
  EXPECT_EQ(field_of(rules_of("mail"), "at_once"), "0");
  EXPECT_EQ(items_of(get("/v1/rules").body, "rules").size(), 0u);
  const Response first = put("/v1/queues/mail/rules", R"({"at_once":5,"rate":"10/s","fair":true,"weights":{"a":3}})");
  EXPECT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(rules_of("mail"), first.body);
  EXPECT_EQ(field_of(first.body, "rate"), "10/s");
  EXPECT_EQ(field_of(first.body, "weights"), R"({"a":3})");
  EXPECT_EQ(put("/v1/queues/mail/rules", R"({"group_at_once":2})").status, 200);
  EXPECT_EQ(field_of(rules_of("mail"), "at_once"), "0");
  EXPECT_EQ(field_of(rules_of("mail"), "rate"), "null");
  EXPECT_EQ(field_of(rules_of("mail"), "group_at_once"), "2");
  EXPECT_EQ(items_of(get("/v1/rules").body, "rules").size(), 1u);
  EXPECT_EQ(call(Method::kDelete, "/v1/queues/mail/rules").status, 200);
  EXPECT_EQ(items_of(get("/v1/rules").body, "rules").size(), 0u);
}

TEST_F(RulesRoutes, WhatIsNoRuleIsRefusedAndChangesNothing) {
  ASSERT_EQ(put("/v1/queues/mail/rules", R"({"at_once":5})").status, 200);
  expect_problem(put("/v1/queues/mail/rules", R"({"rate":"often"})"), 422, "invalid_rate", "10/s");
  expect_problem(put("/v1/queues/mail/rules", R"({"at_onec":5})"), 400, "unknown_field", "did you mean 'at_once'?");
  expect_problem(put("/v1/queues/mail/rules", ""), 400, "empty_body");
  expect_problem(put("/v1/queues/a b/rules", "{}"), 422, "invalid_queue_name");
  EXPECT_EQ(field_of(rules_of("mail"), "at_once"), "5");
}

TEST_F(RulesRoutes, NoMoreJobsAreLeasedThanTheRulesAllow) {
  ASSERT_EQ(put("/v1/queues/mail/rules", R"({"group_at_once":1})").status, 200);
  for (const std::string group : {"a", "a", "b"}) enqueue(R"({"kind":"k","queue":"mail","group":")" + group + "\"}");
  const auto leased = [&] { return items_of(post("/v1/leases", R"({"queue":"mail","max":10})").body, "leases"); };
  std::vector<std::string> out;
  while (out.size() < 2) {
    for (const std::string& lease : leased()) out.push_back(lease);
  }
  EXPECT_NE(field_of(out[0], "group"), field_of(out[1], "group"));
  EXPECT_EQ(leased().size(), 0u);
  EXPECT_EQ(items_of(get("/v1/jobs?group=a").body, "jobs").size(), 2u);
  const std::string& first = field_of(out[0], "group") == "a" ? out[0] : out[1];
  EXPECT_EQ(post("/v1/leases/settle", settlement(first, R"("outcome":"done")")).status, 200);
  EXPECT_EQ(field_of(lease_one(R"({"queue":"mail","wait":"5s"})"), "group"), "a");
}

TEST_F(RulesRoutes, AWorkerIsHandedOnlyTheKindsThatItAsksFor) {
  enqueue(R"({"kind":"order.paid","queue":"q"})");
  enqueue(R"({"kind":"resize","queue":"q"})");
  const std::string lease = lease_one(R"({"queue":"q","kinds":["resize","other"],"max":10,"wait":"5s"})");
  EXPECT_EQ(field_of(lease, "kind"), "resize");
  EXPECT_EQ(field_of(lease_one(R"({"queue":"q","kinds":["order.*"],"wait":"5s"})"), "kind"), "order.paid");
  expect_problem(post("/v1/leases", R"({"queue":"q","kinds":["a b"]})"), 422, "invalid_kind_name", "'a b'");
}

}  // namespace
}  // namespace bide::server
