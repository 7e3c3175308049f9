#include "server/http/router.h"

#include <gtest/gtest.h>

namespace bide::server {
namespace {

Router router() {
  const auto nothing = [](Request, Reply) {};
  return Router({{.method = Method::kPost, .pattern = "/v1/jobs", .answer = nothing},
                 {.method = Method::kGet, .pattern = "/v1/jobs", .answer = nothing},
                 {.method = Method::kGet, .pattern = "/v1/jobs/{id}", .answer = nothing},
                 {.method = Method::kDelete, .pattern = "/v1/jobs/{id}", .answer = nothing},
                 {.method = Method::kGet, .pattern = "/v1/jobs/{id}/explain", .answer = nothing},
                 {.method = Method::kPost, .pattern = "/v1/leases", .answer = nothing},
                 {.method = Method::kPost, .pattern = "/v1/leases/{queue}", .answer = nothing},
                 {.method = Method::kPost, .pattern = "/v1/leases/settle", .answer = nothing},
                 {.method = Method::kGet, .pattern = "/assets/{path...}", .answer = nothing}});
}

TEST(Router, FindsARouteAndWhatItsPatternCaptures) {
  const Router routes = router();
  EXPECT_EQ(routes.find(Method::kPost, "/v1/jobs").route->pattern, "/v1/jobs");
  const auto match = routes.find(Method::kGet, "/v1/jobs/a%20b/explain");
  ASSERT_NE(match.route, nullptr);
  EXPECT_EQ(match.route->pattern, "/v1/jobs/{id}/explain");
  EXPECT_EQ(match.captured.at("id"), "a b");
  EXPECT_EQ(routes.find(Method::kGet, "/assets/a/b.js").captured.at("path"), "a/b.js");
}

TEST(Router, PrefersAWordOverACapture) {
  EXPECT_EQ(router().find(Method::kPost, "/v1/leases/settle").route->pattern, "/v1/leases/settle");
  EXPECT_EQ(router().find(Method::kPost, "/v1/leases/mail").route->pattern, "/v1/leases/{queue}");
}

TEST(Router, AnswersHeadWithTheRouteOfGet) {
  EXPECT_EQ(router().find(Method::kHead, "/v1/jobs").route->method, Method::kGet);
  EXPECT_EQ(router().find(Method::kHead, "/v1/leases").problem.status, 405);
}

TEST(Router, NamesTheMethodsOfAPath) {
  const auto match = router().find(Method::kPut, "/v1/jobs/x");
  EXPECT_EQ(match.route, nullptr);
  EXPECT_EQ(match.problem.status, 405);
  EXPECT_EQ(match.allow, "GET, HEAD, DELETE, OPTIONS");
}

TEST(Router, NamesTheNearestRoute) {
  const auto detail = [](std::string_view path) { return router().find(Method::kGet, path).problem.detail; };
  EXPECT_EQ(router().find(Method::kGet, "/v1/job").problem.status, 404);
  EXPECT_NE(detail("/v1/job").find("did you mean '/v1/jobs'?"), std::string::npos) << detail("/v1/job");
  EXPECT_NE(detail("/v1/jobs/").find("/v1/jobs"), std::string::npos);
  EXPECT_NE(detail("/v1/jobs/x/explane/y/z").find("/v1/jobs"), std::string::npos);
  EXPECT_NE(detail("/nowhere/at/all").find("/v1/openapi.json"), std::string::npos);
}

TEST(Router, DoesNotTakeAnEmptySegmentForAValue) { EXPECT_EQ(router().find(Method::kGet, "/v1/jobs//explain").route, nullptr); }

}  // namespace
}  // namespace bide::server
