// Flows: the jobs that share a flow's id, shown with what each waits for, cancelled and replayed together.

#include <utility>
#include <vector>

#include "server/api/api_state.h"
#include "server/api/bulk_operation.h"
#include "server/api/caller_inspector.h"
#include "wire/change_json.h"
#include "wire/flow_json.h"

namespace bide::server {

namespace {

constexpr std::size_t kPageOfFlow = 1'000;

wire::Problem no_such_flow(const JobId& id) {
  return wire::make_problem("not_found", "there is no job of a flow " + id.to_string() + "; they may be done and forgotten");
}

// A flow may go through several queues, and a caller who is restricted to some is to name one at a time.
std::vector<JobFilter> filters_for(const Identity& caller, const JobId& flow, const std::vector<std::vector<JobState>>& states) {
  std::vector<JobFilter> filters;
  for (const auto& some : states) {
    JobFilter filter{.states = some, .flow = flow, .bodies = false};
    filters.push_back(filter);
    for (std::size_t i = 0; i < caller.queues.size(); ++i) {
      if (i > 0) filters.push_back(filter);
      filters.back().queue = caller.queues[i];
    }
  }
  return filters;
}

// Reads a flow page by page.
class FlowScan : public std::enable_shared_from_this<FlowScan> {
 public:
  FlowScan(State state, const Identity& caller, const JobId& flow, Reply reply)
      : state_(std::move(state)),
        inspector_(inspector_for(state_, caller)),
        flow_(flow),
        filters_(filters_for(caller, flow, {{}})),
        reply_(std::move(reply)) {}

  void next_page() {
    inspector_->list(filters_[at_], std::exchange(cursor_, {}), kPageOfFlow,
                     [self = shared_from_this()](Result<JobPage> page) {
                       if (!page) return refuse(self->reply_, self->state_->problem_of(page.error()));
                       self->on_page(std::move(*page));
                     });
  }

 private:
  void on_page(JobPage page) {
    std::move(page.jobs.begin(), page.jobs.end(), std::back_inserter(jobs_));
    cursor_ = std::move(page.next);
    const bool over = cursor_.empty() && ++at_ == filters_.size();
    if (!over && jobs_.size() < wire::kMostFlowJobs) return next_page();
    if (jobs_.empty()) return refuse(reply_, no_such_flow(flow_));
    reply_.send(json_response(200, wire::flow_json(wire::flow_of(flow_, jobs_, over))));
  }

  const State state_;
  const std::shared_ptr<Inspector> inspector_;
  const JobId flow_;
  const std::vector<JobFilter> filters_;
  Reply reply_;
  std::size_t at_ = 0;
  std::string cursor_;
  std::vector<JobInfo> jobs_;
};

void show(const State& state, const Request& request, Reply reply) {
  const auto id = captured_id(request, reply);
  if (!id) return;
  std::make_shared<FlowScan>(state, request.caller, *id, std::move(reply))->next_page();
}

void cancel(const State& state, const Request& request, Reply reply) {
  const auto id = captured_id(request, reply);
  if (!id) return;
  wire::ChangeRequest wanted;
  if (auto problem = wire::read_flow_cancel(request.body, wanted)) return refuse(reply, *problem);
  const auto inspector = inspector_for(state, request.caller);
  // Those that wait first: none of them may begin because another is gone.
  auto filters = filters_for(request.caller, *id,
                             {{JobState::kWaiting}, {JobState::kScheduled, JobState::kReady}, {JobState::kRunning}});
  apply_to_each(state, inspector, std::move(reply), std::move(filters), wanted.choice,
                [state, inspector](std::vector<JobId> ids, Completion<std::vector<Status>> done) {
                  cancel_jobs(state, *inspector, std::move(ids), {}, std::move(done));
                });
}

void replay(const State& state, const Request& request, Reply reply) {
  const auto id = captured_id(request, reply);
  if (!id) return;
  wire::ChangeRequest wanted;
  if (auto problem = wire::read_flow_replay(request.body, wanted)) return refuse(reply, *problem);
  const auto inspector = inspector_for(state, request.caller);
  auto filters = filters_for(request.caller, *id, {{JobState::kDead}});
  // Replayed jobs that fail again meanwhile would never come to an end.
  for (JobFilter& filter : filters) filter.until = state->now();
  apply_to_each(state, inspector, std::move(reply), std::move(filters), wanted.choice,
                [inspector, options = wanted.replay](std::vector<JobId> ids, Completion<std::vector<Status>> done) {
                  inspector->replay(std::move(ids), options, std::move(done));
                });
}

}  // namespace

void add_flow_routes(const State& state, Routes& routes) {
  constexpr RouteChecks kInspector{.inspector = true};
  add_route(state, routes,
            {.pattern = "/v1/flows/{id}", .scope = Scope::kRead, .summary = "The jobs of a flow, and how far it is",
             .keeps_to_queues = true, .operation = {.id = "getFlow", .answers = {{200, "Flow"}}}},
            &show, kInspector);
  add_route(state, routes,
            {.method = Method::kPost, .pattern = "/v1/flows/{id}/cancel", .scope = Scope::kWrite,
             .summary = "Cancel what has not ended of a flow", .keeps_to_queues = true, .body_bytes = kSmallBody,
             .operation = {.id = "cancelFlow", .request = "FlowCancel", .answers = {{200, "SweepResult"}}}},
            &cancel, kInspector);
  add_route(state, routes,
            {.method = Method::kPost, .pattern = "/v1/flows/{id}/replay", .scope = Scope::kAdmin,
             .summary = "Put the dead jobs of a flow back, so that it goes on", .keeps_to_queues = true,
             .body_bytes = kSmallBody,
             .operation = {.id = "replayFlow", .request = "FlowReplay", .answers = {{200, "SweepResult"}}}},
            &replay, kInspector);
}

}  // namespace bide::server
