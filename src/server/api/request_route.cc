// POST /v1/requests: sends a request and answers with its reply, as the handler gave it.

#include <algorithm>
#include <string>
#include <utility>

#include "core/duration.h"
#include "core/request_rules.h"
#include "rpc/requester.h"
#include "server/api/api_state.h"
#include "server/api/caller_inspector.h"
#include "wire/batch_json.h"

namespace bide::server {

namespace {

constexpr Milliseconds kUsualTimeout{5'000};

// Nothing: refused.
std::optional<Milliseconds> timeout_parameter(const Request& request, Reply& reply) {
  const auto found = request.query.find("timeout");
  if (found == request.query.end()) return kUsualTimeout;
  const auto timeout = core::parse_duration(found->second);
  if (timeout && *timeout >= Milliseconds(1) && *timeout <= wire::kLongestWait) return *timeout;
  refuse(reply, wire::make_problem("invalid_parameter",
                                   timeout ? "timeout: 1ms to " + core::format_duration(wire::kLongestWait) + " is allowed"
                                           : "timeout: " + timeout.error().message,
                                   "timeout"));
  return std::nullopt;
}

// What a job may say and a request may not.
std::optional<wire::Problem> find_request_problem(const Request& request, const wire::Batch& batch) {
  if (!batch.one) return wire::make_problem("expected_object", "one request at a time: an object, not a list");
  const wire::BatchItem& item = batch.items.front();
  if (item.problem) return item.problem;
  const Job& job = item.job;
  const std::pair<bool, std::string_view> refused[] = {{job.delay > Milliseconds(0), "delay"},
                                                       {job.due.has_value(), "due"},
                                                       {job.expires.has_value(), "expires"},
                                                       {!job.unique_key.empty(), "unique_key"},
                                                       {!job.id.is_nil(), "id"},
                                                       {job.past != nullptr, "past"}};
  for (const auto& [given, name] : refused) {
    if (given) return wire::make_problem("conflicting_fields", std::string(name) + ": a request has none", std::string(name));
  }
  if (auto problem = find_queue_problem(request.caller, job)) return problem;
  if (request.caller.may(Scope::kRead)) return std::nullopt;
  return wire::make_problem("forbidden", "a reply needs the scope read as well");
}

// A handler in another process may have given anything.
std::string safe_content_type(const std::string& type) {
  const bool is_text = std::all_of(type.begin(), type.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return std::string(content_type_or_default(is_text && type.size() <= 255 ? std::string_view(type) : std::string_view()));
}

void send_request(const State& state, const Request& request, Reply reply) {
  const std::optional<Milliseconds> timeout = timeout_parameter(request, reply);
  if (!timeout) return;
  wire::Batch batch;
  auto problem = wire::read_batch(request.body, state->now(), batch, state->options.callback_queue);
  if (!problem) problem = find_request_problem(request, batch);
  if (problem) return refuse(reply, *problem);
  Job job = std::move(batch.items.front().job);
  // Whoever waits would rather be told than wait for the usual policy of jobs.
  if (job.retry == RetryPolicy()) job.retry = RetryPolicy::none();
  if (core::header_of(job, core::kRequestHeader).empty()) {
    job.headers.emplace_back(core::kRequestHeader, core::kTransientRequest);
  }
  const auto answer = share(std::move(reply));
  state->requests->request(std::move(job), *timeout, [state, answer](Result<bide::Reply> result) {
    if (!result) return refuse(*answer, state->problem_of(result.error()));
    answer->send({.status = 200,
                  .content_type = safe_content_type(result->content_type),
                  .body = std::move(result->body),
                  .fields = {}});
  });
}

}  // namespace

void add_request_route(const State& state, Routes& routes) {
  add_route(state, routes,
            {.method = Method::kPost, .pattern = "/v1/requests", .scope = Scope::kWrite,
             .summary = "Send a request and wait for its reply", .keeps_to_queues = true,
             .operation = {.id = "sendRequest", .request = "EnqueueRequest", .answers = {{200, "", "*/*"}},
                           .query = {"timeout"}}},
            &send_request, {.inspector = true});
}

}  // namespace bide::server
