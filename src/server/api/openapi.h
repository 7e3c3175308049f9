// The OpenAPI 3.1 document of the API, made from the table of routes and the schemas of src/wire.

#pragma once

#include <string>
#include <string_view>

#include "server/http/route.h"

namespace bide::server {

// Routes outside /v1, and the document itself, are left out.
std::string openapi_json(const Routes& routes, std::string_view version);

// GET /v1/openapi.json, about the routes that are there.
void add_openapi_route(Routes& routes, std::string_view version);

}  // namespace bide::server
