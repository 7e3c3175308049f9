// One call on many jobs: by their ids, or on everything that matches a filter, page by page while work goes on. The answer has
// what became of each id, or the sums and the first problems.

#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "server/api/api_state.h"
#include "wire/change_json.h"

namespace bide::server {

using ApplyToJobs = std::function<void(std::vector<JobId>, Completion<std::vector<Status>>)>;

// `inspector` finds what matches, as the caller may see it. Ends early, with the sums so far, when the caller hangs up.
void apply_to(const State& state, std::shared_ptr<Inspector> inspector, Reply reply, wire::Choice choice,
              ApplyToJobs apply);

}  // namespace bide::server
