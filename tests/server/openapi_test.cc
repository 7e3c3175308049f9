// The OpenAPI document of a whole server, and real answers held against it.

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <set>
#include <thread>

#include "server/api/api_test_bench.h"
#include "server/callbacks/callback_service.h"
#include "server/dashboard/dashboard.h"
#include "server/json_schema.h"
#include "support/http_receiver.h"

namespace bide::server {
namespace {

namespace json = boost::json;
using server_tests::JsonSchema;

template <class T>
std::shared_ptr<T> unowned(T& object) {
  return {std::shared_ptr<void>(), &object};
}

class OpenApi : public ApiBench {
 protected:
  void SetUp() override {
    ApiBench::SetUp();
    CallbackOptions rules;
    rules.policy = AddressPolicy::make("allow-list", {"127.0.0.1:*"}).value();
    callbacks_ =
        CallbackService::start(std::move(rules), unowned(store_->broker()), unowned(store_->inspector())).value();
    metered_ = std::make_shared<metrics::MeteredBroker>(callbacks_->broker(), std::make_shared<metrics::Metrics>());
    authenticator_ = Authenticator::open({}).value();
    api_ = std::make_unique<Api>(ApiOptions{.broker = metered_,
                                            .inspector = &store_->inspector(),
                                            .callback_queue = "callbacks",
                                            .backup_directory = folder_.path() + "/saved",
                                            .version = "1.2.3"});
    Routes others = callbacks_->routes();
    const Dashboard dashboard({.broker = metered_, .authenticator = authenticator_.get(), .version = "1.2.3", .broker_url = "bide:./data"});
    for (Route& route : dashboard.routes()) others.push_back(std::move(route));
    router_ = std::make_unique<Router>(api_->routes(std::move(others)));
    document_ = json::parse(get("/v1/openapi.json").body);
  }
  void TearDown() override {
    api_->stop();
    router_ = nullptr;
    api_ = nullptr;
    metered_ = nullptr;
    callbacks_->stop(Milliseconds(0));
    callbacks_ = nullptr;
    ApiBench::TearDown();
  }

  // Asks, and holds the answer against the document.
  Response checked(Method method, const std::string& path, const std::string& pattern, const std::string& body = {},
                   Fields fields = {}) {
    Response response = call(method, path, body, std::move(fields));
    compare(method, pattern, body, response);
    return response;
  }

  void compare(Method method, const std::string& pattern, const std::string& body, const Response& response) {
    const std::string name = json_name(method);
    seen_.insert(name + " " + pattern);
    const json::object& operation = document_.at("paths").at(pattern).at(name).as_object();
    const json::object& answers = operation.at("responses").as_object();
    const json::value* answer = answers.if_contains(std::to_string(response.status));
    EXPECT_TRUE(answer != nullptr || response.status >= 400)
        << pattern << " " << response.status << " " << response.body;
    if (answer == nullptr) answer = &answers.at("default");
    const json::object& content = answer->at("content").as_object();
    // A reply is what its handler gave.
    if (!content.contains("*/*")) {
      const json::value& schema = content.at(response.content_type).at("schema");
      EXPECT_EQ(JsonSchema(document_).check(json::parse(response.body), schema), "") << pattern << ": " << response.body;
    }
    // What was taken is as it is described, too.
    if (!body.empty() && response.status < 300 && response.body.find("\"problem\"") == std::string::npos) {
      const json::value& asked = operation.at("requestBody").at("content").at("application/json").at("schema");
      EXPECT_EQ(JsonSchema(document_).check(json::parse(body), asked), "") << pattern << ": " << body;
    }
  }

