// Service: what all connections of a server share: its routes, its rules, its limits and its counts.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "server/http/browser_guard.h"
#include "server/http/connections.h"
#include "server/http/identity.h"
#include "server/http/limits.h"
#include "server/http/memory_budget.h"
#include "server/http/request.h"
#include "server/http/response.h"
#include "server/http/route.h"
#include "server/http/router.h"
#include "wire/problem.h"

namespace bide::server {

// Who asks, or why they may not do what the scope stands for. Called on a thread of the server; must not block.
using Admit = std::function<AuthResult(const Request&, Scope)>;

// One request, when its answer is out.
struct Served {
  Method method = Method::kGet;
  std::string_view pattern = {};  // Of the route; empty: there was none.
  int status = 0;                 // kClientGone: it was not there any more to have its answer.
  std::chrono::nanoseconds duration{0};  // From its last byte to the last byte of the answer, as far as the socket knows.
  std::string_view peer = {};
};

// Whether callers that were admitted before and have a long request open are still valid. Both as Admit.
struct Revalidation {
  std::function<std::uint64_t()> version = {};  // Callers are checked again when it changes. Null: never.
  std::function<bool(const Identity&)> is_still_valid = {};
};

struct ServiceOptions {
  Routes routes = {};
  Admit admit = {};                      // Null: everybody may do everything.
  Revalidation revalidation = {};
  std::vector<std::string> hosts = {};   // See BrowserGuard.
  bool asks_for_user = false;            // Request::peer_is_our_user is looked up.
  HttpLimits limits = {};
  std::function<void(const Served&)> on_served = {};
  std::function<void(std::string_view)> on_problem = {};  // One line, for the log.
};

class Service {
 public:
  explicit Service(ServiceOptions options)
      : router(std::move(options.routes)),
        admit(std::move(options.admit)),
        revalidation(std::move(options.revalidation)),
        browsers(std::move(options.hosts)),
        asks_for_user(options.asks_for_user),
        limits(options.limits),
        on_served(std::move(options.on_served)),
        on_problem(std::move(options.on_problem)),
        memory(std::make_shared<MemoryBudget>(limits.held_bytes)) {
    memory->set_make_room([this](const MemoryClaim& claim, std::uint64_t missing, std::uint64_t fair_part) {
      return connections.make_room(claim, missing, fair_part, limits);
    });
  }
  // Replies that are still out keep the budget.
  ~Service() { memory->set_make_room(nullptr); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  const Router router;
  const Admit admit;
  const Revalidation revalidation;
  const BrowserGuard browsers;
  const bool asks_for_user;
  const HttpLimits limits;
  const std::function<void(const Served&)> on_served;
  const std::function<void(std::string_view)> on_problem;
  const std::shared_ptr<MemoryBudget> memory;

  Connections connections;
  std::atomic<std::uint64_t> last_connection = 0;  // They are numbered.
  std::atomic<bool> draining = false;
  std::atomic<std::uint64_t> requests = 0;
  std::atomic<std::uint64_t> refused = 0;  // Requests that could not be read, and connections that were not let in.
};

// Whether a request goes on to its route, judged by its head: where it goes, who sends it, from which site, and how its body
// is coded.
struct Admission {
  const Route* route = nullptr;          // Also of one that is refused; null: there is none.
  std::optional<Response> refusal = {};  // What there is to answer without looking at the body.
};

// The request gets what was captured of its path, and its caller.
Admission admit_request(const Service& service, Request& request, bool has_body);

}  // namespace bide::server
