// The dead set: replaying and deleting, by id or by filter.

#include <utility>

#include "server/api/api_state.h"
#include "server/api/bulk_operation.h"
#include "server/api/caller_inspector.h"
#include "wire/change_json.h"

namespace bide::server {

namespace {

// Without jobs that die meanwhile: replayed jobs that fail again would never come to an end.
void keep_to_dead(const State& state, wire::Choice& choice) {
  if (!choice.filter) return;
  choice.filter->states = {JobState::kDead};
  if (!choice.filter->until) choice.filter->until = state->now();
}

void replay(const State& state, const Request& request, Reply reply) {
  wire::ChangeRequest wanted;
  if (auto problem = wire::read_replay(request.body, wanted)) return refuse(reply, *problem);
  keep_to_dead(state, wanted.choice);
  const auto inspector = inspector_for(state, request.caller);
  apply_to(state, inspector, std::move(reply), std::move(wanted.choice),
           [inspector, options = wanted.replay](std::vector<JobId> ids, Completion<std::vector<Status>> done) {
             inspector->replay(std::move(ids), options, std::move(done));
           });
}

void remove(const State& state, const Request& request, Reply reply) {
  wire::Choice choice;
  if (auto problem = wire::read_choice(request.body, choice)) return refuse(reply, *problem);
  keep_to_dead(state, choice);
  const auto inspector = inspector_for(state, request.caller);
  apply_to(state, inspector, std::move(reply), std::move(choice),
           [inspector](std::vector<JobId> ids, Completion<std::vector<Status>> done) {
             // Only while dead: a job that was replayed meanwhile must not be cancelled.
             inspector->cancel(std::move(ids), {.state = JobState::kDead}, std::move(done));
           });
}

}  // namespace

void add_dead_routes(const State& state, Routes& routes) {
  add_route(state, routes,
            {.method = Method::kPost, .pattern = "/v1/dead/replay", .scope = Scope::kAdmin,
             .summary = "Put dead jobs back to be run again", .keeps_to_queues = true, .body_bytes = kListBody,
             .operation = {.id = "replayDeadJobs", .request = "Replay", .answers = {{200, "ChoiceAnswer"}}}},
            &replay, {.inspector = true});
  add_route(state, routes,
            {.method = Method::kPost, .pattern = "/v1/dead/delete", .scope = Scope::kAdmin,
             .summary = "Delete dead jobs", .keeps_to_queues = true, .body_bytes = kListBody,
             .operation = {.id = "deleteDeadJobs", .request = "Choice", .answers = {{200, "ChoiceAnswer"}}}},
            &remove, {.inspector = true});
}

}  // namespace bide::server
