// Queues, and the broker as a whole: audit, pressure, capabilities, events.

#include <utility>

#include "core/quote.h"
#include "server/api/api_state.h"
#include "server/api/caller_inspector.h"
#include "wire/filter_query.h"
#include "wire/info_json.h"

namespace bide::server {

namespace {

std::optional<std::string> captured_queue(const Request& request, Reply& reply) {
  const auto found = request.captured.find("name");
  std::string name = found == request.captured.end() ? "" : found->second;
  auto problem = wire::find_name_problem({.kind = "any", .queue = name});
  if (!problem) return name;
  problem->field = "name";
  refuse(reply, *problem);
  return std::nullopt;
}

void list_queues(const State& state, const Request& request, Reply reply) {
  inspector_for(state, request.caller)
      ->queues(answer_with<std::vector<QueueInfo>>(state, share(std::move(reply)), &wire::queues_json));
}

void show_queue(const State& state, const Request& request, Reply reply) {
  auto name = captured_queue(request, reply);
  if (!name) return;
  inspector_for(state, request.caller)->queues(
      [state, name = std::move(*name), reply = share(std::move(reply))](const Result<std::vector<QueueInfo>>& queues) {
        if (!queues) return refuse(*reply, state->problem_of(queues.error()));
        for (const QueueInfo& queue : *queues) {
          if (queue.name != name) continue;
          std::string text;
          wire::JsonWriter out(text);
          write(out, queue);
          return reply->send(json_response(200, std::move(text)));
        }
        refuse(*reply, wire::make_problem("not_found", "there is no queue " + core::quoted(name)));
      });
}

void set_paused(const State& state, const Request& request, Reply reply, bool paused) {
  const auto name = captured_queue(request, reply);
  if (!name) return;
  inspector_for(state, request.caller)->pause(*name, paused, answer_with<void>(state, share(std::move(reply)), [=] {
    std::string text;
    wire::JsonWriter(text).begin_object().field("name", *name).field("paused", paused).end_object();
    return text;
  }));
}

void purge(const State& state, const Request& request, Reply reply) {
  const auto name = captured_queue(request, reply);
  if (!name) return;
  inspector_for(state, request.caller)
      ->purge(*name, answer_with<std::uint64_t>(state, share(std::move(reply)), [](std::uint64_t removed) {
                return wire::count_json("removed", removed);
              }));
}

void pressure(const State& state, const Request& request, Reply reply) {
  Pressure now = state->broker.pressure();
  // The reason names files, limits and hosts: not for callers without a token.
  if (!request.caller.is_known()) {
    now.reason.clear();
    now.cause = Pressure::Cause::kNone;
  }
  reply.send(json_response(200, wire::pressure_json(now)));
}

void stream_events(const State& state, const Request& request, Reply reply) {
  const auto found = request.query.find("queue");
  std::string queue = found == request.query.end() ? "" : found->second;
  if (found != request.query.end()) {
    if (auto problem = wire::find_name_problem({.kind = "any", .queue = queue})) return refuse(reply, *problem);
  }
  if (request.caller.is_restricted()) {
    if (queue.empty() && request.caller.queues.size() == 1) queue = request.caller.queues.front();
    if (auto problem = find_queue_problem(request.caller, queue)) return refuse(reply, *problem);
  }
  if (!state->events->has_room()) {
    wire::Problem problem =
        wire::make_problem("overloaded", "there are too many listeners; at most " +
                                             std::to_string(EventHub::kMostListeners) + " are allowed");
    problem.retry_after = Milliseconds(5000);
    return refuse(reply, problem);
  }
  Response head{
      .status = 200, .content_type = "text/event-stream", .body = {}, .fields = {{"Cache-Control", "no-store"}}};
  state->events->listen(reply.stream(std::move(head)), std::move(queue), request.field("last-event-id"));
}

}  // namespace

void add_broker_routes(const State& state, Routes& routes) {
  constexpr RouteChecks kInspector{.inspector = true};
  add_route(state, routes,
            {.pattern = "/v1/queues", .scope = Scope::kRead, .summary = "All queues with their counts",
             .keeps_to_queues = true, .operation = {.id = "listQueues", .answers = {{200, "Queues"}}}},
            &list_queues, kInspector);
  add_route(state, routes,
            {.pattern = "/v1/queues/{name}", .scope = Scope::kRead, .summary = "A queue with its counts",
             .keeps_to_queues = true, .operation = {.id = "getQueue", .answers = {{200, "Queue"}}}},
            &show_queue, kInspector);
  for (const bool paused : {true, false}) {
    add_route(state, routes,
              {.method = Method::kPost,
               .pattern = paused ? "/v1/queues/{name}/pause" : "/v1/queues/{name}/resume",
               .scope = Scope::kAdmin,
               .summary = paused ? "Hand out no more jobs of a queue" : "Hand out the jobs of a paused queue again",
               .keeps_to_queues = true,
               .body_bytes = kSmallBody,
               .operation = {.id = paused ? "pauseQueue" : "resumeQueue", .answers = {{200, "QueuePaused"}}}},
              [paused](const State& s, const Request& request, Reply reply) {
                set_paused(s, request, std::move(reply), paused);
              },
              kInspector);
  }
  add_route(state, routes,
            {.method = Method::kPost, .pattern = "/v1/queues/{name}/purge", .scope = Scope::kAdmin,
             .summary = "Remove every scheduled and ready job of a queue", .keeps_to_queues = true,
             .body_bytes = kSmallBody, .operation = {.id = "purgeQueue", .answers = {{200, "Purged"}}}},
            &purge, kInspector);
  add_route(state, routes,
            {.pattern = "/v1/audit", .scope = Scope::kRead, .summary = "Whether every accepted job is accounted for",
             .operation = {.id = "audit", .answers = {{200, "Audit"}}}},
            [](const State& s, const Request&, Reply reply) {
              s->inspector->audit(answer_with<AuditReport>(s, share(std::move(reply)), &wire::audit_json));
            },
            kInspector);
  add_route(state, routes,
            {.pattern = "/v1/pressure", .scope = Scope::kNone, .summary = "Whether the broker wants less",
             .operation = {.id = "getPressure", .answers = {{200, "Pressure"}}}},
            &pressure);
  add_route(state, routes,
            {.pattern = "/v1/capabilities", .scope = Scope::kNone, .summary = "What the broker can do",
             .operation = {.id = "getCapabilities", .answers = {{200, "Capabilities"}}}},
            [](const State& s, const Request&, Reply reply) {
              reply.send(json_response(200, wire::capabilities_json(s->broker.capabilities())));
            });
  add_route(state, routes,
            {.pattern = "/v1/events", .scope = Scope::kRead, .summary = "What happens, as server-sent events",
             .keeps_to_queues = true, .operation = {.id = "streamEvents", .answers = {{200, ""}}, .query = {"queue"}}},
            &stream_events);
}

}  // namespace bide::server
