#include "server/http/problem_response.h"

#include <algorithm>
#include <string>

namespace bide::server {

Response to_response(const wire::Problem& problem) {
  Response response{.status = problem.status,
                    .content_type = std::string(wire::kProblemContentType),
                    .body = wire::problem_json(problem)};
  if (problem.retry_after.count() > 0) {
    // In whole seconds, and never earlier than was said.
    const auto seconds = std::max<std::int64_t>(1, (problem.retry_after.count() + 999) / 1000);
    response.fields.emplace_back("Retry-After", std::to_string(seconds));
  }
  if (problem.status == 401) response.fields.emplace_back("WWW-Authenticate", "Bearer realm=\"bide\"");
  return response;
}

}  // namespace bide::server
