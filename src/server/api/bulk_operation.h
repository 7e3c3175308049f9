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
// The same for what matches any of these filters, one after the other. `limits` says whether it is a dry run, and how many.
void apply_to_each(const State& state, std::shared_ptr<Inspector> inspector, Reply reply, std::vector<JobFilter> filters,
                   wire::Choice limits, ApplyToJobs apply);

// Cancels them, and remembers it for a while, to say so to a worker that settles one.
void cancel_jobs(const State& state, Inspector& inspector, std::vector<JobId> ids, CancelOptions options,
                 Completion<std::vector<Status>> done);

}  // namespace bide::server
