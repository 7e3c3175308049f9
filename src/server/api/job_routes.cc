// Jobs: listing, showing, waiting for, cancelling and changing them.

#include <utility>

#include "core/broker_answers.h"
#include "core/quote.h"
#include "core/text.h"
#include "server/api/api_state.h"
#include "server/api/bulk_operation.h"
#include "server/api/caller_inspector.h"
#include "server/http/digest.h"
#include "wire/change_json.h"
#include "wire/edit_json.h"
#include "wire/filter_query.h"
#include "wire/info_json.h"
#include "wire/job_json.h"

namespace bide::server {

namespace {

// --- Cursors as clients see them: the broker's cursor, and a checksum of it and of the filter it belongs to. One that
// was changed, or is used with another filter, is refused.

std::string cursor_checksum(std::string_view cursor, JobFilter filter) {
  filter.bodies = false;  // Pages with and without bodies are of the same list.
  const std::string query = wire::list_query({.filter = std::move(filter), .cursor = {}, .limit = 0});
  return core::to_hex(sha256("bide cursor\n" + query + "\n" + std::string(cursor)).substr(0, 8));
}

std::string sealed_cursor(std::string_view cursor, const JobFilter& filter) {
  if (cursor.empty()) return {};
  std::string text = core::to_base64(cursor);
  // As base64url: nothing in it needs to be escaped in a URL.
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  while (text.ends_with('=')) text.pop_back();
  return text + "." + cursor_checksum(cursor, filter);
}

// Nothing when it was not sealed for this filter.
std::optional<std::string> opened_cursor(std::string_view sealed, const JobFilter& filter) {
  const std::size_t dot = sealed.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  std::string text(sealed.substr(0, dot));
  for (char& c : text) c = c == '-' ? '+' : c == '_' ? '/' : c;
  while (text.size() % 4 != 0) text += '=';
  const auto cursor = core::from_base64(text);
  if (!cursor || sealed.substr(dot + 1) != cursor_checksum(*cursor, filter)) return std::nullopt;
  return cursor;
}

// --- Routes.

// Drops a read that waits for its turn when its client disconnects.
void drop_read_when_gone(const State& state, const Identity& caller, const SharedReply& reply) {
  Identity who;
  who.name = caller.name;
  who.connection = caller.connection;
  reply->on_gone([reads = std::weak_ptr<ReadScheduler>(state->reads), who = std::move(who)] {
    if (const auto self = reads.lock()) self->drop(who);
  });
}

void list(const State& state, const Request& request, Reply reply, std::optional<JobState> only) {
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
  drop_read_when_gone(state, request.caller, shared);
  auto done = answer_with<JobPage>(state, shared, [filter = wanted.filter](JobPage& page) {
    page.next = sealed_cursor(page.next, filter);
    return wire::job_page_json(page);
  });
  inspector_for(state, request.caller)->list(wanted.filter, std::move(cursor), wanted.limit, std::move(done));
}

// Calls `finish` with the job when it is done or dead, or as it is when the time is up.
void wait_for(const State& state, const Identity& caller, const JobId& id, Milliseconds wait, const SharedReply& reply,
              Completion<JobInfo> finish) {
  if (wait.count() == 0) {
    drop_read_when_gone(state, caller, reply);
    return inspector_for(state, caller)->find(id, std::move(finish));
  }
  if (caller.is_restricted()) {
    return inspector_for(state, caller)->find(id, [=](const Result<JobInfo>& info) {
      if (!info) return finish(info.error());
      Identity seen = caller;  // The job is in one of its queues.
      seen.queues.clear();
      wait_for(state, seen, id, wait, reply, finish);
    });
  }
  const auto waiter = state->waiters->make_waiter([=](std::optional<Result<JobInfo>> info) {
    if (info) return finish(std::move(*info));
    inspector_for(state, caller)->find(id, finish);
  });
  reply->on_gone([waiters = std::weak_ptr(state->waiters), gone = std::weak_ptr(waiter)] {
    const auto self = waiters.lock();
    const auto who = gone.lock();
    if (self && who) self->cancel(who);
  });
  state->waiters->wait(waiter, id, std::chrono::steady_clock::now() + wait);
}

// Answers with what `respond` makes of the job in the path, after ?wait.
template <class Respond>
void answer_job(const State& state, const Request& request, Reply reply, Respond respond) {
  const auto id = captured_id(request, reply);
  if (!id) return;
  const auto wait = wait_parameter(request, reply);
  if (!wait) return;
  const auto shared = share(std::move(reply));
  wait_for(state, request.caller, *id, *wait, shared, [state, shared, respond](const Result<JobInfo>& info) {
    if (!info) return refuse(*shared, state->problem_of(info.error()));
    respond(*state, *shared, *info);
  });
}

void find(const State& state, const Request& request, Reply reply) {
  answer_job(state, request, std::move(reply), [](ApiState& s, Reply& to, const JobInfo& info) {
    // Base64 is a third longer.
    if (!to.reserve((info.job.body.size() + info.result.size()) / 3 * 4)) {
      return refuse(to, s.problem_of({ErrorCode::kUnavailable, "too many answers are waiting to be read"}));
    }
    to.send(json_response(200, wire::job_info_json(info)));
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
  answer_job(state, request, std::move(reply), [](ApiState&, Reply& to, const JobInfo& info) {
    const bool finished = info.state == JobState::kDone || info.state == JobState::kDead;
    Response response = json_response(finished ? 200 : 202, result_json(info));
    if (!finished) response.fields.emplace_back("Retry-After", "1");
    to.send(std::move(response));
  });
}

void explain(const State& state, const Request& request, Reply reply) {
  const auto id = captured_id(request, reply);
  if (!id) return;
  inspector_for(state, request.caller)
      ->explain(*id, answer_with<Explanation>(state, share(std::move(reply)), &wire::explanation_json));
}

// A queue, or a callback, that the caller could not give a new job either.
std::optional<wire::Problem> find_edit_problem(const State& state, const Identity& caller, const JobEdit& edit) {
  Job job = wire::edited(edit);
  if (!edit.queue && caller.is_restricted()) job.queue = caller.queues.front();
  if (auto problem = find_queue_problem(caller, job)) return problem;
  return edit.headers && state->options.find_callback_problem ? state->options.find_callback_problem(job) : std::nullopt;
}

void edit(const State& state, const Request& request, Reply reply) {
  const auto id = captured_id(request, reply);
  if (!id) return;
  JobEdit changes;
  if (auto problem = wire::read_edit(request.body, state->now(), changes)) return refuse(reply, *problem);
  if (auto problem = find_edit_problem(state, request.caller, changes)) return refuse(reply, *problem);
  auto done = answer_with<void>(state, share(std::move(reply)), [id = *id, due = changes.due] {
    std::string text;
    wire::JsonWriter out(text);
    out.begin_object().field("id", id);
    if (due) out.field("due", *due);
    out.end_object();
    return text;
  });
  const auto inspector = inspector_for(state, request.caller);
  if (wire::is_reschedule(changes)) return inspector->reschedule(*id, *changes.due, std::move(done));
  inspector->edit(*id, std::move(changes), std::move(done));
}

void cancel_one(const State& state, const Request& request, Reply reply) {
  const auto id = captured_id(request, reply);
  if (!id) return;
  inspector_for(state, request.caller)->cancel(
      {*id}, {}, [state, id = *id, reply = share(std::move(reply))](const Result<std::vector<Status>>& statuses) {
        const Status status = core::status_at(statuses, 0);
        if (!status) return refuse(*reply, state->problem_of(status.error()));
        state->add_cancelled(id);
        std::string text;
        wire::JsonWriter(text).begin_object().field("id", id).field("cancelled", true).end_object();
        reply->send(json_response(200, std::move(text)));
      });
}

// What matches a filter that names no state is what waits: a running attempt, or a dead job, is meant only when that is said.
void cancel_many(const State& state, const Request& request, Reply reply) {
  wire::ChangeRequest wanted;
  if (auto problem = wire::read_cancel(request.body, wanted)) return refuse(reply, *problem);
  if (auto& filter = wanted.choice.filter) {
    if (wanted.cancel.state) filter->states = {*wanted.cancel.state};
    if (filter->states.empty()) filter->states = {JobState::kScheduled, JobState::kReady, JobState::kWaiting};
  }
  const auto inspector = inspector_for(state, request.caller);
  apply_to(state, inspector, std::move(reply), std::move(wanted.choice),
           [state, inspector, options = wanted.cancel](std::vector<JobId> ids, Completion<std::vector<Status>> done) {
             cancel_jobs(state, *inspector, std::move(ids), options, std::move(done));
           });
}

}  // namespace

void add_job_routes(const State& state, Routes& routes) {
  constexpr RouteChecks kInspector{.inspector = true};
  constexpr RouteChecks kList{.inspector = true, .query = false};  // wire::read_list_query() checks it.
  const std::vector<std::string_view> filter = {"state", "queue", "kind",   "group", "flow",  "header.NAME",
                                                "error", "since", "until", "cursor", "limit", "bodies"};
  add_route(state, routes,
            {.pattern = "/v1/jobs", .scope = Scope::kRead, .summary = "List jobs that match a filter",
             .keeps_to_queues = true,
             .operation = {.id = "listJobs", .answers = {{200, "JobPage"}}, .query = filter}},
            [](const State& s, const Request& request, Reply reply) {
              list(s, request, std::move(reply), std::nullopt);
            },
            kList);
  add_route(
      state, routes,
      {.pattern = "/v1/dead",
       .scope = Scope::kRead,
       .summary = "List dead jobs that match a filter",
       .keeps_to_queues = true,
       .operation = {.id = "listDeadJobs", .answers = {{200, "JobPage"}}, .query = {filter.begin() + 1, filter.end()}}},
      [](const State& s, const Request& request, Reply reply) { list(s, request, std::move(reply), JobState::kDead); },
      kList);
  add_route(state, routes,
            {.method = Method::kPost, .pattern = "/v1/jobs/cancel", .scope = Scope::kWrite,
             .summary = "Cancel jobs by their ids, or those that match a filter", .keeps_to_queues = true, .body_bytes = kListBody,
             .operation = {.id = "cancelJobs", .request = "Cancel", .answers = {{200, "ChoiceAnswer"}}}},
            &cancel_many, kInspector);
  add_route(state, routes,
            {.pattern = "/v1/jobs/{id}", .scope = Scope::kRead, .summary = "A job; with wait, once it is done or dead",
             .keeps_to_queues = true,
             .operation = {.id = "getJob", .answers = {{200, "JobInfo"}}, .query = {"wait"}}},
            &find, kInspector);
  add_route(state, routes,
            {.method = Method::kPatch, .pattern = "/v1/jobs/{id}", .scope = Scope::kWrite,
             .summary = "Change a job that waits, or is dead", .keeps_to_queues = true,
             .operation = {.id = "editJob", .request = "JobEdit", .answers = {{200, "Edited"}}}},
            &edit, kInspector);
  add_route(state, routes,
            {.method = Method::kDelete, .pattern = "/v1/jobs/{id}", .scope = Scope::kWrite, .summary = "Cancel a job",
             .keeps_to_queues = true, .operation = {.id = "cancelJob", .answers = {{200, "Cancelled"}}}},
            &cancel_one, kInspector);
  add_route(state, routes,
            {.pattern = "/v1/jobs/{id}/explain", .scope = Scope::kRead,
             .summary = "The one reason why a job is not running", .keeps_to_queues = true,
             .operation = {.id = "explainJob", .answers = {{200, "Explanation"}}}},
            &explain, kInspector);
  add_route(state, routes,
            {.pattern = "/v1/jobs/{id}/result", .scope = Scope::kRead,
             .summary = "What became of a job; with wait, once it is done or dead", .keeps_to_queues = true,
             .operation = {.id = "getResult", .answers = {{200, "JobResult"}, {202, "JobResult"}}, .query = {"wait"}}},
            &result, kInspector);
}

}  // namespace bide::server
