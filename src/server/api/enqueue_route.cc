// POST /v1/jobs: enqueues one job or many, in one call of the broker.

#include <algorithm>
#include <utility>

#include "server/api/api_state.h"
#include "server/api/caller_inspector.h"
#include "server/api/trace_context.h"
#include "wire/batch_json.h"

namespace bide::server {

namespace {

using wire::Batch;
using wire::BatchResult;
using wire::Problem;

struct EnqueueCall {
  EnqueueCall(State given, Request asked, Reply answer)
      : state(std::move(given)), request(std::move(asked)), reply(std::move(answer)) {}

  State state;
  Request request;  // The items are slices of its body.
  Reply reply;
  bool lines = false;  // NDJSON.
  Batch batch = {};
  std::vector<BatchResult> results = {};
  std::vector<std::size_t> sent = {};  // Items that the broker was given.
  std::string key = {};                // Idempotency-Key, or empty.
  std::unique_ptr<IdempotencyTable::KeyLock> key_lock = {};
  std::vector<std::string> digests = {};  // Of each item, with a key.
  std::vector<JobEvent> events = {};      // Of what was sent, when somebody listens.
  std::vector<std::size_t> to_compare = {};  // Jobs that existed, whose digests are to be looked up.
  bool replayed = false;
};
using EnqueuePtr = std::shared_ptr<EnqueueCall>;

// All items failed alike with 429 or 5xx: then that is the answer to the whole request. Not where something may have been
// written: that is said item by item, so that clients do not send the whole again.
const Problem* common_problem(const EnqueueCall& call) {
  const Problem* first = nullptr;
  for (const BatchResult& result : call.results) {
    if (!result.problem) return nullptr;
    if (first == nullptr) first = &*result.problem;
    if (result.problem->code != first->code) return nullptr;
  }
  const bool ours = first != nullptr && (first->status == 429 || first->status >= 500) && first->code != "unconfirmed";
  return ours ? first : nullptr;
}

void answer(EnqueueCall& call) {
  Response response;
  if (call.batch.one && call.results[0].problem) {
    response = to_response(*call.results[0].problem);
  } else if (call.batch.one) {
    const Enqueued& enqueued = call.results[0].enqueued;
    response = json_response(enqueued.existed || enqueued.replaced ? 200 : 201, wire::enqueued_json(call.batch.items[0], call.results[0]));
    response.fields.emplace_back("Location", "/v1/jobs/" + enqueued.id.to_string());
  } else if (const Problem* whole = common_problem(call)) {
    response = to_response(*whole);
  } else if (call.lines) {
    response = {.status = 200,
                .content_type = std::string(wire::kNdjsonContentType),
                .body = wire::batch_results_ndjson(call.batch, call.results),
                .fields = {}};
  } else {
    response = json_response(200, wire::batch_results_json(call.batch, call.results));
  }
  if (call.replayed) response.fields.emplace_back("Idempotent-Replayed", "true");
  call.key_lock.reset();  // Before the answer: the client may send the next request as soon as it has it.
  call.reply.send(std::move(response));
}

// The job existed: compares the request that made it with this one.
void compare(EnqueueCall& call, std::size_t item, const std::optional<std::string>& digest) {
  BatchResult& result = call.results[item];
  if (digest && *digest != call.digests[item]) {
    result.problem = wire::make_problem("idempotency_key_reused",
                                        "the Idempotency-Key was used for another request, which made job " +
                                            result.enqueued.id.to_string() + "; use a new key for a new request");
    return;
  }
  result.enqueued.existed = false;
  call.replayed = true;
}

// One after the other: a request with thousands of jobs takes one place in the read scheduler.
void compare_next(const EnqueuePtr& call) {
  if (call->to_compare.empty()) return answer(*call);
  const std::size_t item = call->to_compare.back();
  call->to_compare.pop_back();
  call->state->reads->find(
      call->request.caller, call->results[item].enqueued.id, [call, item](const Result<JobInfo>& info) {
        // A done job may have no headers any more: then the key alone decides.
        const std::string_view digest = info ? wire::header_of(info->job, wire::kRequestHeader) : std::string_view();
        compare(*call, item, digest.empty() ? std::nullopt : std::optional<std::string>(digest));
        compare_next(call);
      });
}

void compare_existing(const EnqueuePtr& call) {
  for (const std::size_t item : call->sent) {
    const BatchResult& result = call->results[item];
    if (result.problem || !result.enqueued.existed) continue;
    if (const auto digest = call->state->idempotency.find_digest(result.enqueued.id)) {
      compare(*call, item, digest);
    } else {
      call->to_compare.push_back(item);
    }
  }
  compare_next(call);
}

// The job that holds the unique key may be in a queue that the caller may not see.
Error without_holder(const Identity& caller, const Error& error) {
  if (error.code != ErrorCode::kAlreadyExists || !caller.is_restricted()) return error;
  return Error{error.code, "the unique key is held by another job"};
}

void on_results(const EnqueuePtr& call, Result<std::vector<Result<Enqueued>>> results) {
  ApiState& state = *call->state;
  bool existed = false;
  std::vector<JobEvent> events;
  for (std::size_t i = 0; i < call->sent.size(); ++i) {
    BatchResult& result = call->results[call->sent[i]];
    if (!results) {
      result.problem = state.problem_of(results.error(), call->sent.size());
    } else if (i >= results->size() || !(*results)[i]) {
      const Error missing{ErrorCode::kUnconfirmed, "the broker did not say what became of the job"};
      const Error& error = i < results->size() ? (*results)[i].error() : missing;
      result.problem = state.problem_of(without_holder(call->request.caller, error), call->sent.size());
    } else {
      result.enqueued = *(*results)[i];
      existed = existed || result.enqueued.existed;
      if (!call->events.empty() && !result.enqueued.existed) {
        call->events[i].id = result.enqueued.id;
        events.push_back(std::move(call->events[i]));
      }
    }
  }
  if (!events.empty()) state.events->publish(events);
  if (call->key.empty()) return answer(*call);
  for (const std::size_t item : call->sent) {
    const BatchResult& result = call->results[item];
    if (!result.problem && !result.enqueued.existed)
      state.idempotency.add_digest(result.enqueued.id, call->digests[item]);
  }
  if (!existed) return answer(*call);
  compare_existing(call);
}

// Gives every job the id that is derived from its key. False: refused.
bool apply_key(EnqueueCall& call) {
  ApiState& state = *call.state;
  if (auto problem = find_key_problem(call.key)) return refuse(call.reply, *problem), false;
  const Capabilities can = state.broker.capabilities();
  if (!can.idempotent_ids || !can.inspect || state.inspector == nullptr) {
    refuse(call.reply, wire::make_problem(
                           "idempotency_unsupported",
                           "this broker cannot keep an Idempotency-Key; use unique_key where it can, or leave it out"));
    return false;
  }
  call.key_lock = state.idempotency.try_lock(id_for_key(call.request.caller.name, call.key, 0));
  if (!call.key_lock) {
    Problem problem = wire::make_problem(
        "idempotency_conflict", "the first request with this Idempotency-Key is still under way; ask again soon");
    problem.retry_after = Milliseconds(1000);
    refuse(call.reply, problem);
    return false;
  }
  call.digests.resize(call.batch.items.size());
  for (std::size_t i = 0; i < call.batch.items.size(); ++i) {
    wire::BatchItem& item = call.batch.items[i];
    if (item.problem) continue;
    if (!item.job.id.is_nil()) {
      item.problem =
          wire::make_problem("conflicting_fields", "both id and Idempotency-Key are given; give one of them", "id");
      continue;
    }
    item.job.id = id_for_key(call.request.caller.name, call.key, i);
    call.digests[i] = request_digest(item.text);
    std::erase_if(item.job.headers, [](const auto& header) { return header.first == wire::kRequestHeader; });
    item.job.headers.emplace_back(std::string(wire::kRequestHeader), call.digests[i]);
  }
  return true;
}

void answer_atomic_refusal(EnqueueCall& call, std::size_t bad) {
  std::string body;
  wire::JsonWriter out(body);
  const Problem problem = wire::make_problem(
      "invalid_batch", std::to_string(bad) + " of " + std::to_string(call.batch.items.size()) +
                           " items are not valid; nothing was enqueued");
  std::string whole = wire::problem_json(problem);
  whole.pop_back();  // The results go into the same object.
  body += whole + ",\"results\":";
  out.begin_array();
  for (std::size_t i = 0; i < call.batch.items.size(); ++i) {
    if (!call.batch.items[i].problem) continue;
    out.begin_object().field("index", i).field("status", call.batch.items[i].problem->status).name("problem");
    write(out, *call.batch.items[i].problem);
    out.end_object();
  }
  out.end_array();
  body += "}";
  call.reply.send({.status = problem.status,
                   .content_type = std::string(wire::kProblemContentType),
                   .body = std::move(body),
                   .fields = {}});
}

// Nothing: refused.
std::optional<bool> atomic_parameter(const Request& request, Reply& reply) {
  const auto found = request.query.find("atomic");
  if (found == request.query.end() || found->second == "false") return false;
  if (found->second == "true" || found->second.empty()) return true;
  refuse(reply, wire::make_problem("invalid_parameter", "atomic: allowed are true and false", "atomic"));
  return std::nullopt;
}

void enqueue(const State& state, Request request, Reply reply) {
  const auto atomic = atomic_parameter(request, reply);
  if (!atomic) return;
  const bool lines = is_same_text(request.media_type(), wire::kNdjsonContentType);
  const auto call = std::make_shared<EnqueueCall>(state, std::move(request), std::move(reply));
  call->lines = lines;
  const std::string_view body = call->request.body;
  const std::string_view callback_queue = state->options.callback_queue;
  const auto problem = lines ? wire::read_ndjson_batch(body, state->now(), call->batch, callback_queue)
                             : wire::read_batch(body, state->now(), call->batch, callback_queue);
  if (problem) return refuse(call->reply, *problem);
  call->key = call->request.field("idempotency-key");
  const bool has_key = call->request.fields.count("idempotency-key") != 0;
  if (has_key && !apply_key(*call)) return;

  Batch& batch = call->batch;
  call->results.resize(batch.items.size());
  for (wire::BatchItem& item : batch.items) {
    if (!item.problem) item.problem = find_queue_problem(call->request.caller, item.job);
    if (!item.problem && item.job.past && !call->request.caller.may(Scope::kAdmin)) {
      item.problem = wire::make_problem("forbidden", "past: only a token with the scope admin may give one", "past");
    }
    // A job that is moved keeps its id, whatever it stood for.
    if (!item.problem && !has_key && !item.job.past) item.problem = find_id_problem(item.job);
    if (!item.problem && state->options.find_callback_problem)
      item.problem = state->options.find_callback_problem(item.job);
  }
  wire::resolve_labels(batch, state->now(), [&state] { return state->next_id(); });
  const auto bad = static_cast<std::size_t>(
      std::count_if(batch.items.begin(), batch.items.end(), [](const wire::BatchItem& item) { return item.problem; }));
  if (*atomic && bad > 0 && !batch.one) return answer_atomic_refusal(*call, bad);

  const bool listened = state->events->active();
  std::vector<Job> jobs;
  jobs.reserve(batch.items.size() - bad);
  call->sent.reserve(batch.items.size() - bad);
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    wire::BatchItem& item = batch.items[i];
    if (item.problem) {
      call->results[i].problem = std::move(item.problem);
      continue;
    }
    if (listened) call->events.push_back({.type = "job.enqueued", .kind = item.job.kind, .queue = item.job.queue});
    call->sent.push_back(i);
    take_trace(call->request, item.job);
    jobs.push_back(std::move(item.job));
  }
  if (jobs.empty()) return answer(*call);
  state->broker.enqueue(std::move(jobs), [call](Result<std::vector<Result<Enqueued>>> results) {
    on_results(call, std::move(results));
  });
}

}  // namespace

void add_enqueue_route(const State& state, Routes& routes) {
  add_route(state, routes,
            {.method = Method::kPost, .pattern = "/v1/jobs", .scope = Scope::kWrite,
             .summary = "Enqueue one job, or many", .keeps_to_queues = true,
             .operation = {.id = "enqueueJobs", .request = "EnqueueRequest",
                           .answers = {{201, "Enqueued"}, {200, "EnqueueAnswer"}}, .query = {"atomic"},
                           .ndjson = true, .idempotency_key = true}},
            &enqueue);
}

}  // namespace bide::server
