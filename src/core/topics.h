// Topics: names of events, the patterns that groups are bound to, and what a group gets of an event.
//
// A topic is a name (core/job_rules.h) of words between dots. A pattern is the same, where a word may be * for exactly one
// word or # for any number of words, also none.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bide/inspector.h"
#include "bide/job.h"
#include "bide/result.h"

namespace bide::core {

inline constexpr std::size_t kMostPatterns = 100;  // Of one queue.

bool is_pattern(std::string_view text);
// Also when it is not a pattern: then it matches itself only.
bool has_wildcard(std::string_view pattern);
// Both are valid. Its cost is bounded by words of the topic times words of the pattern.
bool topic_matches(std::string_view pattern, std::string_view topic);
bool is_bound_to(const Binding& binding, std::string_view topic);

// kInvalidArgument, with what is wrong.
Status validate_event(const Job& event, Time now);
Status validate(const Binding& binding);

// The job that a group gets of an event, which has an id.
Job event_job(const Job& event, const Binding& binding, Time now);
// Whoever publishes an event again gives it the same id in each queue. Sorts by the time of the event's id.
JobId event_job_id(const JobId& event, std::string_view queue);

}  // namespace bide::core
