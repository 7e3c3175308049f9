// POST /v1/leases, /v1/leases/extend, /v1/leases/save and /v1/leases/leave.

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
void extend_visible(const State& state, std::vector<LeaseRef> leases, const std::vector<bool>& visible,
                    SharedReply reply) {
  std::vector<LeaseRef> given;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    if (visible[i]) given.push_back(leases[i]);
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
  std::vector<LeaseRef> leases;
  if (auto problem = wire::read_extend_request(request.body, leases)) return refuse(reply, *problem);
  for (const LeaseRef& lease : leases) {
    if (auto problem = find_foreign_lease(request, lease)) return refuse(reply, *problem);
  }
  const auto shared = share(std::move(reply));
  const std::size_t count = leases.size();
  if (!request.caller.is_restricted()) {
    return extend_visible(state, std::move(leases), std::vector<bool>(count, true), shared);
  }
  find_visible(state, request.caller, leases, [state, leases, shared](const std::vector<bool>& visible) {
    extend_visible(state, leases, visible, shared);
  });
}

void save_visible(const State& state, wire::SaveRequest saved, const SharedReply& reply) {
  const LeaseRef lease = saved.lease;
  state->broker.save_body(lease, std::move(saved.body), [state, reply](const Status& status) {
    if (!status) return refuse(*reply, state->problem_of(status.error()));
    reply->send(json_response(200, "{}"));
  });
}

void save(const State& state, const Request& request, Reply reply) {
  wire::SaveRequest saved;
  if (auto problem = wire::read_save_request(request.body, saved)) return refuse(reply, *problem);
  if (auto problem = find_foreign_lease(request, saved.lease)) return refuse(reply, *problem);
  const auto shared = share(std::move(reply));
  if (!request.caller.is_restricted()) return save_visible(state, std::move(saved), shared);
  find_visible(state, request.caller, {saved.lease}, [state, saved, shared](const std::vector<bool>& visible) {
    if (visible[0]) return save_visible(state, saved, shared);
    refuse(*shared, wire::make_problem("not_found", "there is no job " + saved.lease.id.to_string()));
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
}

}  // namespace bide::server
