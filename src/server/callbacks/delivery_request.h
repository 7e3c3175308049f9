// The request that delivers a job: POST of its body, with its headers as fields and a signature.
//
//   content-type        of the body
//   bide-job-id, bide-kind, bide-queue, bide-attempt
//   bide-lease-token    with the job's id: names the lease, for a receiver that answers 202 and settles later
//   bide-settle-token   the credential for that: see lease_credentials.h
//   via                 1.1 bide: a bide server does not trust it as a local request
//   bide-header-NAME    the job's own headers
//   traceparent, tracestate   as they are in the job's headers
//   webhook-id, webhook-timestamp, webhook-signature   see webhook_signer.h
//
// A bide.on_done job is delivered as JSON made of its headers and body:
//
//   {"id":...,"kind":...,"queue":...,"state":"done","attempts":1,"result":...}
//   {"id":...,"kind":...,"queue":...,"state":"dead","attempts":3,"reason":...,"error":...}

#pragma once

#include <string_view>

#include "bide/lease.h"
#include "http_client/http_request.h"
#include "server/callbacks/callback_options.h"
#include "server/callbacks/callback_url.h"
#include "server/callbacks/webhook_signer.h"

namespace bide::server {

// Whether HTTP can carry this header.
bool can_be_delivered(std::string_view header, std::string_view value);

// Leaves out headers that HTTP cannot carry, and those that are meant for the server.
http_client::HttpRequest delivery_request(const Lease& lease, const CallbackUrl& url, const WebhookSigner& signer,
                                          const CallbackOptions& options, Time now);

}  // namespace bide::server
