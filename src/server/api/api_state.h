// ApiState: what the routes share. One for a server, alive as long as a request may still be under way.

#pragma once

#include <deque>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "platform/keyed_hash.h"
#include "platform/random.h"
#include "server/api/alarm.h"
#include "server/api/api.h"
#include "server/api/bounded_reads.h"
#include "server/api/drain_rate.h"
#include "server/api/event_hub.h"
#include "server/api/idempotency.h"
#include "server/api/lease_desk.h"
#include "server/api/watch_desk.h"
#include "server/http/route.h"

namespace bide::server {

// The jobs that were cancelled lately, so that a late settlement is told so. Safe to share between threads.
class CancelledJobs {
 public:
  void add(const JobId& id) {
    std::lock_guard lock(mutex_);
    if (!ids_.insert(id).second) return;
    oldest_.push_back(id);
    if (oldest_.size() <= kRemembered) return;
    ids_.erase(oldest_.front());
    oldest_.pop_front();
  }
  bool has(const JobId& id) const {
    std::lock_guard lock(mutex_);
    return ids_.count(id) != 0;
  }

 private:
  static constexpr std::size_t kRemembered = 10'000;

  mutable std::mutex mutex_;  // Guards everything below.
  platform::KeyedSet<JobId> ids_;
  std::deque<JobId> oldest_;
};

struct ApiState {
  explicit ApiState(ApiOptions given);
  ~ApiState();

  Time now() const;
  std::uint64_t random();
  // What an error of the broker comes to, with the time to wait where it says that there is too much.
  wire::Problem problem_of(const Error& error, std::uint64_t jobs = 1);

  const ApiOptions options;
  Broker& broker;
  Inspector* const inspector;

  DrainRate drain_rate;
  IdempotencyBook idempotency;
  CancelledJobs cancelled;
  const std::shared_ptr<EventHub> events;
  const std::shared_ptr<LeaseDesk> leases;
  const std::shared_ptr<WatchDesk> watches;   // Null without an inspector.
  const std::shared_ptr<BoundedReads> reads;  // Likewise.

  void stop();

 private:
  void poke();
  void poke_subscriber();

  std::mutex random_mutex_;
  platform::SystemRandom random_;
  std::mutex alarm_mutex_;
  std::unique_ptr<Alarm> subscriber_;  // Makes and ends subscriptions.
  std::unique_ptr<Alarm> alarm_;       // These two last: they use all of the above. Null once stopped.
};

using State = std::shared_ptr<ApiState>;

inline Response json_response(int status, std::string body) {
  return {.status = status, .content_type = "application/json", .body = std::move(body), .fields = {}};
}

inline void refuse(Reply& reply, const wire::Problem& problem) { reply.send(to_response(problem)); }

// A completion of the broker and a Reply: std::function wants to be copied, a Reply is only moved.
using SharedReply = std::shared_ptr<Reply>;
inline SharedReply share(Reply reply) { return std::make_shared<Reply>(std::move(reply)); }

// Answers with the problem and gives nothing when a part is missing or wrong.
std::optional<JobId> captured_id(const Request& request, Reply& reply);
bool has_inspector(const State& state, Reply& reply);
// Only these query parameters, or 400.
bool knows_parameters(const Request& request, Reply& reply, std::initializer_list<std::string_view> known);
// ?wait=30s; zero when it is not there. Nothing: refused.
std::optional<Milliseconds> wait_parameter(const Request& request, Reply& reply);
// JSON, or no body. 415 otherwise.
// A caller who was given one lease names another.
std::optional<wire::Problem> find_foreign_lease(const Request& request, const LeaseRef& lease);
bool is_json_request(const Request& request, Reply& reply);

// Each adds its routes.
void add_enqueue_route(const State& state, Routes& routes);
void add_job_routes(const State& state, Routes& routes);
void add_lease_routes(const State& state, Routes& routes);
void add_settle_route(const State& state, Routes& routes);
void add_queue_routes(const State& state, Routes& routes);
void add_dead_routes(const State& state, Routes& routes);
void add_broker_routes(const State& state, Routes& routes);

}  // namespace bide::server
