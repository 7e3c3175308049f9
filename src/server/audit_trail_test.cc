#include "server/audit_trail.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bide::server {
namespace {

class Answered : public ReplyTarget {
 public:
  void send(Response given) override { response = std::move(given); }
  std::shared_ptr<Stream> stream(Response) override { return nullptr; }
  void on_gone(std::function<void()>) override {}

  Response response;
};

class AuditTrail : public testing::Test {
 protected:
  // One request of that kind, answered so.
  Response serve(Method method, std::string_view pattern, Scope scope, std::string body, Response answer) {
    const Routes routes =
        with_audit_trail({{.method = method,
                           .pattern = pattern,
                           .scope = scope,
                           .answer = [&](const Request&, Reply reply) { reply.send(answer); }}},
                         log_);
    const auto target = std::make_shared<Answered>();
    Request request{.method = method, .path = std::string(pattern), .body = std::move(body), .peer = "10.0.0.7"};
    request.caller = {.name = "deploy", .scopes = 15};
    routes[0].answer(std::move(request), Reply(target));
    return target->response;
  }

  std::vector<std::string> lines_;
  const Log log_{{.format = LogFormat::kText, .sink = [this](std::string_view line) { lines_.emplace_back(line); }}};
};

TEST_F(AuditTrail, TellsWhoChangedWhat) {
  const Response answer = serve(Method::kPost, "/v1/dead/delete", Scope::kAdmin, R"({"ids":["a","b"]})",
                                {.status = 200, .body = R"({"results":[],"succeeded":1,"failed":1})"});
  EXPECT_EQ(answer.body, R"({"results":[],"succeeded":1,"failed":1})");
  ASSERT_EQ(lines_.size(), 1u);
  for (const char* said : {"action", "caller=deploy", "peer=10.0.0.7", "method=POST", "path=/v1/dead/delete",
                           "status=200", "2 jobs: a, b", "succeeded 1, failed 1"}) {
    EXPECT_NE(lines_[0].find(said), std::string::npos) << said << " in " << lines_[0];
  }
}

TEST_F(AuditTrail, TellsFiltersAndRefusals) {
  serve(Method::kPost, "/v1/dead/replay", Scope::kAdmin, R"({"filter":{"queue":"q"}})", {.status = 503});
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("status=503"), std::string::npos);
  EXPECT_NE(lines_[0].find("queue"), std::string::npos) << lines_[0];
  // Whatever the body is.
  serve(Method::kPost, "/v1/dead/replay", Scope::kAdmin, R"({"ids":[)", {.status = 400});
  EXPECT_EQ(lines_.size(), 2u);
}

TEST_F(AuditTrail, LeavesOutLookingEnqueuingAndWorking) {
  serve(Method::kGet, "/v1/dead", Scope::kRead, "", {});
  serve(Method::kPost, "/v1/jobs", Scope::kWrite, "{}", {});
  serve(Method::kPost, "/v1/leases/settle", Scope::kWork, "{}", {});
  EXPECT_TRUE(lines_.empty());
  serve(Method::kDelete, "/v1/jobs/{id}", Scope::kWrite, "", {});
  serve(Method::kPost, "/v1/queues/{name}/pause", Scope::kAdmin, "", {});
  EXPECT_EQ(lines_.size(), 2u);
}

}  // namespace
}  // namespace bide::server
