#include "server/api/api.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "core/did_you_mean.h"
#include "core/duration.h"
#include "core/quote.h"
#include "server/api/api_state.h"
#include "wire/batch_json.h"

namespace bide::server {

namespace {

constexpr std::size_t kCancelledJobs = 10'000;

bool knows_parameters(const Operation& operation, const Request& request, Reply& reply) {
  const auto& known = operation.query;
  for (const auto& [name, value] : request.query) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    refuse(reply,
           wire::make_problem("unknown_parameter",
                              "unknown parameter " + core::quoted(name) + core::did_you_mean(name, known), name));
    return false;
  }
  return true;
}

// An empty body needs no type.
bool is_json_request(const Request& request, Reply& reply) {
  constexpr std::string_view kSuffix = "+json";
  const std::string_view type = request.media_type();
  const std::string_view end = type.substr(type.size() - std::min(type.size(), kSuffix.size()));
  if (is_same_text(type, "application/json") || is_same_text(end, kSuffix)) return true;
  if (type.empty() && request.body.empty()) return true;
  refuse(reply,
         wire::make_problem("unsupported_media_type",
                            (type.empty() ? "the body has no Content-Type"
                                          : "the content type " + core::quoted(type) + " is not understood here") +
                                "; send application/json (curl --json does, curl -d does not)"));
  return false;
}

}  // namespace

ApiState::ApiState(ApiOptions given)
    : options(std::move(given)),
      broker(*options.broker),
      inspector(options.inspector),
      events(std::make_shared<EventHub>(inspector, [this] { wake(); })),
      leases(std::make_shared<LeaseDispatcher>(
          broker,
          LeaseDispatcherOptions{.wake = [this] { wake(); }, .wake_subscriber = [this] { wake_subscriber(); }})),
      waiters(inspector == nullptr ? nullptr : std::make_shared<ResultWaiters>(*inspector, [this] { wake(); })),
      reads(inspector == nullptr ? nullptr : std::make_shared<ReadScheduler>(*inspector)),
      // The broker is not ours: it outlives this.
      requests(std::make_unique<rpc::Requester>(std::shared_ptr<Broker>(std::shared_ptr<void>(), &broker),
                                                std::shared_ptr<Inspector>(std::shared_ptr<void>(), inspector))),
      cancelled_(kCancelledJobs) {
  std::lock_guard lock(timer_mutex_);
  // On a thread of its own: subscribing may block for seconds while the broker is away.
  subscriber_ = std::make_unique<platform::TimerThread>([this](Moment) {
    leases->subscribe_pending();
    return std::optional<Moment>();
  });
  timer_ = std::make_unique<platform::TimerThread>([this](Moment now) {
    std::optional<Moment> next = leases->tick(now);
    const auto not_later = [&next](std::optional<Moment> other) {
      if (other) next = next ? std::min(*next, *other) : *other;
    };
    if (waiters) not_later(waiters->tick(now));
    not_later(events->tick(now));
    return next;
  });
}

ApiState::~ApiState() { stop(); }

void ApiState::wake() {
  std::lock_guard lock(timer_mutex_);
  if (timer_) timer_->wake();
}

void ApiState::wake_subscriber() {
  std::lock_guard lock(timer_mutex_);
  if (subscriber_) subscriber_->wake();
}

void ApiState::stop() {
  std::unique_ptr<platform::TimerThread> timer, subscriber;
  {
    std::lock_guard lock(timer_mutex_);
    timer = std::move(timer_);
    subscriber = std::move(subscriber_);
  }
  timer.reset();
  subscriber.reset();
  requests->close();
  leases->stop();
  if (waiters) waiters->stop();
  if (reads) reads->stop();
  events->stop();
}

Time ApiState::now() const {
  if (options.now) return options.now();
  return std::chrono::time_point_cast<Milliseconds>(std::chrono::system_clock::now());
}

std::uint64_t ApiState::random() {
  std::lock_guard lock(mutex_);
  return random_.next();
}

