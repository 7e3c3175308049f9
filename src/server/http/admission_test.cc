#include "server/http/service.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace bide::server {
namespace {

class AdmissionTest : public testing::Test {
 protected:
  AdmissionTest()
      : service_({.routes = {{.method = Method::kGet, .pattern = "/jobs/{id}"},
                             {.method = Method::kPost, .pattern = "/jobs", .scope = Scope::kWrite},
                             {.method = Method::kGet, .pattern = "/mine", .keeps_to_queues = true},
                             {.method = Method::kGet, .pattern = "/open", .scope = Scope::kNone}},
                  .admit = [](const Request& request, Scope scope) -> std::variant<Identity, wire::Problem> {
                    if (scope == Scope::kNone || request.field("authorization") == "Bearer good")
                      return Identity{.name = "ann", .scopes = 0xff};
                    if (request.field("authorization") == "Bearer some")
                      return Identity{.name = "bob", .scopes = 0xff, .queues = {"q"}};
                    return wire::Problem{.status = 401, .code = "unauthorized", .detail = "a token is needed"};
                  }}) {}

  Admission judge(Method method, std::string path, std::map<std::string, std::string> fields = {}, bool has_body = false) {
    fields.emplace("authorization", "Bearer good");
    request_ = {.method = method, .path = std::move(path), .fields = std::move(fields), .peer = "127.0.0.1"};
    return admit_request(service_, request_, has_body);
  }
  static std::string field_of(const Response& response, std::string_view name) {
    const auto found = std::find_if(response.fields.begin(), response.fields.end(),
                                    [name](const auto& field) { return field.first == name; });
    return found == response.fields.end() ? "" : found->second;
  }

  Service service_;
  Request request_;
};

TEST_F(AdmissionTest, LetsARequestOnWithItsCallerAndWhatItsPathHolds) {
  const Admission admission = judge(Method::kGet, "/jobs/17");
  EXPECT_FALSE(admission.refusal);
  ASSERT_NE(admission.route, nullptr);
  EXPECT_EQ(admission.route->pattern, "/jobs/{id}");
  EXPECT_EQ(request_.captured.at("id"), "17");
  EXPECT_EQ(request_.caller.name, "ann");
}

TEST_F(AdmissionTest, ACallerRestrictedToQueuesGetsToRoutesThatMindThem) {
  EXPECT_FALSE(judge(Method::kGet, "/mine", {{"authorization", "Bearer some"}}).refusal);
  EXPECT_FALSE(judge(Method::kGet, "/open", {{"authorization", "Bearer some"}}).refusal);
  EXPECT_EQ(judge(Method::kGet, "/jobs/17", {{"authorization", "Bearer some"}}).refusal->status, 403);
}

TEST_F(AdmissionTest, SaysWhatIsAllowedWhereThereIsNoSuchRoute) {
  EXPECT_EQ(judge(Method::kGet, "/nowhere").refusal->status, 404);
  const Admission wrong = judge(Method::kDelete, "/jobs");
  EXPECT_EQ(wrong.route, nullptr);
  EXPECT_EQ(wrong.refusal->status, 405);
  EXPECT_NE(field_of(*wrong.refusal, "Allow").find("POST"), std::string::npos);
  const Admission asked = judge(Method::kOptions, "/jobs");
  EXPECT_EQ(asked.refusal->status, 204);
  EXPECT_NE(field_of(*asked.refusal, "Allow").find("POST"), std::string::npos);
}

TEST_F(AdmissionTest, RefusesThoseWhoMayNotAndNamesTheRouteForTheLog) {
  const Admission refused = judge(Method::kPost, "/jobs", {{"authorization", "Bearer bad"}});
  EXPECT_EQ(refused.refusal->status, 401);
  EXPECT_NE(refused.route, nullptr);
  EXPECT_TRUE(request_.caller.name.empty());
}

TEST_F(AdmissionTest, AsksTheBrowserGuardExceptForWhatEverybodyMayRead) {
  const std::map<std::string, std::string> rebound = {{"host", "evil.example.com"}, {"authorization", ""}};
  EXPECT_EQ(judge(Method::kGet, "/jobs/1", rebound).refusal->status, 403);
  EXPECT_FALSE(judge(Method::kGet, "/open", rebound).refusal);
}

TEST_F(AdmissionTest, KnowsOneExpectation) {
  EXPECT_FALSE(judge(Method::kPost, "/jobs", {{"expect", "100-continue"}}).refusal);
  EXPECT_FALSE(judge(Method::kPost, "/jobs", {{"expect", "100-Continue"}}).refusal);
  EXPECT_EQ(judge(Method::kPost, "/jobs", {{"expect", "miracles"}}).refusal->status, 417);
}

TEST_F(AdmissionTest, RefusesABodyWhereNoneIsTaken) {
  for (const char* path : {"/jobs/1", "/open"}) {
    EXPECT_EQ(judge(Method::kGet, path, {}, true).refusal->status, 413) << path;
    EXPECT_FALSE(judge(Method::kGet, path).refusal) << path;
  }
  EXPECT_FALSE(judge(Method::kPost, "/jobs", {}, true).refusal);
}

TEST_F(AdmissionTest, KnowsOneCodingAndNone) {
  for (const char* known : {"gzip", "x-gzip", "GZIP"}) {
    EXPECT_FALSE(judge(Method::kPost, "/jobs", {{"content-encoding", known}}).refusal) << known;
    EXPECT_EQ(request_.field("content-encoding"), known);
  }
  EXPECT_FALSE(judge(Method::kPost, "/jobs", {{"content-encoding", "identity"}}).refusal);
  EXPECT_EQ(request_.fields.count("content-encoding"), 0u);
  const Admission refused = judge(Method::kPost, "/jobs", {{"content-encoding", "br"}});
  EXPECT_EQ(refused.refusal->status, 415);
  EXPECT_EQ(field_of(*refused.refusal, "Accept-Encoding"), "gzip");
}

}  // namespace
}  // namespace bide::server
