// Changes of a job that waits or is dead, as JSON: those fields of a job that are to be different.
//
//   {"body":{"to":"new@example.org"},"headers":{},"queue":"mail","priority":5,"retry":"fixed(30s,x5)","time_limit":"10m",
//    "due":"2026-01-02T03:04:05Z"}   or "delay":"10m" in place of due
//
// What is not given stays; also the content type, whichever way the body is given.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bide/inspector.h"
#include "wire/problem.h"

namespace bide::wire {

// Checked by the rules for a new job, as far as it is different.
std::optional<Problem> read_edit(std::string_view body, Time now, JobEdit& edit);
std::string edit_json(const JobEdit& edit);

bool is_empty(const JobEdit& edit);
// Nothing but the due time is to be different: that much every broker can do that reschedules.
bool is_reschedule(const JobEdit& edit);
// The job as far as the edit says what it is.
Job edited(const JobEdit& edit);

}  // namespace bide::wire
