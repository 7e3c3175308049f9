// Telling what became of each of several jobs.

#pragma once

#include <string_view>
#include <vector>

#include "bide/job_id.h"
#include "bide/result.h"
#include "cli/invocation.h"
#include "cli/say.h"

namespace bide::cli {

// One line for each job; errors go to stderr, and the first of them is thrown as a Failure. Otherwise 0.
int print_statuses(const Invocation& call, std::string_view verb, const std::vector<JobId>& ids,
                   const std::vector<Status>& statuses, const Warnings* warnings = nullptr);

}  // namespace bide::cli
