// The OpenAPI 3.1 document, made from the routes under /v1 and the schemas of src/wire.

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "platform/fatal.h"
#include "server/api/api_state.h"
#include "wire/fields.h"
#include "wire/json_writer.h"

namespace bide::server {

namespace {

using wire::JsonWriter;

struct Parameter {
  std::string_view name;
  std::string_view schema;
  std::string_view description;
};

constexpr auto kParameters = std::to_array<Parameter>({
    {"atomic", R"({"type":"boolean","default":false})", "Enqueue nothing when an item is not valid."},
    {"state", R"({"type":"string"})", "One or several of scheduled, ready, running, done, dead, waiting, with commas."},
    {"queue", R"({"type":"string"})", "Only of this queue."},
    {"kind", R"({"type":"string"})", "Only of this kind."},
    {"group", R"({"type":"string"})", "Only of this group."},
    {"flow", R"({"type":"string","format":"uuid"})", "Only of this flow."},
    {"header.NAME", R"({"type":"string"})",
     "Only those whose header of that NAME has this value: header.tenant=acme; several are fine."},
    {"error", R"({"type":"string"})", "Contained in the newest error text."},
    {"since", R"({"type":"string","format":"date-time"})",
     "Dead or done: finished at or after; others: due at or after."},
    {"until", R"({"type":"string","format":"date-time"})", "Likewise, at or before."},
    {"cursor", R"({"type":"string"})", "next of the page before."},
    {"limit", R"({"type":"integer","minimum":1,"maximum":1000})",
     "How many a page: 50 jobs, 100 deliveries or 5 times unless said."},
    {"bodies", R"({"type":"boolean","default":false})", "Each job with its body or its result."},
    {"cron", R"({"type":"string"})", "A cron expression, such as 30 7 * * mon-fri."},
    {"zone", R"({"type":"string","default":"UTC"})", "Of the tz database, for cron."},
    {"every", R"({"type":"string"})", "A duration, such as 15m; in place of cron."},
    {"anchor", R"({"type":"string","format":"date-time"})", "For every: whole multiples from here."},
    {"job", R"({"type":"string","format":"uuid"})", "Only of this job."},
    {"before", R"({"type":"string","format":"uuid"})", "next of the page before."},
    {"window", R"({"enum":["hour","day","week"],"default":"hour"})",
     "The last hour in steps of 10 s, the last day of 5 min, the last week of 30 min."},
    {"timeout", R"({"type":"string"})", "How long to wait for the reply, such as 500ms; at most 5m; 5s when not given."},
    {"wait", R"({"type":"string"})", "How long to wait until the job is done or dead, such as 30s; at most 5m."},
});

std::string reference(std::string_view schema) {
  return R"({"$ref":"#/components/schemas/)" + std::string(schema) + "\"}";
}

void write_content(JsonWriter& out, std::string_view type, std::string_view schema) {
  out.any_name(type).begin_object().name("schema").raw(schema).end_object();
}

void write_parameters(JsonWriter& out, const Route& route) {
  out.name("parameters").begin_array();
  const std::string_view pattern = route.pattern;
  for (std::size_t open = pattern.find('{'); open != std::string_view::npos; open = pattern.find('{', open + 1)) {
    const std::string_view name = pattern.substr(open + 1, pattern.find('}', open) - open - 1);
    out.begin_object().field("name", name).field("in", "path").field("required", true);
    out.name("schema").raw(R"({"type":"string"})").end_object();
  }
  for (const std::string_view name : route.operation.query) {
    const auto found =
        std::find_if(kParameters.begin(), kParameters.end(), [name](const Parameter& p) { return p.name == name; });
    platform::require(found != kParameters.end(), "every query parameter of a route is described");
    out.begin_object().field("name", name).field("in", "query").field("description", found->description);
    out.name("schema").raw(found->schema).end_object();
  }
  if (route.operation.idempotency_key) {
    out.begin_object().field("name", "Idempotency-Key").field("in", "header");
    out.field("description", "The request is carried out once, however often it is sent with this key.");
    out.name("schema").raw(R"({"type":"string","maxLength":255})").end_object();
  }
  out.end_array();
}

void write_operation(JsonWriter& out, const Route& route) {
  const Operation& operation = route.operation;
  out.begin_object().field("operationId", operation.id).field("summary", route.summary);
  out.name("security").begin_array();
  if (route.scope != Scope::kNone) {
    out.begin_object().name("token").begin_array().string(to_string(route.scope)).end_array().end_object();
  }
  out.end_array();
  write_parameters(out, route);
  if (!operation.request.empty()) {
    out.name("requestBody").begin_object().name("content").begin_object();
    write_content(out, "application/json", reference(operation.request));
    if (operation.ndjson)
      write_content(out, "application/x-ndjson", R"({"type":"string","description":"One job a line."})");
    out.end_object().end_object();
  }
  out.name("responses").begin_object();
  for (const RouteAnswer& answer : operation.answers) {
    out.any_name(std::to_string(answer.status)).begin_object().field("description", route.summary);
    out.name("content").begin_object();
    if (answer.schema.empty()) {
      write_content(out, answer.type, R"({"type":"string"})");
    } else {
      write_content(out, "application/json", reference(answer.schema));
    }
    out.end_object().end_object();
  }
  out.name("default").begin_object().field("description", "What was wrong").name("content").begin_object();
  write_content(out, "application/problem+json", reference("Problem"));
  out.end_object().end_object();
  out.end_object().end_object();
}

std::string method_name(Method method) {
  std::string name(to_string(method));
  for (char& c : name) c = static_cast<char>(c | 0x20);
  return name;
}

std::string openapi_json(const Routes& routes, std::string_view version) {
  std::string text;
  JsonWriter out(text);
  out.begin_object().field("openapi", "3.1.0");
  out.name("info").begin_object().field("title", "bide").field("version", version.empty() ? "0" : version);
  out.field("description", "Durable background jobs over HTTP.").end_object();
  std::vector<std::pair<std::string_view, std::vector<const Route*>>> paths;
  for (const Route& route : routes) {
    if (!route.pattern.starts_with("/v1/") || route.pattern == "/v1/openapi.json") continue;
    const auto found =
        std::find_if(paths.begin(), paths.end(), [&](const auto& path) { return path.first == route.pattern; });
    (found == paths.end() ? paths.emplace_back(route.pattern, std::vector<const Route*>()) : *found)
        .second.push_back(&route);
  }
  out.name("paths").begin_object();
  for (const auto& [pattern, methods] : paths) {
    out.any_name(pattern).begin_object();
    for (const Route* route : methods) {
      out.any_name(method_name(route->method));
      write_operation(out, *route);
    }
    out.end_object();
  }
  out.end_object();
  out.name("components").begin_object();
  out.name("securitySchemes").raw(R"({"token":{"type":"http","scheme":"bearer"}})");
  out.name("schemas").begin_object();
  for (const wire::Schema& schema : wire::schemas()) out.any_name(schema.name).raw(schema.json);
  out.end_object().end_object().end_object();
  return text;
}

}  // namespace

void add_openapi_route(Routes& routes, std::string_view version) {
  const auto document = std::make_shared<const std::string>(openapi_json(routes, version));
  routes.push_back({Method::kGet, "/v1/openapi.json", Scope::kNone, "This API, described",
                    [document](const Request&, Reply reply) { reply.send(json_response(200, *document)); }});
}

}  // namespace bide::server
