#include "server/dashboard/dashboard.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/auth/token.h"
#include "server/auth/token_file.h"
#include "server/dashboard/assets.h"
#include "server/dashboard/history_file.h"
#include "server/http/router.h"
#include "support/fake_broker.h"
#include "support/temporary_directory.h"

namespace bide::server {
namespace {

// Answers are given at once here.
class KeptReply : public ReplyTarget {
 public:
  void send(Response response) override { response_ = std::move(response); }
  std::shared_ptr<Stream> stream(Response) override { return nullptr; }
  void on_gone(std::function<void()>) override {}
  const Response& response() const { return *response_; }

 private:
  std::optional<Response> response_;
};

std::string field_of(const Response& response, std::string_view name) {
  for (const auto& [key, value] : response.fields) {
    if (key == name) return value;
  }
  return "";
}

class DashboardTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string file = folder_.path() + "/tokens";
    secret_ = make_token_secret();
    ASSERT_TRUE(change_tokens(file, [&](TokenList& tokens) {
      tokens.push_back({.name = "ann", .scopes = 1, .digest = digest_of(secret_)});
      return Status();
    }));
    authenticator_ = std::move(*Authenticator::open({.token_file = file}));
    metered_ = std::make_shared<metrics::MeteredBroker>(std::make_shared<support::FakeBroker>(), std::make_shared<metrics::Metrics>());
    const Dashboard dashboard({.broker = metered_, .authenticator = authenticator_.get(), .version = "1.2.3",
                               .broker_url = "amqp://ann:secret@host/", .secure_cookies = true});
    Routes routes = dashboard.pages();
    for (Route& route : dashboard.routes()) routes.push_back(std::move(route));
    router_ = std::make_unique<Router>(std::move(routes));
  }

  // As the server does it: admitted, then answered.
  Response call(Method method, const std::string& path, std::string body = {}, std::map<std::string, std::string> fields = {}) {
    Request request{.method = method, .path = path.substr(0, path.find('?')), .fields = std::move(fields), .body = std::move(body), .peer = "127.0.0.1"};
    if (const std::size_t mark = path.find("?window="); mark != std::string::npos) request.query["window"] = path.substr(mark + 8);
    request.fields.try_emplace("host", "127.0.0.1:7070");
    const Router::Match match = router_->find(method, request.path);
    if (match.route == nullptr) return to_response(match.problem);
    auto admitted = authenticator_->admit(request, match.route->scope);
    if (const auto* problem = std::get_if<wire::Problem>(&admitted)) return to_response(*problem);
    request.caller = std::get<Identity>(admitted);
    const auto reply = std::make_shared<KeptReply>();
    match.route->answer(std::move(request), Reply(reply));
    return reply->response();
  }
  Response get(const std::string& path, std::map<std::string, std::string> fields = {}) {
    return call(Method::kGet, path, {}, std::move(fields));
  }

  support::TemporaryDirectory folder_;
  std::string secret_;
  std::unique_ptr<Authenticator> authenticator_;
  std::shared_ptr<metrics::MeteredBroker> metered_;
  std::unique_ptr<Router> router_;
};

TEST_F(DashboardTest, ThePageAllowsNothingButItsOwnFiles) {
  const Response page = get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_TRUE(page.body.starts_with("<!doctype html>"));
  const std::string policy = field_of(page, "Content-Security-Policy");
  EXPECT_TRUE(policy.starts_with("default-src 'none'"));
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  EXPECT_EQ(page.body.find("<style"), std::string::npos);
  EXPECT_EQ(page.body.find(" style="), std::string::npos);
  EXPECT_EQ(page.body.find("http"), std::string::npos);  // Nothing from outside.
  EXPECT_EQ(get("/jobs/018f3c1e-7d5a-7000-8000-000000000001").body, page.body);
}

TEST_F(DashboardTest, EveryFileThatThePageNamesIsThereForEver) {
  const std::string page = get("/").body;
  std::size_t files = 0;
  for (std::size_t at = page.find("/assets/"); at != std::string::npos; at = page.find("/assets/", at + 1)) {
    const std::string path = page.substr(at, page.find('"', at) - at);
    const Response file = get(path, {{"accept-encoding", "gzip"}});
    EXPECT_EQ(file.status, 200) << path;
    EXPECT_EQ(field_of(file, "Content-Encoding"), "gzip");
    EXPECT_NE(field_of(file, "Cache-Control").find("immutable"), std::string::npos);
    EXPECT_NE(get(path).body, file.body);
    ++files;
  }
  EXPECT_EQ(files + 1, kAssets.size());
  EXPECT_EQ(get("/assets/0123456789abcdef/app.js").status, 404);
}