  // Enqueues, waits for the end, and gives the id of the newest delivery.
  std::string delivered(const std::string& job) {
    const std::string id = field_of(checked(Method::kPost, "/v1/jobs", "/v1/jobs", job).body, "id");
    checked(Method::kGet, "/v1/jobs/" + id + "/result?wait=1m", "/v1/jobs/{id}/result");
    return newest_delivery(id);
  }
  std::string newest_delivery(const std::string& job) {
    const Response page = checked(Method::kGet, "/v1/callbacks?job=" + job, "/v1/callbacks");
    return field_of(items_of(page.body, "deliveries").at(0), "id");
  }
  std::string replay(const std::string& delivery) {
    return field_of(checked(Method::kPost, "/v1/callbacks/" + delivery + "/replay", "/v1/callbacks/{id}/replay").body,
                    "how");
  }
  // A request with a reply, one without, and events.
  void ask_for_replies_and_events();
  void ask_for_a_backup();
  // A flow on its way, cancelled and replayed.
  void ask_about_flows() {
    const Response made = checked(Method::kPost, "/v1/jobs", "/v1/jobs",
                                  R"([{"kind":"b","label":"b","after":["#a"],"flow":"#a","queue":"flow","after_death":"cancel"},
                                      {"kind":"a","label":"a","flow":"#a","queue":"flow","unique_key":"k","unique_for":"1h",
                                       "on_conflict":"replace"}])");
    const auto results = items_of(made.body, "results");
    const std::string flow = "/v1/flows/" + (results.empty() ? "018f3c1e-7d5a-7000-8000-000000000001" : field_of(results.at(1), "id"));
    checked(Method::kGet, flow, "/v1/flows/{id}");
    checked(Method::kPost, flow + "/replay", "/v1/flows/{id}/replay", R"({"keep_attempts":true,"delay":"1s"})");
    checked(Method::kPost, flow + "/cancel", "/v1/flows/{id}/cancel", R"({"dry_run":true})");
    checked(Method::kPost, flow + "/cancel", "/v1/flows/{id}/cancel");
  }
  // Deliveries that end in each way, the hosts they went to, and their replays.
  void ask_about_callbacks();
  void ask_about_schedules();

  static std::string json_name(Method method) {
    std::string name(to_string(method));
    for (char& c : name) c = static_cast<char>(c | 0x20);
    return name;
  }

  std::unique_ptr<CallbackService> callbacks_;
  std::shared_ptr<metrics::MeteredBroker> metered_;
  std::unique_ptr<Authenticator> authenticator_;
  json::value document_;
  std::set<std::string> seen_;
};

void OpenApi::ask_for_replies_and_events() {
  const std::string sum = R"({"kind":"add","body_text":"1 2","queue":"sums"})";
  const auto caller = start(Method::kPost, "/v1/requests?timeout=1m", sum);
  const std::string lease = lease_one(R"({"queues":["sums"],"wait":"1m"})");
  checked(Method::kPost, "/v1/leases/settle", "/v1/leases/settle", settlement(lease, R"("outcome":"done","result_text":"3")"));
  compare(Method::kPost, "/v1/requests", sum, caller->wait());
  checked(Method::kPost, "/v1/requests?timeout=1ms", "/v1/requests", sum);

  checked(Method::kPut, "/v1/queues/mails/binding", "/v1/queues/{name}/binding", R"({"patterns":["order.*"]})");
  checked(Method::kPut, "/v1/queues/mails/binding", "/v1/queues/{name}/binding", R"({"patterns":["order..x"]})");
  checked(Method::kGet, "/v1/bindings", "/v1/bindings");
  checked(Method::kPost, "/v1/publish", "/v1/publish", R"({"kind":"order.created","body":{"order":17}})");
  checked(Method::kPost, "/v1/publish", "/v1/publish", R"([{"kind":"order.paid"},{"kind":"other"},{"knd":1}])");
}

void OpenApi::ask_for_a_backup() {
  checked(Method::kGet, "/v1/backup", "/v1/backup");
  checked(Method::kPost, "/v1/backup", "/v1/backup", R"({"target":"nightly"})");
  checked(Method::kPost, "/v1/backup", "/v1/backup", R"({"target":"../nightly"})");
  while (field_of(checked(Method::kGet, "/v1/backup", "/v1/backup").body, "finished").empty()) std::this_thread::yield();
}

void OpenApi::ask_about_callbacks() {
  support::HttpReceiver receiver([](const support::HttpReceived& request, support::HttpPeer& peer) {
    const std::string path = request.line.substr(5, request.line.find(' ', 5) - 5);
    if (path == "/hang-up") return peer.hang_up();
    peer.answer(path == "/done"    ? "200 OK"
                : path == "/later" ? "202 Accepted"
                : path == "/gone"  ? "410 Gone"
                                   : "500 Internal Server Error");
  });
  const auto job_to = [&](const std::string& path, const std::string& retry) {
    return R"({"kind":"greet","body":"hello","retry":")" + retry + R"(","callback":")" + receiver.url(path) + "\"}";
  };
  checked(Method::kGet, "/v1/callbacks", "/v1/callbacks");
  EXPECT_EQ(replay(delivered(job_to("/done", "none"))), "enqueued");
  EXPECT_EQ(replay(delivered(job_to("/gone", "none"))), "replayed");
  delivered(job_to("/hang-up", "none"));

