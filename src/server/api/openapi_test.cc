// The OpenAPI document, and real answers held against it by a small validator of JSON Schema.

#include "server/api/openapi.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>

#include "server/api/api_test_bench.h"

namespace bide::server {
namespace {

namespace json = boost::json;

// What of JSON Schema the document uses. Gives the first thing that is wrong, or nothing.
class Validator {
 public:
  explicit Validator(const json::value& document) : schemas_(document.at("components").at("schemas").as_object()) {}

  std::string check(const json::value& value, const json::value& schema, const std::string& at = "$") const {
    for (const auto& [keyword, rule] : schema.as_object()) {
      std::string wrong = check_keyword(value, schema, std::string(keyword), rule, at);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  static bool is_of(const json::value& value, std::string_view type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_bool();
    if (type == "null") return value.is_null();
    if (type == "integer") return value.is_int64() || value.is_uint64();
    return type == "number" && value.is_number();
  }

  std::string check_keyword(const json::value& value, const json::value& schema, const std::string& keyword,
                            const json::value& rule, const std::string& at) const {
    static const std::set<std::string> notes = {"description", "format",  "default", "examples", "pattern", "maxLength",
                                                "minLength",   "minimum", "maximum", "minItems", "maxItems"};
    if (notes.count(keyword) != 0) return "";
    if (keyword == "$ref") {
      const std::string name = json::value_to<std::string>(rule).substr(std::string("#/components/schemas/").size());
      const json::value* found = schemas_.if_contains(name);
      return found == nullptr ? at + ": there is no schema " + name : check(value, *found, at);
    }
    if (keyword == "type") {
      if (rule.is_string())
        return is_of(value, json::value_to<std::string>(rule)) ? ""
                                                               : at + " is not " + json::value_to<std::string>(rule);
      for (const json::value& type : rule.as_array()) {
        if (is_of(value, json::value_to<std::string>(type))) return "";
      }
      return at + " has the wrong type";
    }
    if (keyword == "enum") {
      for (const json::value& each : rule.as_array()) {
        if (each == value) return "";
      }
      return at + " is " + json::serialize(value) + ", which is not one of " + json::serialize(rule);
    }
    if (keyword == "anyOf") {
      std::string all;
      for (const json::value& each : rule.as_array()) {
        const std::string wrong = check(value, each, at);
        if (wrong.empty()) return "";
        all += "; " + wrong;
      }
      return at + " is none of those allowed" + all;
    }
    if (keyword == "required") {
      for (const json::value& name : rule.as_array()) {
        if (value.is_object() && value.as_object().if_contains(name.as_string()) == nullptr)
          return at + " has no " + json::value_to<std::string>(name);
      }
      return "";
    }
    if (keyword == "properties") {
      if (!value.is_object()) return "";
      for (const auto& [name, property] : rule.as_object()) {
        const json::value* found = value.as_object().if_contains(name);
        if (found == nullptr) continue;
        const std::string wrong = check(*found, property, at + "." + std::string(name));
        if (!wrong.empty()) return wrong;
      }
      return "";
    }
    if (keyword == "additionalProperties") {
      if (!value.is_object()) return "";
      const json::value* known = schema.as_object().if_contains("properties");
      for (const auto& [name, each] : value.as_object()) {
        if (known != nullptr && known->as_object().if_contains(name) != nullptr) continue;
        if (rule.is_bool() && !rule.as_bool()) return at + " has " + std::string(name) + ", which is not described";
        if (rule.is_bool()) continue;
        const std::string wrong = check(each, rule, at + "." + std::string(name));
        if (!wrong.empty()) return wrong;
      }
      return "";
    }
    if (keyword == "items") {
      if (!value.is_array()) return "";
      for (const json::value& each : value.as_array()) {
        const std::string wrong = check(each, rule, at + "[]");
        if (!wrong.empty()) return wrong;
      }
      return "";
    }
    return at + ": the validator does not know " + keyword;
  }

  const json::object& schemas_;
};

class OpenApi : public ApiBench {
 protected:
  void SetUp() override {
    ApiBench::SetUp();
    document_ = json::parse(get("/v1/openapi.json").body);
  }

  // Asks, and holds the answer against the document.
  Response checked(Method method, const std::string& path, const std::string& pattern, const std::string& body = {},
                   Fields fields = {}) {
    const Response response = call(method, path, body, std::move(fields));
    const std::string name = json_name(method);
    seen_.insert(name + " " + pattern);
    const json::object& operation = document_.at("paths").at(pattern).at(name).as_object();
    const json::object& answers = operation.at("responses").as_object();
    const json::value* answer = answers.if_contains(std::to_string(response.status));
    EXPECT_TRUE(answer != nullptr || response.status >= 400)
        << pattern << " " << response.status << " " << response.body;
    if (answer == nullptr) answer = &answers.at("default");
    const json::value& schema = answer->at("content").at(response.content_type).at("schema");
    EXPECT_EQ(Validator(document_).check(json::parse(response.body), schema), "") << pattern << ": " << response.body;
    // What was taken is as it is described, too.
    if (!body.empty() && response.status < 300 && response.body.find("\"problem\"") == std::string::npos) {
      const json::value& asked = operation.at("requestBody").at("content").at("application/json").at("schema");
      EXPECT_EQ(Validator(document_).check(json::parse(body), asked), "") << pattern << ": " << body;
    }
    return response;
  }

  static std::string json_name(Method method) {
    std::string name(to_string(method));
    for (char& c : name) c = static_cast<char>(c | 0x20);
    return name;
  }

  json::value document_;
  std::set<std::string> seen_;
};

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
  std::string lease =
      items_of(post_to("/v1/leases", R"({"queues":["q",{"name":"r","weight":2}],"wait":"5s","worker":"w"})").body,
               "leases")
          .at(0);
  post_to("/v1/leases/extend", R"({"leases":[{"id":")" + id + R"(","token":")" + field_of(lease, "token") + "\"}]}");
  checked(Method::kGet, one, "/v1/jobs/{id}");
  post_to("/v1/leases/settle", R"({"settlements":[)" + settlement(lease, R"("outcome":"failed","error":"bad")") +
                                   R"(,{"id":"018f3c1e-7d5a-7000-8000-000000000001","token":1,"outcome":"done"}]})");
  post_to("/v1/leases/settle", R"({"settlements":[{"id":5}]})");
  post_to("/v1/leases", R"({"queue":"nothing","poller":"p","wait_ms":0})");
  post_to("/v1/leases/leave", R"({"poller":"p"})");
  checked(Method::kGet, one, "/v1/jobs/{id}");
  checked(Method::kGet, one + "/result", "/v1/jobs/{id}/result");
  checked(Method::kGet, "/v1/dead", "/v1/dead");
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
  checked(Method::kPost, "/v1/queues/default/purge", "/v1/queues/{name}/purge");
  const std::string other = enqueue(R"({"kind":"a"})");
  checked(Method::kDelete, "/v1/jobs/" + other, "/v1/jobs/{id}");
  post_to("/v1/jobs/cancel", R"({"ids":[")" + other + "\"]}");
  checked(Method::kGet, "/v1/audit", "/v1/audit");
  checked(Method::kGet, "/v1/pressure", "/v1/pressure");
  checked(Method::kGet, "/v1/capabilities", "/v1/capabilities");

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
