// The trace of a request (W3C Trace Context) goes on with the jobs that it makes, as their headers `traceparent` and
// `tracestate`.

#pragma once

#include "bide/job.h"
#include "server/http/request.h"

namespace bide::server {

// Unless the job brings its own, or has no room for it. What is not well-formed is no trace.
void take_trace(const Request& request, Job& job);

}  // namespace bide::server
