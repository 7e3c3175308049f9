// ApiState: what the routes share, and the checks and answers that they have in common. One for each server, alive as
// long as a request may be under way.

#pragma once

#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/drain_rate.h"
#include "core/job_ids.h"
#include "platform/random.h"
#include "platform/timer_thread.h"
#include "rpc/requester.h"
#include "server/api/api.h"
#include "server/api/event_hub.h"
#include "server/api/idempotency.h"
#include "server/api/lease_dispatcher.h"
#include "server/api/read_scheduler.h"
#include "server/api/recent_map.h"
#include "server/api/result_waiters.h"
#include "server/http/response.h"
#include "server/http/route.h"

namespace bide::server {

struct ApiState {
  explicit ApiState(ApiOptions given);
  ~ApiState();

  Time now() const;
  std::uint64_t random();
  JobId next_id();
  // With Retry-After where the broker is overloaded or unavailable.
  wire::Problem problem_of(const Error& error, std::uint64_t jobs = 1);

  // Jobs that were cancelled lately, to say so to a worker that settles one.
  void add_cancelled(const JobId& id);
  bool was_cancelled(const JobId& id) const;

  const ApiOptions options;
  Broker& broker;
  Inspector* const inspector;

  core::DrainRate drain_rate;
  IdempotencyTable idempotency;
  const std::shared_ptr<EventHub> events;
  const std::shared_ptr<LeaseDispatcher> leases;
  const std::shared_ptr<ResultWaiters> waiters;  // Null without an inspector.
  const std::shared_ptr<ReadScheduler> reads;    // Likewise.
  const std::unique_ptr<rpc::Requester> requests;

  void stop();

 private:
  void wake();
  void wake_subscriber();

  mutable std::mutex mutex_;  // Guards the three below.
  platform::SystemRandom random_;
  core::JobIdSource ids_;
  RecentMap<JobId, bool> cancelled_;

  std::mutex timer_mutex_;
  // Last: they use all of the above. Null once stopped.
  std::unique_ptr<platform::TimerThread> subscriber_;  // Opens and closes subscriptions.
  std::unique_ptr<platform::TimerThread> timer_;
};

using State = std::shared_ptr<ApiState>;

// --- Answers.

inline Response json_response(int status, std::string body) {
  return {.status = status, .content_type = "application/json", .body = std::move(body), .fields = {}};
}

inline void refuse(Reply& reply, const wire::Problem& problem) { reply.send(to_response(problem)); }

// For completions: std::function must be copyable, a Reply is not.
using SharedReply = std::shared_ptr<Reply>;
inline SharedReply share(Reply reply) { return std::make_shared<Reply>(std::move(reply)); }

// A completion that answers 200 with `json` of the result, or with the problem of its error.
template <class T, class Json>
Completion<T> answer_with(const State& state, SharedReply reply, Json json) {
  return [state, reply = std::move(reply), json = std::move(json)](Result<T> result) {
    if (!result) return refuse(*reply, state->problem_of(result.error()));
    if constexpr (std::is_void_v<T>) {
      reply->send(json_response(200, json()));
    } else {
      reply->send(json_response(200, json(*result)));
    }
  };
}

// --- Checks. Each answers with the problem when it returns nothing or false.

std::optional<JobId> captured_id(const Request& request, Reply& reply);
// ?wait=30s; zero when it is not there.
std::optional<Milliseconds> wait_parameter(const Request& request, Reply& reply);
// For a caller with the credential of one lease: this is another one.
std::optional<wire::Problem> find_foreign_lease(const Request& request, const LeaseRef& lease);

struct RouteChecks {
  bool inspector = false;  // 501 without one.
  bool query = true;       // 400 for parameters that the operation does not name.
};
bool passes(const State& state, const Operation& operation, RouteChecks checks, const Request& request, Reply& reply);

// Adds a route. Its handler runs when the checks pass, and the body is JSON where the operation has a request schema.
template <class Handler>
void add_route(const State& state, Routes& routes, Route route, Handler handler, RouteChecks checks = {}) {
  route.answer = [state, operation = route.operation, checks, handler](Request request, Reply reply) {
    if (passes(state, operation, checks, request, reply)) handler(state, std::move(request), std::move(reply));
  };
  routes.push_back(std::move(route));
}

void add_enqueue_route(const State& state, Routes& routes);
void add_job_routes(const State& state, Routes& routes);
void add_lease_routes(const State& state, Routes& routes);
void add_settle_route(const State& state, Routes& routes);
void add_broker_routes(const State& state, Routes& routes);
void add_backup_routes(const State& state, Routes& routes);
void add_publish_routes(const State& state, Routes& routes);
void add_dead_routes(const State& state, Routes& routes);
void add_dead_group_routes(const State& state, Routes& routes);
void add_flow_routes(const State& state, Routes& routes);
void add_rules_routes(const State& state, Routes& routes);
void add_schedule_routes(const State& state, Routes& routes);
void add_request_route(const State& state, Routes& routes);
// GET /v1/openapi.json, which describes the routes that are there.
void add_openapi_route(Routes& routes, std::string_view version);

}  // namespace bide::server
