// The request that delivers a job: its body (of a bide.on_done, what it tells as JSON), by POST, with its headers as fields and a signature.
//
//   content-type        of the body
//   bide-job-id, bide-kind, bide-queue, bide-attempt
//   bide-lease-token    with the job's id: what a receiver that answers 202 settles with
//   bide-settle-token   what it shows to be let in for that: see lease_credentials.h
//   via                 1.1 bide: a server never takes it for a request of its own machine
//   bide-header-NAME    the job's own headers
//   traceparent, tracestate   as they are in the job's headers
//   webhook-id, webhook-timestamp, webhook-signature   see webhook_signer.h

#pragma once

#include <string_view>

#include "bide/lease.h"
#include "http_client/http_request.h"
#include "server/callbacks/callback_options.h"
#include "server/callbacks/callback_url.h"
#include "server/callbacks/webhook_signer.h"

namespace bide::server {

// Whether a header of a job can be a field of HTTP.
bool can_be_delivered(std::string_view header, std::string_view value);

// Headers of the job that cannot be fields of HTTP are left out, and so are those that are meant for the server.
http_client::HttpRequest delivery_request(const Lease& lease, const CallbackUrl& url, const WebhookSigner& signer,
                                          const CallbackOptions& options, Time now);

}  // namespace bide::server
