// Admission: whether a request goes on to its route, judged by its head: where it goes, who sends it, from which site,
// and how its body is coded.

#pragma once

#include <optional>

#include "server/http/request.h"
#include "server/http/response.h"
#include "server/http/route.h"
#include "server/http/service.h"

namespace bide::server {

struct Admission {
  const Route* route = nullptr;          // Also of one that is refused; null: there is none.
  std::optional<Response> refusal = {};  // What there is to answer without looking at the body.
};

// The request gets what was captured of its path, and its caller.
Admission admit_request(const Service& service, Request& request, bool has_body);

}  // namespace bide::server
