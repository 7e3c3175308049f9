// Jobs as people and programs read them.

#pragma once

#include <string>
#include <vector>

#include "bide/inspector.h"
#include "cli/json.h"

namespace bide::cli {

// Stable: fields are added, never renamed. What is not UTF-8 has a name that ends in _base64 instead: body_base64. What
// the broker does not keep of a job that is done is null, and so is when it was due once it is done or dead.
JsonObject to_json(const JobInfo& info);
JsonObject to_json(const QueueInfo& queue);

std::string job_table(const std::vector<JobInfo>& jobs, Time now);
// Everything about one job, a line for each fact.
std::string job_page(const JobInfo& info, Time now);

// "in 5m", "2h ago", "now".
std::string relative_time(Time time, Time now);
std::string base64(std::string_view bytes);
// At most so many characters, the rest as "...".
std::string shortened(std::string_view text, std::size_t width);

// Reads "dead" or "scheduled"; throws Failure with the list.
JobState parse_state(std::string_view text);

}  // namespace bide::cli
