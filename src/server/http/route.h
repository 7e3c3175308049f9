// Route: everything about one operation of the server: method, pattern, scope, handler, and what it takes and answers.
// The router, the OpenAPI document, the nearest route named by a 404 and the Allow of a 405 come from the table of them.

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "server/http/limits.h"
#include "server/http/request.h"
#include "server/http/response.h"

namespace bide::server {

// For routes that are told a name or a few numbers, and for those that are told a list of ids.
inline constexpr std::uint64_t kSmallBody = 128 * 1024;
inline constexpr std::uint64_t kListBody = 4 * 1024 * 1024;

struct RouteAnswer {
  int status = 200;
  std::string_view schema = {};  // Empty: no JSON, but `type`.
  std::string_view type = "text/event-stream";
};

// For the OpenAPI document. Schemas are named as in src/wire.
struct Operation {
  std::string_view id = {};       // operationId.
  std::string_view request = {};  // Schema of the body; empty: it has none.
  std::vector<RouteAnswer> answers = {};
  std::vector<std::string_view> query = {};  // Names of parameters.
  bool ndjson = false;                       // The body may also be one item a line.
  bool idempotency_key = false;
};

struct Route {
  Method method = Method::kGet;
  std::string_view pattern = {};  // "/v1/jobs/{id}", "/assets/{path...}"
  Scope scope = Scope::kRead;
  std::string_view summary = {};  // One line, for the OpenAPI document.
  // Runs on a thread of the server and must not block. Whatever it throws is answered with 500 and logged.
  std::function<void(Request, Reply)> answer = {};
  bool keeps_to_queues = false;  // It minds Identity::queues. Otherwise it is not for callers restricted to some.
  // The most bytes that a body may have, without its coding. 0: a body is refused. Nothing: what the limits of the server
  // say with POST, PUT and PATCH, and 0 with other methods.
  std::optional<std::uint64_t> body_bytes = {};

  // It waits, and can be ended unanswered without that anything has changed: so it is when its caller's token is revoked.
  bool only_waits = false;

  Operation operation = {};  // Of routes under /v1.

  std::uint64_t most_body_bytes(const HttpLimits& limits) const {
    const bool takes_one = method == Method::kPost || method == Method::kPut || method == Method::kPatch;
    return std::min(limits.body_bytes, body_bytes.value_or(takes_one ? limits.body_bytes : 0));
  }
};

using Routes = std::vector<Route>;

}  // namespace bide::server
