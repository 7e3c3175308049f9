// The audit trail: who changed what through the server, a line in its log for each request. Enqueuing and working on jobs
// is not in it: that is what the metrics count.
//
//   action caller=deploy peer=10.0.0.7 method=POST path=/v1/dead/delete status=200 on="2 jobs: 018f..., 018f..."
//          result="succeeded 2, failed 0"

#pragma once

#include "server/http/route.h"
#include "server/log/log.h"

namespace bide::server {

// The same routes; those that change something for admin or write also log it. The log must outlive them.
Routes with_audit_trail(Routes routes, const Log& log);

}  // namespace bide::server
