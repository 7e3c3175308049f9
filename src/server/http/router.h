// Router: which route answers a method and a path. For what none answers it knows the problem to tell.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/route.h"
#include "wire/problem.h"

namespace bide::server {

class Router {
 public:
  // Two routes of the same method and pattern are a mistake in the program.
  explicit Router(Routes routes);

  struct Match {
    const Route* route = nullptr;  // Null: refused, or answered by `allow` alone.
    std::map<std::string, std::string> captured = {};
    std::string allow = {};        // The methods of this path, for a 405 and for OPTIONS.
    wire::Problem problem = {};    // When there is no route: 404 not_found, 405 method_not_allowed.
  };
  // HEAD is answered by the route of GET.
  Match find(Method method, std::string_view path) const;

  const Routes& routes() const { return routes_; }

 private:
  using Segments = std::vector<std::string_view>;
  wire::Problem not_found(std::string_view path) const;

  const Routes routes_;
  std::vector<Segments> patterns_;  // One for each route.
};

}  // namespace bide::server
