// What callers whose token is restricted to queues may see and touch. What they may not does not exist for them.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "bide/inspector.h"
#include "bide/lease.h"
#include "server/api/api_state.h"
#include "server/http/identity.h"
#include "wire/problem.h"

namespace bide::server {

// The inspector as this caller sees it: the whole one for callers that are not restricted. State has an inspector.
std::shared_ptr<Inspector> inspector_for(const State& state, const Identity& caller);

// 403 when the caller may not enqueue it there, or have its reply there.
std::optional<wire::Problem> find_queue_problem(const Identity& caller, const Job& job);
std::optional<wire::Problem> find_queue_problem(const Identity& caller, std::string_view queue);

// Which of these leases are of queues that the caller may use, in order. `then` runs once, on any thread.
void find_visible(const State& state, const Identity& caller, const std::vector<LeaseRef>& leases,
                  std::function<void(std::vector<bool>)> then);

}  // namespace bide::server