JobId ApiState::next_id() {
  const std::int64_t now_ms = now().time_since_epoch().count();
  std::lock_guard lock(mutex_);
  return ids_.next(now_ms, random_.next());
}

void ApiState::add_cancelled(const JobId& id) {
  std::lock_guard lock(mutex_);
  cancelled_.put(id, true);
}

bool ApiState::was_cancelled(const JobId& id) const {
  std::lock_guard lock(mutex_);
  return cancelled_.find(id) != nullptr;
}

wire::Problem ApiState::problem_of(const Error& error, std::uint64_t jobs) {
  wire::Problem problem = wire::problem_of(error);
  if (error.code == ErrorCode::kOverloaded || error.code == ErrorCode::kDiskFull ||
      error.code == ErrorCode::kUnavailable) {
    problem.retry_after = broker.pressure().retry_after;
  }
  if (error.code == ErrorCode::kOverloaded) {
    problem.retry_after =
        std::max(problem.retry_after, drain_rate.time_to_drain(jobs, std::chrono::steady_clock::now()));
  }
  if (problem.status == 503) problem.retry_after = std::max(problem.retry_after, Milliseconds(1000));
  return problem;
}

std::optional<JobId> captured_id(const Request& request, Reply& reply) {
  const auto found = request.captured.find("id");
  const auto id = JobId::parse(found == request.captured.end() ? std::string_view() : std::string_view(found->second));
  if (id) return *id;
  refuse(reply, wire::make_problem("not_found", "there is no such job: " + id.error().message));
  return std::nullopt;
}

bool passes(const State& state, const Operation& operation, RouteChecks checks, const Request& request, Reply& reply) {
  if (checks.inspector && state->inspector == nullptr) {
    refuse(reply, wire::make_problem("unsupported", "this broker cannot look around"));
    return false;
  }
  if (checks.query && !knows_parameters(operation, request, reply)) return false;
  if (operation.request.empty()) return true;
  if (operation.ndjson && is_same_text(request.media_type(), wire::kNdjsonContentType)) return true;
  return is_json_request(request, reply);
}

std::optional<Milliseconds> wait_parameter(const Request& request, Reply& reply) {
  const auto found = request.query.find("wait");
  if (found == request.query.end()) return Milliseconds(0);
  const auto wait = core::parse_duration(found->second);
  if (wait && *wait <= wire::kLongestWait) return *wait;
  refuse(reply, wire::make_problem("invalid_parameter",
                                   wait ? "wait: at most " + core::format_duration(wire::kLongestWait) + " is allowed"
                                        : "wait: " + wait.error().message,
                                   "wait"));
  return std::nullopt;
}

std::optional<wire::Problem> find_foreign_lease(const Request& request, const LeaseRef& lease) {
  const std::optional<LeaseRef>& own = request.caller.lease;
  if (!own || (own->id == lease.id && own->token == lease.token)) return std::nullopt;
  return wire::make_problem("forbidden", "this credential is for the lease of job " + own->id.to_string() + " only");
}

Api::Api(ApiOptions options) : state_(std::make_shared<ApiState>(std::move(options))) {}

Api::~Api() { stop(); }

void Api::stop() { state_->stop(); }

Routes Api::routes(Routes others) const {
  Routes routes;
  add_enqueue_route(state_, routes);
  add_job_routes(state_, routes);
  add_lease_routes(state_, routes);
  add_settle_route(state_, routes);
  add_broker_routes(state_, routes);
  add_publish_routes(state_, routes);
  add_dead_routes(state_, routes);
  add_dead_group_routes(state_, routes);
  add_flow_routes(state_, routes);
  add_request_route(state_, routes);
  add_rules_routes(state_, routes);
  add_schedule_routes(state_, routes);
  add_backup_routes(state_, routes);
  std::move(others.begin(), others.end(), std::back_inserter(routes));
  add_openapi_route(routes, state_->options.version);
  return routes;
}

}  // namespace bide::server
