// POST /v1/leases, and what belongs to leases that are out: extend, save, steps and leave.

#include <chrono>
#include <utility>

#include "server/api/api_state.h"
#include "server/api/caller_inspector.h"
#include "wire/lease_json.h"

namespace bide::server {

namespace {

void publish_leased(const State& state, const std::vector<Lease>& leases) {
  std::vector<JobEvent> events;
  for (const Lease& lease : leases) {
    events.push_back({.type = "job.leased",
                      .id = lease.job.id,
                      .kind = lease.job.kind,
                      .queue = lease.job.queue,
                      .more = ",\"attempt\":" + std::to_string(lease.attempt)});
  }
  state->events->publish(events);
}

// Returns leases at once whose answer was not written.
std::shared_ptr<Receipt> receipt_for(const std::shared_ptr<LeaseDispatcher>& dispatcher,
                                     const std::vector<Lease>& leases) {
  const auto refs = std::make_shared<std::vector<LeaseRef>>();
  refs->reserve(leases.size());
  for (const Lease& lease : leases) refs->push_back({lease.job.id, lease.token});
  const auto call = [weak = std::weak_ptr(dispatcher), refs](auto member) {
    return [weak, refs, member] {
      if (const auto self = weak.lock()) ((*self).*member)(*refs);
    };
  };
  return std::make_shared<Receipt>(call(&LeaseDispatcher::answer_written), call(&LeaseDispatcher::answer_lost));
}

// Names of pollers are unique for each token.
std::string own_poller(const Request& request, const std::string& name) {
  return name.empty() ? name : request.caller.name + "\n" + name;
}

void lease(const State& state, const Request& request, Reply reply) {
  wire::LeaseRequest wanted;
  if (auto problem = wire::read_lease_request(request.body, wanted)) return refuse(reply, *problem);
  for (const QueueShare& share : wanted.queues) {
    if (auto problem = find_queue_problem(request.caller, share.name)) return refuse(reply, *problem);
  }
  if (!wanted.kinds.empty() && !state->broker.capabilities().kinds) {
    return refuse(reply, wire::make_problem("unsupported", "kinds: this broker hands out the jobs of a queue whatever their kind; "
                                                           "give back what you have no handler for", "kinds"));
  }
  wanted.poller = own_poller(request, wanted.poller);
  const auto shared = share(std::move(reply));
  const Moment begun = std::chrono::steady_clock::now();
  const auto poll = state->leases->make_poll([state, shared, begun](const Result<std::vector<Lease>>& leases) {
    if (!leases) return refuse(*shared, state->problem_of(leases.error()));
    if (!leases->empty() && state->events->active()) publish_leased(state, *leases);
    const auto held = std::chrono::floor<Milliseconds>(std::chrono::steady_clock::now() - begun);
    Response response = json_response(200, wire::leases_json(*leases, Milliseconds(0), held));
    if (!leases->empty()) response.receipt = receipt_for(state->leases, *leases);
    shared->send(std::move(response));
  });
  shared->on_gone([leases = std::weak_ptr(state->leases), gone = std::weak_ptr(poll)] {
    const auto self = leases.lock();
    const auto who = gone.lock();
    if (self && who) self->cancel(who);
  });
  state->leases->start(poll, std::move(wanted));
}

void leave(const State& state, const Request& request, Reply reply) {
  std::string poller;
  if (auto problem = wire::read_leave_request(request.body, poller)) return refuse(reply, *problem);
  state->leases->leave(own_poller(request, poller),
                       [reply = share(std::move(reply))] { reply->send(json_response(200, "{}")); });
}

// Leases in queues that the caller may not see are answered as lost.
void extend_visible(const State& state, std::vector<wire::Extension> extensions, const std::vector<bool>& visible,
                    SharedReply reply) {
  std::vector<LeaseRef> leases;
  std::vector<LeaseRef> given;
  for (std::size_t i = 0; i < extensions.size(); ++i) {
    leases.push_back(extensions[i].lease);
    if (!visible[i]) continue;
    given.push_back(extensions[i].lease);
    if (extensions[i].progress) state->broker.report_progress(given.back(), std::move(*extensions[i].progress));
  }
  std::vector<LeaseRef> sent = given;
  state->broker.extend(std::move(sent), [state, leases = std::move(leases), visible, given = std::move(given),
                                         reply = std::move(reply)](const Result<std::vector<Extended>>& answers) {
    if (!answers) return refuse(*reply, state->problem_of(answers.error()));
    state->leases->registry().extended(given, *answers, std::chrono::steady_clock::now());
    std::vector<Extended> all(leases.size(), Extended{.lost = true});
    std::size_t next = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (visible[i] && next < answers->size()) all[i] = (*answers)[next++];
    }
    reply->send(json_response(200, wire::extended_json(leases, all)));
  });
}

void extend(const State& state, const Request& request, Reply reply) {
  std::vector<wire::Extension> extensions;
  if (auto problem = wire::read_extend_request(request.body, extensions)) return refuse(reply, *problem);
  std::vector<LeaseRef> leases;
  for (const wire::Extension& extension : extensions) {
    if (auto problem = find_foreign_lease(request, extension.lease)) return refuse(reply, *problem);
    leases.push_back(extension.lease);
  }
  const auto shared = share(std::move(reply));
  if (!request.caller.is_restricted()) {
    return extend_visible(state, std::move(extensions), std::vector<bool>(leases.size(), true), shared);
  }
  find_visible(state, request.caller, leases, [state, extensions, shared](const std::vector<bool>& visible) {
    extend_visible(state, extensions, visible, shared);
  });
}

// Calls `act` when the caller may see the job of the lease.
template <class Act>
void with_visible_lease(const State& state, const Request& request, const LeaseRef& lease, Reply reply, Act act) {
  if (auto problem = find_foreign_lease(request, lease)) return refuse(reply, *problem);
  const auto shared = share(std::move(reply));
  if (!request.caller.is_restricted()) return act(shared);
  find_visible(state, request.caller, {lease}, [id = lease.id, shared, act](const std::vector<bool>& visible) {
    if (visible[0]) return act(shared);
    refuse(*shared, wire::make_problem("not_found", "there is no job " + id.to_string()));
  });
}

Completion<void> answer_saved(const State& state, const SharedReply& reply) {
  return answer_with<void>(state, reply, [] { return std::string("{}"); });
}

void save(const State& state, const Request& request, Reply reply) {
  wire::SaveRequest saved;
  if (auto problem = wire::read_save_request(request.body, saved)) return refuse(reply, *problem);
  const LeaseRef lease = saved.lease;
  const auto body = std::make_shared<std::string>(std::move(saved.body));
  with_visible_lease(state, request, lease, std::move(reply), [state, lease, body](const SharedReply& shared) {
    state->broker.save_body(lease, std::move(*body), answer_saved(state, shared));
  });
}

void save_step(const State& state, const Request& request, Reply reply) {
  wire::StepRequest saved;
  if (auto problem = wire::read_step_request(request.body, saved)) return refuse(reply, *problem);
  with_visible_lease(state, request, saved.lease, std::move(reply), [state, saved](const SharedReply& shared) {
    state->broker.save_step(saved.lease, saved.step, answer_saved(state, shared));
  });
}

}  // namespace

