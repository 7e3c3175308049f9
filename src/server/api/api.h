// Api: the routes under /v1 over a broker. What they take and give is described by /v1/openapi.json and docs/api.md.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "server/http/route.h"
#include "wire/problem.h"

namespace bide::server {

struct ApiState;

struct ApiOptions {
  // Shared by every request under way, and so by completions of the broker: they must not be its last owner (see
  // ServerBroker).
  std::shared_ptr<Broker> broker = nullptr;
  // Must outlive every request under way. May be null: then the routes that need it answer 501.
  Inspector* inspector = nullptr;

  // The queue of a job with a callback that names none. Empty: the default queue.
  std::string callback_queue = {};
  // Checked before a job is enqueued.
  std::function<std::optional<wire::Problem>(const Job&)> find_callback_problem = {};

  std::string backup_directory = {};  // Where backups may be made. Empty: nowhere.
  std::string version = {};        // Of the server, for the OpenAPI document.
  std::function<Time()> now = {};  // For tests; the wall clock otherwise.
};

class Api {
 public:
  explicit Api(ApiOptions options);
  ~Api();

  // They keep what they need alive, except the inspector. `others` are added, and described by the same OpenAPI document.
  Routes routes(Routes others = {}) const;

  // At the beginning of a drain: answers everything that waits, returns undelivered leases, ends the subscriptions at the
  // broker and all event streams. New polls get 503; other routes go on, so that workers can settle what they have.
  void stop();

 private:
  std::shared_ptr<ApiState> state_;
};

}  // namespace bide::server