  const std::string waiting = enqueue(job_to("/broken", "fixed(1h,x3)"));
  const std::string accepted = enqueue(job_to("/later", "none"));
  while (items_of(get("/v1/callbacks?job=" + accepted).body, "deliveries").empty() ||
         field_of(get("/v1/jobs/" + waiting).body, "state") != "scheduled") {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(replay(newest_delivery(waiting)), "hastened");
  const Response page = checked(Method::kGet, "/v1/callbacks?limit=2", "/v1/callbacks");
  EXPECT_EQ(field_of(page.body, "accepted"), "1");
  EXPECT_EQ(items_of(page.body, "hosts").size(), 1u);
  checked(Method::kGet, "/v1/callbacks?limit=2&before=" + field_of(page.body, "next"), "/v1/callbacks");
  checked(Method::kGet, "/v1/callbacks?limit=0", "/v1/callbacks");
  replay("018f3c1e-7d5a-7000-8000-000000000001");  // There is none.
}

void OpenApi::ask_about_schedules() {
  const std::string one = "/v1/schedules/{name}";
  checked(Method::kPut, "/v1/schedules/nightly", one,
          R"({"cron":"30 7 * * mon-fri","job":{"kind":"a","queue":"q","body":{"x":1}},"owner":"tests","overlap":"skip"})");
  checked(Method::kPut, "/v1/schedules/often", one, R"({"every":"1h","anchor":"2026-01-01T00:00:00Z","job":{"kind":"a"}})");
  checked(Method::kPut, "/v1/schedules/wrong", one, R"({"cron":"never","job":{"kind":"a"}})");
  checked(Method::kPost, "/v1/schedules/often/run", one + "/run");
  checked(Method::kPost, "/v1/schedules/often/pause", one + "/pause");
  checked(Method::kPost, "/v1/schedules/often/resume", one + "/resume");
  checked(Method::kPost, "/v1/schedules/nobodys/run", one + "/run");
  checked(Method::kGet, "/v1/schedules", "/v1/schedules");
  checked(Method::kGet, "/v1/schedules/often", one);
  checked(Method::kGet, "/v1/schedules/nobodys", one);
  checked(Method::kGet, "/v1/schedules/often/times?limit=3", one + "/times");
  checked(Method::kDelete, "/v1/schedules/often", one);
  checked(Method::kGet, "/v1/schedule-times?cron=@daily", "/v1/schedule-times");
  checked(Method::kGet, "/v1/schedule-times?cron=never", "/v1/schedule-times");
}

TEST_F(OpenApi, DescribesEveryRouteWithAnAnswer) {
  EXPECT_EQ(document_.at("openapi").as_string(), "3.1.0");
  EXPECT_EQ(document_.at("info").at("version").as_string(), "1.2.3");
  for (const Route& route : router_->routes()) {
    if (route.pattern == "/v1/openapi.json") continue;
    const json::object& operation = document_.at("paths").at(route.pattern).at(json_name(route.method)).as_object();
    EXPECT_GE(operation.at("responses").as_object().size(), 2u) << route.pattern;
    EXPECT_EQ(operation.at("summary").as_string(), route.summary);
  }
}

TEST_F(OpenApi, EveryOperationHasAnIdOfItsOwn) {
  std::set<std::string> ids;
  std::size_t operations = 0;
  for (const auto& [pattern, methods] : document_.at("paths").as_object()) {
    for (const auto& [method, operation] : methods.as_object()) {
      ids.emplace(operation.at("operationId").as_string());
      ++operations;
    }
  }
  EXPECT_EQ(ids.size(), operations);
  EXPECT_EQ(ids.count(""), 0u);
}

TEST_F(OpenApi, EveryReferenceLeadsSomewhere) {
  const std::string text = json::serialize(document_);
  const std::string start = "\"#/components/schemas/";
  std::size_t count = 0;
  for (std::size_t at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
    const std::size_t from = at + start.size();
    const std::string name = text.substr(from, text.find('"', from) - from);
    EXPECT_NE(document_.at("components").at("schemas").as_object().if_contains(name), nullptr) << name;
    ++count;
  }
  EXPECT_GT(count, 50u);
}

TEST_F(OpenApi, WhatIsNotDescribedIsRefused) {
  const JsonSchema schema(document_);
  const json::value& lease = document_.at("components").at("schemas").at("Lease");
  json::value value = {{"id", "x"},    {"kind", "a"},  {"queue", "q"}, {"due", "t"},
                       {"token", "1"}, {"attempt", 1}, {"age_ms", 0}};
  EXPECT_EQ(schema.check(value, lease), "");
  value.as_object()["priority"] = "high";
  EXPECT_EQ(schema.check(value, lease), "$.priority is not integer");
  value.as_object().erase("priority");
  value.as_object()["state"] = "ready";
  EXPECT_EQ(schema.check(value, lease), "$ has state, which is not described");
  value.as_object().erase("state");
  value.as_object().erase("kind");
  EXPECT_EQ(schema.check(value, lease), "$ has no kind");
}

TEST_F(OpenApi, RealAnswersAreAsItSays) {
  const auto post_to = [&](const std::string& path, const std::string& body) {
    return checked(Method::kPost, path, path, body);
  };
  const std::string full =
      R"json({"kind":"a","queue":"q","body":{"x":[1]},"headers":{"h":"v"},"retry":{"policy":"fixed","wait":"0s","max_attempts":1},
    "priority":1,"unique_key":"u","time_limit":"1m","expires":"2100-01-01T00:00:00Z"})json";
  const std::string id = field_of(post_to("/v1/jobs", full).body, "id");
  post_to("/v1/jobs", full);
  post_to("/v1/jobs", R"([{"kind":"b","due":"2020-01-01T00:00:00Z"},{"kind":"c","body_base64":"/w=="},{"knd":1}])");
  post_to("/v1/jobs",
          R"({"jobs":[{"kind":"c","body_text":"x","delay":"1h"},{"kind":"d","headers":[["a","1"],["a","2"]]}]})");
  post_to("/v1/jobs", "{");
  checked(Method::kPost, "/v1/jobs?atomic=true", "/v1/jobs", R"([{"kind":"b"},{}])");
  checked(Method::kGet, "/v1/jobs", "/v1/jobs");
  checked(Method::kGet, "/v1/jobs?limit=1", "/v1/jobs");
  checked(Method::kGet, "/v1/jobs?limit=0", "/v1/jobs");
  const std::string one = "/v1/jobs/" + id;
  checked(Method::kGet, one, "/v1/jobs/{id}");
  checked(Method::kGet, one + "/explain", "/v1/jobs/{id}/explain");
  checked(Method::kGet, one + "/result", "/v1/jobs/{id}/result");
  checked(Method::kPatch, one, "/v1/jobs/{id}", R"({"delay":"0s"})");
  checked(Method::kPatch, one, "/v1/jobs/{id}", R"json({"body":{"x":[2]},"headers":{"h":"w"},"priority":2,"retry":"fixed(0s,x1)"})json");
  std::string lease =
      items_of(post_to("/v1/leases", R"({"queues":["q",{"name":"r","weight":2}],"wait":"5s","worker":"w"})").body,
               "leases")
          .at(0);
  post_to("/v1/leases/extend", R"({"leases":[{"id":")" + id + R"(","token":")" + field_of(lease, "token") + "\"}]}");
  post_to("/v1/leases/save", R"({"id":")" + id + R"(","token":")" + field_of(lease, "token") + R"(","body":{"step":2}})");
  post_to("/v1/leases/save", R"({"id":")" + id + R"(","token":"1","body_text":"of another"})");
  post_to("/v1/leases/save", R"({"id":")" + id + R"(","token":"1"})");
  post_to("/v1/leases/steps", R"({"id":")" + id + R"(","token":")" + field_of(lease, "token") + R"(","name":"charge","result":"ch_1"})");
  post_to("/v1/leases/extend", R"({"leases":[{"id":")" + id + R"(","token":")" + field_of(lease, "token") +
                                   R"(","progress":{"part":0.5,"note":"half"}}]})");
  checked(Method::kGet, one, "/v1/jobs/{id}");
  post_to("/v1/leases/settle", R"({"settlements":[)" + settlement(lease, R"("outcome":"failed","error":"bad")") +
                                   R"(,{"id":"018f3c1e-7d5a-7000-8000-000000000001","token":1,"outcome":"done"}]})");
  post_to("/v1/leases/settle", R"({"settlements":[{"id":5}]})");
  post_to("/v1/leases", R"({"queue":"nothing","poller":"p","wait_ms":0})");
  post_to("/v1/leases/leave", R"({"poller":"p"})");
  checked(Method::kGet, one, "/v1/jobs/{id}");
  checked(Method::kGet, one + "/result", "/v1/jobs/{id}/result");
  checked(Method::kGet, "/v1/dead", "/v1/dead");
  const auto groups = items_of(checked(Method::kGet, "/v1/dead/groups", "/v1/dead/groups").body, "groups");
  checked(Method::kGet, "/v1/dead/groups/" + field_of(groups.at(0), "id"), "/v1/dead/groups/{id}");
  post_to("/v1/dead/replay", R"({"filter":{"queue":"q"},"dry_run":true})");
  post_to("/v1/dead/replay", R"({"ids":[")" + id + R"("],"keep_attempts":true})");
  lease = items_of(post_to("/v1/leases", R"({"queue":"q","wait":"5s"})").body, "leases").at(0);
  post_to("/v1/leases/settle", settlement(lease, R"("outcome":"done","result":{"ok":true})"));
  post_to("/v1/leases/settle", settlement(lease, R"("outcome":"dona")"));
  checked(Method::kGet, one, "/v1/jobs/{id}");
  checked(Method::kGet, one + "/result", "/v1/jobs/{id}/result");
  post_to("/v1/dead/delete", R"({"filter":{}})");
  post_to("/v1/dead/delete", R"({"ids":[")" + id + "\"]}");
  checked(Method::kGet, "/v1/queues", "/v1/queues");
  checked(Method::kGet, "/v1/queues/q", "/v1/queues/{name}");
  checked(Method::kPost, "/v1/queues/q/pause", "/v1/queues/{name}/pause");
  checked(Method::kPost, "/v1/queues/q/resume", "/v1/queues/{name}/resume");
  checked(Method::kPut, "/v1/queues/q/rules", "/v1/queues/{name}/rules",
          R"({"at_once":5,"rate":"10/s","group_rate":{"count":5,"period":"1m","burst":3},"weights":{"g":2},"ageing":"1m"})");
  checked(Method::kPut, "/v1/queues/q/rules", "/v1/queues/{name}/rules", R"({"rate":"often"})");
  checked(Method::kGet, "/v1/queues/q/rules", "/v1/queues/{name}/rules");
  checked(Method::kGet, "/v1/rules", "/v1/rules");
  checked(Method::kDelete, "/v1/queues/q/rules", "/v1/queues/{name}/rules");
  ask_about_schedules();
  checked(Method::kPost, "/v1/queues/default/purge", "/v1/queues/{name}/purge");
  const std::string other = enqueue(R"({"kind":"a"})");
  checked(Method::kDelete, "/v1/jobs/" + other, "/v1/jobs/{id}");
  post_to("/v1/jobs/cancel", R"({"ids":[")" + other + "\"]}");
  ask_about_flows();
  checked(Method::kGet, "/v1/audit", "/v1/audit");
  checked(Method::kGet, "/v1/pressure", "/v1/pressure");
  checked(Method::kGet, "/v1/capabilities", "/v1/capabilities");

  checked(Method::kGet, "/v1/about", "/v1/about");
  checked(Method::kGet, "/v1/stats", "/v1/stats");
  checked(Method::kGet, "/v1/stats?window=week&queue=q", "/v1/stats");
  checked(Method::kGet, "/v1/stats?window=year", "/v1/stats");
  checked(Method::kGet, "/v1/workers", "/v1/workers");
  checked(Method::kGet, "/v1/session", "/v1/session");
  post_to("/v1/session", R"({"link":")" + authenticator_->make_link_code() + "\"}");
  post_to("/v1/session", R"({"token":"of nobody"})");
  checked(Method::kDelete, "/v1/session", "/v1/session");

  ask_for_a_backup();
  ask_for_replies_and_events();
  ask_about_callbacks();

  for (const auto& [pattern, methods] : document_.at("paths").as_object()) {
    for (const auto& [method, operation] : methods.as_object()) {
      if (pattern == "/v1/events") continue;
      EXPECT_EQ(seen_.count(std::string(method) + " " + std::string(pattern)), 1u)
          << method << " " << pattern << " was not asked";
    }
  }
}

}  // namespace
}  // namespace bide::server
