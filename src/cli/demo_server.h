// bide demo --serve: a shop that stays open, behind a server with the dashboard.

#pragma once

#include <string>

namespace bide::cli {

// Until SIGINT or SIGTERM. Starts the server and the shop's workers as processes of their own, and the latter again whenever a job
// has killed them. Throws Failure.
int serve_demo(const std::string& store_url, const std::string& listen);

}  // namespace bide::cli
