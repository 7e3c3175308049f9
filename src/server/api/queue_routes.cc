// Queues: counting, pausing, emptying.

#include <utility>

#include "core/quote.h"
#include "server/api/api_state.h"
#include "server/api/queue_limits.h"
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

void list(const State& state, const Request& request, Reply reply) {
  if (!has_inspector(state, reply) || !knows_parameters(request, reply, {})) return;
  inspector_for(state, request.caller)->queues([state, reply = share(std::move(reply))](const Result<std::vector<QueueInfo>>& queues) {
    if (!queues) return refuse(*reply, state->problem_of(queues.error()));
    reply->send(json_response(200, wire::queues_json(*queues)));
  });
}

void show(const State& state, const Request& request, Reply reply) {
  if (!has_inspector(state, reply) || !knows_parameters(request, reply, {})) return;
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

void pause(const State& state, const Request& request, Reply reply, bool paused) {
  if (!has_inspector(state, reply) || !knows_parameters(request, reply, {})) return;
  auto name = captured_queue(request, reply);
  if (!name) return;
  inspector_for(state, request.caller)->pause(
      *name, paused, [state, name = *name, paused, reply = share(std::move(reply))](const Status& status) {
        if (!status) return refuse(*reply, state->problem_of(status.error()));
        std::string text;
        wire::JsonWriter(text).begin_object().field("name", name).field("paused", paused).end_object();
        reply->send(json_response(200, std::move(text)));
      });
}

void purge(const State& state, const Request& request, Reply reply) {
  if (!has_inspector(state, reply) || !knows_parameters(request, reply, {})) return;
  auto name = captured_queue(request, reply);
  if (!name) return;
  inspector_for(state, request.caller)->purge(*name, [state, reply = share(std::move(reply))](const Result<std::uint64_t>& removed) {
    if (!removed) return refuse(*reply, state->problem_of(removed.error()));
    reply->send(json_response(200, wire::count_json("removed", *removed)));
  });
}

}  // namespace

void add_queue_routes(const State& state, Routes& routes) {
  const auto add = [&](Method method, std::string_view pattern, Scope scope, std::string_view summary, auto handler) {
    routes.push_back({method, pattern, scope, summary, [state, handler](const Request& request, Reply reply) {
                        handler(state, request, std::move(reply));
                      }, true});
    if (method == Method::kPost) routes.back().body_bytes = kSmallBody;
  };
  add(Method::kGet, "/v1/queues", Scope::kRead, "All queues with their counts", &list);
  add(Method::kGet, "/v1/queues/{name}", Scope::kRead, "A queue with its counts", &show);
  add(Method::kPost, "/v1/queues/{name}/pause", Scope::kAdmin, "Hand out no more jobs of a queue",
      [](const State& s, const Request& request, Reply reply) { pause(s, request, std::move(reply), true); });
  add(Method::kPost, "/v1/queues/{name}/resume", Scope::kAdmin, "Hand out the jobs of a paused queue again",
      [](const State& s, const Request& request, Reply reply) { pause(s, request, std::move(reply), false); });
  add(Method::kPost, "/v1/queues/{name}/purge", Scope::kAdmin, "Remove every scheduled and ready job of a queue",
      &purge);
}

}  // namespace bide::server
