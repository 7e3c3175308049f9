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
  // Kept by every request that is under way, and so by completions of the broker: it must not be the last owner of what
  // they run on (see ServerBroker).
  std::shared_ptr<Broker> broker = nullptr;
  // Must outlive every request that is under way. Without one the routes that need it answer 501.
  Inspector* inspector = nullptr;

  // Where a job with a callback goes that names no queue. Empty: it is treated like any other.
  std::string callback_queue = {};
  // What is wrong with the callbacks of a job, asked before it is enqueued.
  std::function<std::optional<wire::Problem>(const Job&)> find_callback_problem = {};

  std::string version = {};        // Of the server, for the OpenAPI document.
  std::function<Time()> now = {};  // For tests; the wall clock otherwise.
};

class Api {
 public:
  explicit Api(ApiOptions options);
  ~Api();

  // They keep what they need alive, but for the inspector. Others under /v1 are given back as they are, after ours, and
  // stand in the same OpenAPI document.
  Routes routes(Routes others = {}) const;

  // For the beginning of a drain, or nobody would have their answers before the longest poll is over: answers
  // everything that waits, returns what is held, ends the subscriptions at the broker and all streams. New polls get
  // 503; all other routes go on as long as the broker is there, so that workers can settle what they have.
  void stop();

 private:
  std::shared_ptr<ApiState> state_;
};

}  // namespace bide::server
