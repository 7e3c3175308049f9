// The inspector as one caller sees it. For a caller whose token is restricted to some queues, others do not exist.

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

// Reads go through the read scheduler, in the caller's turn. The state must have an inspector.
std::shared_ptr<Inspector> inspector_for(const State& state, const Identity& caller);

// forbidden: the caller may not use the queue; of a job, its reply queue either.
std::optional<wire::Problem> find_queue_problem(const Identity& caller, const Job& job);
std::optional<wire::Problem> find_queue_problem(const Identity& caller, std::string_view queue);

// Which of the leases are in queues that the caller may use, in order. `then` runs once, on any thread.
void find_visible(const State& state, const Identity& caller, const std::vector<LeaseRef>& leases,
                  std::function<void(std::vector<bool>)> then);

}  // namespace bide::server