void add_lease_routes(const State& state, Routes& routes) {
  add_route(state, routes,
            {.method = Method::kPost, .pattern = "/v1/leases", .scope = Scope::kWork,
             .summary = "Lease jobs to work on, waiting for them if asked to", .keeps_to_queues = true,
             .body_bytes = kSmallBody, .only_waits = true,
             .operation = {.id = "leaseJobs", .request = "LeaseRequest", .answers = {{200, "Leases"}}}},
            &lease);
  add_route(state, routes,
            {.method = Method::kPost, .pattern = "/v1/leases/leave", .scope = Scope::kWork,
             .summary = "Say that a poller wants no more jobs", .keeps_to_queues = true, .body_bytes = kSmallBody,
             .operation = {.id = "leaveLeases", .request = "LeaveRequest", .answers = {{200, "Left"}}}},
            &leave);
  add_route(state, routes,
            {.method = Method::kPost, .pattern = "/v1/leases/extend", .scope = Scope::kSettle,
             .summary = "Keep leases alive", .keeps_to_queues = true, .body_bytes = kListBody,
             .operation = {.id = "extendLeases", .request = "ExtendRequest", .answers = {{200, "Extended"}}}},
            &extend);
  add_route(state, routes,
            {.method = Method::kPost, .pattern = "/v1/leases/save", .scope = Scope::kSettle,
             .summary = "Replace the body of a job that is being run, for its next attempt", .keeps_to_queues = true,
             .operation = {.id = "saveBody", .request = "SaveRequest", .answers = {{200, "Saved"}}}},
            &save);
  add_route(state, routes,
            {.method = Method::kPost, .pattern = "/v1/leases/steps", .scope = Scope::kSettle,
             .summary = "Keep what a step of an attempt came to, for later attempts", .keeps_to_queues = true,
             .operation = {.id = "saveStep", .request = "StepRequest", .answers = {{200, "Saved"}}}},
            &save_step);
}

}  // namespace bide::server
