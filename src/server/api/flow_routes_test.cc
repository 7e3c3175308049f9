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
