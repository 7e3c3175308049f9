// What concerns the broker as a whole: the audit, its pressure, what it can do, and what happens in it.

#include <utility>

#include "server/api/api_state.h"
#include "server/api/queue_limits.h"
#include "wire/filter_query.h"
#include "wire/info_json.h"

namespace bide::server {

namespace {

void audit(const State& state, const Request& request, Reply reply) {
  if (!has_inspector(state, reply) || !knows_parameters(request, reply, {})) return;
  state->inspector->audit([state, reply = share(std::move(reply))](const Result<AuditReport>& report) {
    if (!report) return refuse(*reply, state->problem_of(report.error()));
    reply->send(json_response(200, wire::audit_json(*report)));
  });
}

void pressure(const State& state, const Request& request, Reply reply) {
  if (!knows_parameters(request, reply, {})) return;
  Pressure now = state->broker.pressure();
  // Of files, limits and hosts: not for strangers. All that they need is when to come back.
  if (!request.caller.is_known()) now.reason.clear();
  reply.send(json_response(200, wire::pressure_json(now)));
}

void capabilities(const State& state, const Request& request, Reply reply) {
  if (!knows_parameters(request, reply, {})) return;
  reply.send(json_response(200, wire::capabilities_json(state->broker.capabilities())));
}

void events(const State& state, const Request& request, Reply reply) {
  if (!knows_parameters(request, reply, {"queue"})) return;
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
  const auto add = [&](std::string_view pattern, Scope scope, std::string_view summary, auto handler,
                       bool keeps_to_queues = false) {
    routes.push_back({Method::kGet, pattern, scope, summary, [state, handler](const Request& request, Reply reply) {
                        handler(state, request, std::move(reply));
                      }, keeps_to_queues});
  };
  add("/v1/audit", Scope::kRead, "Whether every accepted job is accounted for", &audit);
  add("/v1/pressure", Scope::kNone, "Whether the broker wants less", &pressure);
  add("/v1/capabilities", Scope::kNone, "What the broker can do", &capabilities);
  add("/v1/events", Scope::kRead, "What happens, as server-sent events", &events, true);
}

}  // namespace bide::server
