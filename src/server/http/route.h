// Route: a method and a pattern, and who answers. The table of routes is data: the router, the OpenAPI document, the
// nearest route named by a 404 and the Allow of a 405 all come from it.

#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "server/http/request.h"
#include "server/http/response.h"

namespace bide::server {

struct Route {
  Method method = Method::kGet;
  std::string_view pattern = {};  // "/v1/jobs/{id}", "/assets/{path...}"
  Scope scope = Scope::kRead;
  std::string_view summary = {};  // One line, for the OpenAPI document.
  // Runs on a thread of the server and must not block. Whatever it throws is answered with 500 and logged.
  std::function<void(Request, Reply)> answer = {};
  bool keeps_to_queues = false;  // It minds Identity::queues. Otherwise it is not for callers restricted to some.
};

using Routes = std::vector<Route>;

}  // namespace bide::server
