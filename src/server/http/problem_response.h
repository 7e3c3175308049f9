// A problem as the answer to a request.

#pragma once

#include "server/http/response.h"
#include "wire/problem.h"

namespace bide::server {

// With Retry-After where the problem says when; 401 with WWW-Authenticate.
Response to_response(const wire::Problem& problem);

}  // namespace bide::server
