// Telling what became of each of several jobs.

#pragma once

#include <string_view>
#include <vector>

#include "bide/job_id.h"
#include "bide/result.h"
#include "cli/invocation.h"

namespace bide::cli {

// One line for each job; errors go to stderr. The exit code of the first error, or 0.
int print_statuses(const Invocation& call, std::string_view verb, const std::vector<JobId>& ids,
                   const std::vector<Status>& statuses);

}  // namespace bide::cli
