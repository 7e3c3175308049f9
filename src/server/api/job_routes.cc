// Jobs that are there: looking at them, waiting for them, changing them.

#include <utility>

#include "core/quote.h"
#include "server/api/api_state.h"
#include "server/api/cursor.h"
#include "server/api/queue_limits.h"
#include "wire/change_json.h"
#include "wire/filter_query.h"
#include "wire/info_json.h"
#include "wire/job_json.h"

namespace bide::server {

namespace {

template <class T, class Text>
Completion<T> answer_with(const State& state, SharedReply reply, Text text) {
  return [state, reply = std::move(reply), text = std::move(text)](Result<T> result) {
    if (!result) return refuse(*reply, state->problem_of(result.error()));
    if constexpr (std::is_void_v<T>) {
      reply->send(json_response(200, text()));
    } else {
      reply->send(json_response(200, text(*result)));
    }
  };
}

// A read that waits for its turn is not begun for a client that is gone.
void give_up_when_gone(const State& state, const Identity& caller, const SharedReply& reply) {
  Identity who;
  who.name = caller.name;
  who.connection = caller.connection;
  reply->on_gone([reads = std::weak_ptr<BoundedReads>(state->reads), who = std::move(who)] {
    if (const auto self = reads.lock()) self->give_up(who);
  });
}

void list(const State& state, Request request, Reply reply, std::optional<JobState> only) {
  if (!has_inspector(state, reply)) return;
  wire::ListRequest wanted;
  if (only && request.query.count("state") != 0) {
    return refuse(reply,
                  wire::make_problem("unknown_parameter", "unknown parameter 'state'; all of these are dead", "state"));
  }
  if (auto problem = wire::read_list_query(request.query, wanted)) return refuse(reply, *problem);
  if (only) wanted.filter.states = {*only};
  std::string cursor;
  if (!wanted.cursor.empty()) {
    auto opened = opened_cursor(wanted.cursor, wanted.filter);
    if (!opened) {
      return refuse(reply,
                    wire::make_problem("invalid_cursor",
                                       "cursor " + core::quoted(wanted.cursor) +
                                           " is not one that was given out for this filter; begin without a cursor",
                                       "cursor"));
    }
    cursor = std::move(*opened);
  }
  const auto shared = share(std::move(reply));
  give_up_when_gone(state, request.caller, shared);
  const Completion<JobPage> done = answer_with<JobPage>(state, shared, [filter = wanted.filter](JobPage& page) {
    page.next = sealed_cursor(page.next, filter);
    return wire::job_page_json(page);
  });
  inspector_for(state, request.caller)->list(wanted.filter, std::move(cursor), wanted.limit, done);
}

// Calls `finish` with the job when it is done or dead, or as it is when the time is up.
template <class Finish>
void wait_for(const State& state, const Identity& caller, const JobId& id, Milliseconds wait, const SharedReply& reply,
              Finish finish) {
  if (wait.count() == 0) {
    give_up_when_gone(state, caller, reply);
    return inspector_for(state, caller)->find(id, [finish](const Result<JobInfo>& info) { finish(info); });
  }
  if (caller.is_restricted()) {
    return inspector_for(state, caller)->find(id, [state, caller, id, wait, reply, finish](const Result<JobInfo>& info) {
      if (!info) return finish(info);
      Identity seen = caller;  // The job is one of its own.
      seen.queues.clear();
      wait_for(state, seen, id, wait, reply, finish);
    });
  }
  const auto waiting = state->watches->make_wait([state, caller, id, finish](const std::optional<Result<JobInfo>>& info) {
    if (info) return finish(*info);
    inspector_for(state, caller)->find(id, [finish](const Result<JobInfo>& found) { finish(found); });
  });
  reply->on_gone([desk = std::weak_ptr<WatchDesk>(state->watches), gone = std::weak_ptr<WatchDesk::Wait>(waiting)] {
    const auto self = desk.lock();
    const auto who = gone.lock();
    if (self && who) self->give_up(who);
  });
  state->watches->wait(waiting, id, std::chrono::steady_clock::now() + wait);
}

void find(const State& state, const Request& request, Reply reply) {
  if (!has_inspector(state, reply) || !knows_parameters(request, reply, {"wait"})) return;
  const auto id = captured_id(request, reply);
  if (!id) return;
  const auto wait = wait_parameter(request, reply);
  if (!wait) return;
  const auto shared = share(std::move(reply));
  wait_for(state, request.caller, *id, *wait, shared, [state, shared](const Result<JobInfo>& info) {
    if (!info) return refuse(*shared, state->problem_of(info.error()));
    // A body that is not text is longer as base64.
    if (!shared->reserve((info->job.body.size() + info->result.size()) / 3 * 4)) {
      return refuse(*shared, state->problem_of({ErrorCode::kUnavailable, "too many answers are waiting to be read"}));
    }
    shared->send(json_response(200, wire::job_info_json(*info)));
  });
}

std::string result_json(const JobInfo& info) {
  std::string text;
  wire::JsonWriter out(text);
  out.begin_object().field("id", info.job.id).field("state", to_string(info.state));
  if (info.finished) out.field("finished", *info.finished);
  if (info.dead_reason) out.field("dead_reason", to_string(*info.dead_reason));
  if (info.state == JobState::kDead && !info.history.empty()) out.bytes("error", info.history.back().text);
  if (!info.result.empty()) {
    wire::write_content(out, "result", info.result, info.result_content_type);
    out.field("result_content_type", info.result_content_type);
  }
  out.end_object();
  return text;
}

void result(const State& state, const Request& request, Reply reply) {
  if (!has_inspector(state, reply) || !knows_parameters(request, reply, {"wait"})) return;
  const auto id = captured_id(request, reply);
  if (!id) return;
  const auto wait = wait_parameter(request, reply);
  if (!wait) return;
  const auto shared = share(std::move(reply));
  wait_for(state, request.caller, *id, *wait, shared, [state, shared](const Result<JobInfo>& info) {
    if (!info) return refuse(*shared, state->problem_of(info.error()));
    const bool finished = info->state == JobState::kDone || info->state == JobState::kDead;
    Response response = json_response(finished ? 200 : 202, result_json(*info));
    if (!finished) response.fields.emplace_back("Retry-After", "1");
    shared->send(std::move(response));
  });
}

void explain(const State& state, const Request& request, Reply reply) {
  if (!has_inspector(state, reply) || !knows_parameters(request, reply, {})) return;
  const auto id = captured_id(request, reply);
  if (!id) return;
  inspector_for(state, request.caller)->explain(
      *id, answer_with<Explanation>(state, share(std::move(reply)), [](const Explanation& explanation) {
        return wire::explanation_json(explanation);
      }));
}

void reschedule(const State& state, const Request& request, Reply reply) {
  if (!has_inspector(state, reply) || !knows_parameters(request, reply, {}) || !is_json_request(request, reply)) return;
  const auto id = captured_id(request, reply);
  if (!id) return;
  Time due;
  if (auto problem = wire::read_reschedule(request.body, state->now(), due)) return refuse(reply, *problem);
  inspector_for(state, request.caller)->reschedule(*id, due, answer_with<void>(state, share(std::move(reply)), [id = *id, due] {
    std::string text;
    wire::JsonWriter(text).begin_object().field("id", id).field("due", due).end_object();
    return text;
  }));
}

void cancel_one(const State& state, const Request& request, Reply reply) {
  if (!has_inspector(state, reply) || !knows_parameters(request, reply, {})) return;
  const auto id = captured_id(request, reply);
  if (!id) return;
  inspector_for(state, request.caller)->cancel(
      {*id}, {}, [state, id = *id, reply = share(std::move(reply))](const Result<std::vector<Status>>& statuses) {
        const Status status = !statuses ? Status(statuses.error()) : statuses->empty() ? Status() : statuses->front();
        if (!status) return refuse(*reply, state->problem_of(status.error()));
        state->cancelled.add(id);
        std::string text;
        wire::JsonWriter(text).begin_object().field("id", id).field("cancelled", true).end_object();
        reply->send(json_response(200, std::move(text)));
      });
}

void cancel_many(const State& state, const Request& request, Reply reply) {
  if (!has_inspector(state, reply) || !knows_parameters(request, reply, {}) || !is_json_request(request, reply)) return;
  std::vector<JobId> ids;
  CancelOptions options;
  if (auto problem = wire::read_cancel(request.body, ids, options)) return refuse(reply, *problem);
  std::vector<JobId> given = ids;
  inspector_for(state, request.caller)->cancel(std::move(given), options, [state, ids = std::move(ids), reply = share(std::move(reply))](
                                                 const Result<std::vector<Status>>& statuses) {
    if (!statuses) return refuse(*reply, state->problem_of(statuses.error()));
    for (std::size_t i = 0; i < ids.size() && i < statuses->size(); ++i) {
      if ((*statuses)[i]) state->cancelled.add(ids[i]);
    }
    reply->send(json_response(200, wire::id_results_json(ids, *statuses)));
  });
}

}  // namespace

void add_job_routes(const State& state, Routes& routes) {
  const auto add = [&](Method method, std::string_view pattern, Scope scope, std::string_view summary, auto handler) {
    routes.push_back({method, pattern, scope, summary, [state, handler](Request request, Reply reply) {
                        handler(state, std::move(request), std::move(reply));
                      }, true});
    if (method == Method::kPost) routes.back().body_bytes = kListBody;
    if (method == Method::kPatch) routes.back().body_bytes = kSmallBody;
  };
  add(Method::kGet, "/v1/jobs", Scope::kRead, "List jobs that match a filter",
      [](const State& s, Request request, Reply reply) {
        list(s, std::move(request), std::move(reply), std::nullopt);
      });
  add(Method::kPost, "/v1/jobs/cancel", Scope::kWrite, "Cancel jobs by their ids", &cancel_many);
  add(Method::kGet, "/v1/jobs/{id}", Scope::kRead, "A job; with wait, once it is done or dead", &find);
  add(Method::kPatch, "/v1/jobs/{id}", Scope::kWrite, "Give a scheduled or ready job another due time", &reschedule);
  add(Method::kDelete, "/v1/jobs/{id}", Scope::kWrite, "Cancel a job", &cancel_one);
  add(Method::kGet, "/v1/jobs/{id}/explain", Scope::kRead, "The one reason why a job is not running", &explain);
  add(Method::kGet, "/v1/jobs/{id}/result", Scope::kRead, "What became of a job; with wait, once it is done or dead",
      &result);
  add(Method::kGet, "/v1/dead", Scope::kRead, "List dead jobs that match a filter",
      [](const State& s, Request request, Reply reply) {
        list(s, std::move(request), std::move(reply), JobState::kDead);
      });
}

}  // namespace bide::server
