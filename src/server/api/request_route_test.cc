// POST /v1/requests, answered by a worker that leases over HTTP as well.

#include <string>

#include "server/api/api_test_bench.h"

namespace bide::server {
namespace {

class RequestRoute : public ApiBench {};

TEST_F(RequestRoute, TheReplyIsTheAnswerWithItsContentType) {
  const auto caller = start(Method::kPost, "/v1/requests?timeout=1m", R"({"kind":"add","body_text":"1 2","queue":"sums"})");
  const std::string lease = lease_one(R"({"queues":["sums"],"wait":"1m"})");
  EXPECT_NE(lease.find(R"("kind":"add")"), std::string::npos) << lease;
  EXPECT_NE(lease.find("1 2"), std::string::npos) << lease;
  const Response settled = post(
      "/v1/leases/settle",
      settlement(lease, R"("outcome":"done","result_text":"three","result_content_type":"text/x-sum")"));
  EXPECT_EQ(settled.status, 200) << settled.body;
  const Response reply = caller->wait();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "three");
  EXPECT_EQ(reply.content_type, "text/x-sum");
}

TEST_F(RequestRoute, WhatTheHandlerSaidIsAProblemOfItsOwn) {
  const auto caller = start(Method::kPost, "/v1/requests?timeout=1m", R"({"kind":"add"})");
  const std::string lease = lease_one(R"({"wait":"1m"})");
  post("/v1/leases/settle", settlement(lease, R"("outcome":"dead","error":"no such user")"));
  expect_problem(caller->wait(), 502, "handler_failed", "no such user");
}

TEST_F(RequestRoute, WithoutAReplyTheDeadlineIsTheAnswer) {
  expect_problem(post("/v1/requests?timeout=50ms", R"({"kind":"add"})"), 504, "timed_out", "no reply to 'add' within 50ms");
}

TEST_F(RequestRoute, WhatARequestCannotHaveIsRefused) {
  expect_problem(post("/v1/requests", R"({"kind":"add","delay":"1s"})"), 422, "conflicting_fields", "delay");
  expect_problem(post("/v1/requests", R"({"kind":"add","unique_key":"a"})"), 422, "conflicting_fields", "unique_key");
  expect_problem(post("/v1/requests", R"({"kind":""})"), 422, "missing_field");
  expect_problem(post("/v1/requests", R"([{"kind":"a"}])"), 400, "expected_object");
  expect_problem(post("/v1/requests?timeout=soon", R"({"kind":"add"})"), 400, "invalid_parameter", "timeout");
  expect_problem(post("/v1/requests?timeout=0s", R"({"kind":"add"})"), 400, "invalid_parameter", "timeout");
  EXPECT_EQ(audit().accepted, 0u);
}

TEST_F(RequestRoute, ACallerKeepsToItsQueues) {
  caller_queues_ = {"mine"};
  expect_problem(post("/v1/requests", R"({"kind":"add","queue":"theirs"})"), 403, "forbidden");
}

}  // namespace
}  // namespace bide::server
