// The rules of queues: limits of a queue and of the groups in it.

#include <utility>

#include "server/api/api_state.h"
#include "server/api/caller_inspector.h"
#include "wire/filter_query.h"
#include "wire/rules_json.h"

namespace bide::server {

namespace {

std::optional<std::string> ruled_queue(const Request& request, Reply& reply) {
  std::string name = request.captured.at("name");
  auto problem = wire::find_name_problem({.kind = "any", .queue = name});
  if (!problem) return name;
  problem->field = "name";
  refuse(reply, *problem);
  return std::nullopt;
}

void list_rules(const State& state, const Request& request, Reply reply) {
  inspector_for(state, request.caller)
      ->rules(answer_with<std::vector<QueueRules>>(state, share(std::move(reply)), &wire::rules_list_json));
}

void show_rules(const State& state, const Request& request, Reply reply) {
  const auto name = ruled_queue(request, reply);
  if (!name) return;
  inspector_for(state, request.caller)
      ->rules(answer_with<std::vector<QueueRules>>(
          state, share(std::move(reply)), [name = *name](const std::vector<QueueRules>& all) {
            for (const QueueRules& rules : all) {
              if (rules.queue == name) return wire::rules_json(rules);
            }
            return wire::rules_json({.queue = name});
          }));
}

void set_rules(const State& state, const Request& request, QueueRules rules, Reply reply) {
  const std::string text = wire::rules_json(rules);
  inspector_for(state, request.caller)
      ->put_rules(std::move(rules), answer_with<void>(state, share(std::move(reply)), [text] { return text; }));
}

void put_rules(const State& state, const Request& request, Reply reply) {
  const auto name = ruled_queue(request, reply);
  if (!name) return;
  QueueRules rules{.queue = *name};
  if (const auto problem = wire::read_rules(request.body, rules)) return refuse(reply, *problem);
  set_rules(state, request, std::move(rules), std::move(reply));
}

void remove_rules(const State& state, const Request& request, Reply reply) {
  if (auto name = ruled_queue(request, reply)) set_rules(state, request, {.queue = std::move(*name)}, std::move(reply));
}

}  // namespace

void add_rules_routes(const State& state, Routes& routes) {
  constexpr RouteChecks kInspector{.inspector = true};
  constexpr std::string_view kPattern = "/v1/queues/{name}/rules";
  add_route(state, routes,
            {.pattern = "/v1/rules", .scope = Scope::kRead, .summary = "The rules of all queues that have some",
             .keeps_to_queues = true, .operation = {.id = "listRules", .answers = {{200, "QueueRulesList"}}}},
            &list_rules, kInspector);
  add_route(state, routes,
            {.pattern = kPattern, .scope = Scope::kRead, .summary = "The rules of a queue", .keeps_to_queues = true,
             .operation = {.id = "getRules", .answers = {{200, "QueueRules"}}}},
            &show_rules, kInspector);
  add_route(state, routes,
            {.method = Method::kPut, .pattern = kPattern, .scope = Scope::kAdmin,
             .summary = "Give a queue these rules, whatever it had before", .keeps_to_queues = true,
             .body_bytes = kListBody,
             .operation = {.id = "putRules", .request = "QueueRulesRequest", .answers = {{200, "QueueRules"}}}},
            &put_rules, kInspector);
  add_route(state, routes,
            {.method = Method::kDelete, .pattern = kPattern, .scope = Scope::kAdmin,
             .summary = "Remove the rules of a queue", .keeps_to_queues = true,
             .operation = {.id = "removeRules", .answers = {{200, "QueueRules"}}}},
            &remove_rules, kInspector);
}

}  // namespace bide::server
