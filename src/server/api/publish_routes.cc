// POST /v1/publish: gives events to the queues that are bound to their topics. And the bindings.

#include <memory>
#include <utility>

#include "core/topics.h"
#include "server/api/api_state.h"
#include "server/api/caller_inspector.h"
#include "server/api/trace_context.h"
#include "wire/batch_json.h"
#include "wire/event_json.h"

namespace bide::server {

namespace {

struct PublishCall {
  Request request;  // The items are slices of its body.
  Reply reply;
  wire::Batch batch = {};
  std::vector<wire::PublishResult> results = {};
  std::vector<std::size_t> sent = {};  // Items that the broker was given.
};

void answer_published(PublishCall& call) {
  if (!call.batch.one) return call.reply.send(json_response(200, wire::publish_results_json(call.results)));
  const wire::PublishResult& only = call.results.front();
  if (only.problem) return refuse(call.reply, *only.problem);
  call.reply.send(json_response(200, wire::published_json(only.published)));
}

void publish(const State& state, Request request, Reply reply) {
  const auto call = std::make_shared<PublishCall>(PublishCall{std::move(request), std::move(reply)});
  if (const auto problem = wire::read_batch(call->request.body, state->now(), call->batch, state->options.callback_queue)) {
    return refuse(call->reply, *problem);
  }
  call->results.resize(call->batch.items.size());
  std::vector<Job> events;
  for (std::size_t i = 0; i < call->batch.items.size(); ++i) {
    wire::BatchItem& item = call->batch.items[i];
    if (!item.problem) {
      if (Status valid = core::validate_event(item.job, state->now()); !valid) {
        item.problem = state->problem_of(valid.error());
      }
    }
    if (!item.problem) item.problem = find_id_problem(item.job);
    if (!item.problem && state->options.find_callback_problem) item.problem = state->options.find_callback_problem(item.job);
    if (item.problem) {
      call->results[i].problem = std::move(item.problem);
      continue;
    }
    call->sent.push_back(i);
    take_trace(call->request, item.job);
    events.push_back(std::move(item.job));
  }
  if (events.empty()) return answer_published(*call);
  state->broker.publish(std::move(events), [state, call](Result<std::vector<Result<Published>>> published) {
    for (std::size_t i = 0; i < call->sent.size(); ++i) {
      wire::PublishResult& result = call->results[call->sent[i]];
      if (published && i < published->size() && (*published)[i]) {
        result.published = *(*published)[i];
        continue;
      }
      const Error missing{ErrorCode::kUnconfirmed, "the broker did not say what became of the event"};
      result.problem = state->problem_of(!published                 ? published.error()
                                         : i < published->size() ? (*published)[i].error()
                                                                    : missing);
    }
    answer_published(*call);
  });
}

void list_bindings(const State& state, const Request& request, Reply reply) {
  inspector_for(state, request.caller)
      ->bindings(answer_with<std::vector<Binding>>(state, share(std::move(reply)), &wire::bindings_json));
}

void put_binding(const State& state, const Request& request, Reply reply) {
  Binding binding;
  if (const auto problem = wire::read_binding(request.body, binding)) return refuse(reply, *problem);
  binding.queue = request.captured.at("name");
  if (Status valid = core::validate(binding); !valid) return refuse(reply, state->problem_of(valid.error()));
  const std::string text = wire::binding_json(binding);
  inspector_for(state, request.caller)
      ->bind(std::move(binding), answer_with<void>(state, share(std::move(reply)), [text] { return text; }));
}

}  // namespace

void add_publish_routes(const State& state, Routes& routes) {
  add_route(state, routes,
            {.method = Method::kPost, .pattern = "/v1/publish", .scope = Scope::kWrite,
             .summary = "Publish one event, or many; the kind is the topic",
             .operation = {.id = "publishEvents", .request = "EnqueueRequest", .answers = {{200, "PublishAnswer"}}}},
            &publish);
  add_route(state, routes,
            {.pattern = "/v1/bindings", .scope = Scope::kRead, .summary = "Which queues get which events",
             .keeps_to_queues = true, .operation = {.id = "listBindings", .answers = {{200, "Bindings"}}}},
            &list_bindings, {.inspector = true});
  add_route(state, routes,
            {.method = Method::kPut, .pattern = "/v1/queues/{name}/binding", .scope = Scope::kAdmin,
             .summary = "Bind a queue to events; without patterns it is unbound", .keeps_to_queues = true,
             .body_bytes = kSmallBody,
             .operation = {.id = "bindQueue", .request = "BindingRequest", .answers = {{200, "Binding"}}}},
            &put_binding, {.inspector = true});
}

}  // namespace bide::server