TEST_F(DashboardTest, TheWholePageIsSmall) {
  std::size_t bytes = 0;
  for (const Asset& asset : kAssets) bytes += asset.gzip.size();
  EXPECT_LT(bytes, 150u * 1024);
}

TEST_F(DashboardTest, ABrowserSignsInWithATokenAndOut) {
  EXPECT_EQ(get("/v1/stats").status, 401);
  EXPECT_NE(get("/v1/session").body.find("\"signed_in\":false"), std::string::npos);
  EXPECT_EQ(call(Method::kPost, "/v1/session", R"({"token":"bide_wrong"})").status, 401);
  EXPECT_EQ(call(Method::kPost, "/v1/session", "{}").status, 422);
  EXPECT_EQ(call(Method::kPost, "/v1/session", R"({"tokens":"x"})").status, 400);

  const Response signed_in = call(Method::kPost, "/v1/session", "{\"token\":\"" + secret_ + "\"}");
  ASSERT_EQ(signed_in.status, 200) << signed_in.body;
  EXPECT_NE(signed_in.body.find(R"("name":"ann","scopes":["read"])"), std::string::npos) << signed_in.body;
  const std::string cookie = field_of(signed_in, "Set-Cookie");
  EXPECT_EQ(cookie.find(secret_), std::string::npos);
  for (const std::string_view part : {"HttpOnly", "SameSite=Strict", "Secure", "Path=/"}) {
    EXPECT_NE(cookie.find(part), std::string::npos) << part;
  }
  const std::string kept = cookie.substr(0, cookie.find(';'));
  EXPECT_EQ(get("/v1/stats", {{"cookie", kept}}).status, 200);
  // A change that no page of ours asked for.
  EXPECT_EQ(call(Method::kDelete, "/v1/session", {}, {{"cookie", kept}}).status, 403);
  EXPECT_EQ(call(Method::kDelete, "/v1/session", {}, {{"cookie", kept}, {"sec-fetch-site", "same-origin"}}).status, 200);
  EXPECT_EQ(get("/v1/stats", {{"cookie", kept}}).status, 401);
}

TEST_F(DashboardTest, ALinkSignsInOnce) {
  const std::string body = "{\"link\":\"" + authenticator_->make_link_code() + "\"}";
  const Response first = call(Method::kPost, "/v1/session", body);
  EXPECT_EQ(first.status, 200);
  EXPECT_NE(first.body.find(R"("scopes":["read","write","work","admin"])"), std::string::npos) << first.body;
  EXPECT_EQ(call(Method::kPost, "/v1/session", body).status, 401);
}

TEST_F(DashboardTest, TheSecretsOfABrokerAreNotTold) {
  const Response about = get("/v1/about", {{"authorization", "Bearer " + secret_}});
  EXPECT_EQ(about.status, 200);
  EXPECT_EQ(about.body.find("secret"), std::string::npos) << about.body;
  EXPECT_NE(about.body.find("amqp://ann"), std::string::npos);
}

TEST_F(DashboardTest, CountsAreToldForAnHourADayAndAWeek) {
  metered_->history().queue("mail").add(metrics::JobEventKind::kDone,
                                        std::chrono::floor<Milliseconds>(std::chrono::system_clock::now()), 5);
  for (const std::string window : {"hour", "day", "week"}) {
    const Response stats = get("/v1/stats?window=" + window, {{"authorization", "Bearer " + secret_}});
    EXPECT_EQ(stats.status, 200) << stats.body;
    EXPECT_NE(stats.body.find(R"("name":"mail","enqueued":0,"started":0,"done":5)"), std::string::npos) << stats.body;
  }
  EXPECT_EQ(get("/v1/stats?window=year", {{"authorization", "Bearer " + secret_}}).status, 400);
}

TEST_F(DashboardTest, CountsAreKeptOverARestart) {
  const std::string path = folder_.path() + "/job_history";
  const Time now = std::chrono::floor<Milliseconds>(std::chrono::system_clock::now());
  std::string problems;
  const auto options = [&] { return HistoryFileOptions{.path = path, .on_problem = [&](std::string_view text) { problems += text; }}; };
  {
    metrics::JobHistory history;
    const HistoryFile file(history, options());
    history.queue("mail").add(metrics::JobEventKind::kDone, now, 7);
  }
  metrics::JobHistory history;
  const HistoryFile file(history, options());
  EXPECT_EQ(problems, "");
  const auto sums = history.queues({metrics::JobHistory::kFineStep, 360, now});
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].total.count(metrics::JobEventKind::kDone), 7u);
}

}  // namespace
}  // namespace bide::server
